"""The scalars of a test key by the host library: the numbers that `prover.qap` gives, millions in seconds.

The Lagrange basis at tau is an inverse transform: sum_i L_i(tau) w^(ij) = tau^j, since the polynomial X^j is
interpolated exactly.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from prover import qap
from prover.backends import KeyScalars
from prover.formats.zkey import COEF, entries_of
from prover.params import SCALAR_BYTES
from prover.scalars import encode_scalars

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prover.backends.host_library import HostLibrary
    from prover.formats.r1cs import ConstraintSystem, SparseMatrix
    from prover.params import Curve
    from prover.setup import Trapdoor

    Words = NDArray[np.uint8]

FR = 1
ADD, MUL, TO_MONTGOMERY, FROM_MONTGOMERY = 0, 2, 7, 8
INVERSE = 1
ALL_THREADS = 0
SLICE = 1 << 15
"""Elements that one thread takes at a time: some milliseconds."""


class HostSetup:
    """Vectors over Fr in Montgomery form, (n, 32), aligned as the library asks."""

    def __init__(self, library: HostLibrary, curve: Curve) -> None:
        self._library = library
        self._curve = curve

    def key_scalars(self, system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
        """What the points of a key are multiples by. Raises `ConfigurationError` for a circuit too large."""
        k = qap.log_domain(self._curve, system.n_constraints, system.n_public)
        powers = self._powers(trapdoor.tau, 2 << k)
        basis = self._standard(self._inverse_transform(powers[: 1 << k], k))
        a, b = self._columns([system.a, system.b], system, basis)
        c, _ = self._columns([system.c], system, basis)
        combined = self._sum(self._times(a, trapdoor.beta), self._times(b, trapdoor.alpha), c)
        over_delta = pow(trapdoor.delta, -1, self._curve.r)
        odd = np.ascontiguousarray(self._inverse_transform(powers, k + 1)[1::2])
        first_private = system.n_public + 1
        return KeyScalars(
            a=self._standard(a),
            b=self._standard(b),
            public=self._standard(combined[:first_private]),
            private=self._standard(self._times(combined[first_private:], over_delta)),
            h=self._standard(self._times(odd, over_delta)),
        )

    def double_montgomery(self, coefs: Words) -> Words:
        """coefficient * R^2: how keys hold the entries of the matrices."""
        return self._convert(TO_MONTGOMERY, self._convert(TO_MONTGOMERY, coefs))

    def dense_wires(self, c: Words, w_i: Words, w_j: Words, w_k: Words, d: Words) -> Words:
        """(c w_i + w_j) (w_k + d). One factor of each product is taken into Montgomery form."""
        first = self._field(ADD, self._field(MUL, self._convert(TO_MONTGOMERY, c), w_i), w_j)
        return self._field(MUL, self._convert(TO_MONTGOMERY, first), self._field(ADD, w_k, d))

    def _columns(
        self, matrices: list[SparseMatrix], system: ConstraintSystem, basis: Words
    ) -> tuple[Words, Words]:
        """For each matrix M: sum_i M[i][s] L_i(tau) for every wire s. A comes with the public rows."""
        parts = [self._entries(which, matrix) for which, matrix in enumerate(matrices)]
        if matrices[0] is system.a:
            public = np.zeros(system.n_public + 1, COEF)
            public["constraint"] = np.arange(system.n_public + 1)
            public["wire"] = system.n_constraints + public["constraint"]
            public["value"] = self.double_montgomery(encode_scalars([1]))[0]
            parts.append(public)
        entries, rows = np.concatenate(parts), system.n_wires
        order, starts = np.empty(len(entries), np.uint32), np.empty(2 * rows + 1, np.uint32)
        self._library.call("sort_entries", entries, len(entries), rows, order, starts)
        out = _vector(rows), _vector(rows)
        products = (entries, order, starts, rows, basis, len(basis), *out, ALL_THREADS)
        self._library.call("sparse_products", *products)
        return out

    def _entries(self, which: int, matrix: SparseMatrix) -> NDArray[Any]:
        """The transposed matrix, as entries of a key: a row for each wire."""
        return entries_of(which, matrix.wires, matrix.rows, self.double_montgomery(matrix.coefs))

    def _powers(self, base: int, count: int) -> Words:
        """base^j, j < count, a power of two: each half is the one before, times one power."""
        out = _vector(count)
        out[:1] = self._convert(TO_MONTGOMERY, encode_scalars([1]))
        done = 1
        while done < count:
            out[done : 2 * done] = self._times(out[:done], pow(base, done, self._curve.r))
            done *= 2
        return out

    def _inverse_transform(self, values: Words, k: int) -> Words:
        tables, out = _vector(2 << k), _vector(1 << k)
        out[:] = values
        self._library.call("domain", tables, k, ALL_THREADS)
        self._library.call("ntt", out, k, tables, INVERSE, ALL_THREADS)
        return out

    def _times(self, vector: Words, factor: int) -> Words:
        factors, out = _vector(len(vector)), _vector(len(vector))
        factors[:] = self._convert(TO_MONTGOMERY, encode_scalars([factor]))
        out[:] = vector
        self._library.call("multiply", out, factors, out, len(vector), ALL_THREADS)
        return out

    def _sum(self, first: Words, *others: Words) -> Words:
        for other in others:
            first = self._field(ADD, first, other)
        return first

    def _standard(self, vector: Words) -> Words:
        return self._convert(FROM_MONTGOMERY, vector)

    def _convert(self, operation: int, vector: Words) -> Words:
        return self._field(operation, vector, vector)

    def _field(self, operation: int, a: Words, b: Words) -> Words:
        """One operation on every element, slices of them on all processors."""
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        out = _vector(len(a))

        def work(start: int) -> None:
            part = slice(start, start + SLICE)
            self._library.call("field", FR, operation, a[part], b[part], out[part], len(out[part]))

        starts = range(0, len(a), SLICE)
        if len(starts) <= 1:
            for start in starts:
                work(start)
            return out
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(work, starts))
        return out


def _vector(n: int) -> Words:
    room = np.empty(n * SCALAR_BYTES + 15, np.uint8)
    start = -room.ctypes.data % 16
    return room[start : start + n * SCALAR_BYTES].reshape(n, SCALAR_BYTES)
