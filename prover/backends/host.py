"""The CPU backend: the kernels' mathematics compiled for the host, on all processors of this process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prover.backends.host_combine import CHOOSE_WINDOW, G1, G2, HostCombine
from prover.backends.host_setup import HostSetup
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.memory import require_memory
from prover.params import SCALAR_BYTES
from prover.phases import Phases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from prover.artifact import Artifact, Loaded
    from prover.backends import KeyScalars
    from prover.formats.r1cs import ConstraintSystem
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve, G1Point, G2Point
    from prover.setup import Trapdoor

    Scalars = NDArray[np.uint8]

QUERIES = {"a_query": G1, "b_g1_query": G1, "b_g2_query": G2, "l_query": G1, "h_query": G1}


class HostKey(NamedTuple):
    """A key made ready: its own arrays, and what the library derives from it once."""

    key: ProvingKey
    entries: NDArray[Any]
    """The matrix entries, without gaps."""
    order: NDArray[np.uint32]
    """Permutation that sorts the matrix entries by (matrix, row)."""
    starts: NDArray[np.uint32]
    """(2 * domain_size + 1,): where the entries of each row begin in ``order``."""
    tables: Scalars
    """(2 * domain_size, 32): twiddles and coset factors of the domain."""


class HostBackend:
    """Implements `Backend` and `PointGenerator`. Vectors are (n, 32) arrays of bytes; nothing is pending."""

    name = "host"
    device: dict[str, Any] | None = None

    def __init__(self, curve: Curve, artifact: Artifact) -> None:
        """Raises `Refused` when the library in this process is not the admitted one; see `load_library`."""
        self.curve = curve
        self.phases = Phases()
        self.threads = len(os.sched_getaffinity(0))
        self._combine = HostCombine(curve, artifact)
        self._library = self._combine.library
        self.loaded: tuple[Loaded, ...] = (self._combine.loaded,)
        self._ready: HostKey | None = None
        self._secrets: list[Scalars] = []
        self._host_words = _vector(0)

    def load(self, key: ProvingKey) -> None:
        """Sort the matrix entries and compute the domain's tables; the points stay in the mapped file.

        Raises `Missing` when memory does not suffice for proofs with this key.
        """
        require_memory(proof_bytes(key), f"proofs with {key.file.path.name}")
        n, entries = key.domain_size, _contiguous(key.coefs)
        order, starts = np.empty(len(entries), np.uint32), np.empty(2 * n + 1, np.uint32)
        tables = _vector(2 * n)
        self._library.call("sort_entries", entries, len(entries), n, order, starts)
        self._library.call("domain", tables, key.log_domain, self.threads)
        self._ready = HostKey(key, entries, order, starts, tables)

    def check_points(self) -> tuple[str, int] | None:
        """The first point of the key that is not on its curve."""
        first_bad = np.zeros(1, np.uint64)
        for query, group in QUERIES.items():
            points = self._query(query)
            self._library.call("check_points", group, points, len(points), self.threads, first_bad)
            if first_bad[0] < len(points):
                return query, int(first_bad[0])
        return None

    @property
    def arrangement(self) -> dict[str, Any]:
        """Nothing to tell: the points stay in the mapped file."""
        return {}

    def host_words(self, n: int) -> Scalars:
        """Ordinary memory, erased by `close`."""
        self._host_words = _vector(n)
        return self._host_words

    def witness(self, words: NDArray[np.uint8]) -> Scalars:
        """A copy of the witness, scrubbed by `close`."""
        self._scrub()
        w = self._secret(len(words))
        w[:] = words
        return w

    def sparse_products(self, witness: Scalars) -> tuple[Scalars, Scalars]:
        """A.w and B.w, row by row."""
        key, entries, order, starts, _ = self._loaded()
        n = key.domain_size
        a, b = self._secret(n), self._secret(n)
        with self.phases.span("sparse products"):
            self._library.call(
                "sparse_products", entries, order, starts, n, witness, len(witness), a, b, self.threads
            )
        return a, b

    def multiply(self, a: Scalars, b: Scalars) -> Scalars:
        """a[i] * b[i]"""
        out = self._secret(len(a))
        with self.phases.span("multiply"):
            self._library.call("multiply", a, b, out, len(a), self.threads)
        return out

    def to_coset(self, *vectors: Scalars) -> tuple[Scalars, ...]:
        """In place: two transforms each, without reordering in between."""
        ready = self._loaded()
        with self.phases.span("ntt"):
            for v in vectors:
                self._library.call("to_coset", v, ready.key.log_domain, ready.tables, self.threads)
        return vectors

    def quotient(self, a: Scalars, b: Scalars, c: Scalars) -> Scalars:
        """a[i] * b[i] - c[i], standard form; takes a's place."""
        with self.phases.span("quotient"):
            self._library.call("quotient", a, b, c, a, len(a), self.threads)
        return a

    def msm_g1(self, query: str, scalars: Scalars) -> G1Point:
        """Done at once."""
        return decode_g1(self.curve, self._msm(query, scalars).data)

    def msm_g2(self, query: str, scalars: Scalars) -> G2Point:
        """Done at once."""
        return decode_g2(self.curve, self._msm(query, scalars).data)

    def fetch(self, pending: Sequence[Any]) -> list[Any]:
        """Nothing is pending."""
        return list(pending)

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """An MSM over points that are encoded for it."""
        return self._combine.combine_g1(scalars, points)

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """As `combine_g1`, in G2."""
        return self._combine.combine_g2(scalars, points)

    def close(self) -> None:
        """Erase every vector that held the witness or came from it, and let the key go."""
        self._scrub()
        self._host_words[:] = 0
        self._ready = None

    def key_scalars(self, system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
        """The polynomials of a circuit at a secret point, by the host library."""
        return HostSetup(self._library, self.curve).key_scalars(system, trapdoor)

    def double_montgomery(self, coefs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """coefficient * R^2 for each."""
        return HostSetup(self._library, self.curve).double_montgomery(coefs)

    def dense_wires(
        self,
        c: NDArray[np.uint8],
        w_i: NDArray[np.uint8],
        w_j: NDArray[np.uint8],
        w_k: NDArray[np.uint8],
        d: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """(c w_i + w_j) (w_k + d), by the host library."""
        return HostSetup(self._library, self.curve).dense_wires(c, w_i, w_j, w_k, d)

    def multiples_g1(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G1 for each scalar."""
        return self._multiples(G1, encode_g1(self.curve, self.curve.generator_g1), scalars)

    def multiples_g2(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G2 for each scalar."""
        return self._multiples(G2, encode_g2(self.curve, self.curve.generator_g2), scalars)

    def _multiples(self, group: int, base: bytes, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        out = np.empty((len(scalars), len(base)), np.uint8)
        point = np.frombuffer(base, np.uint8)
        self._library.call("multiples", group, point, _contiguous(scalars), out, len(scalars), self.threads)
        return out

    def _msm(self, query: str, scalars: Scalars) -> NDArray[np.uint8]:
        points = self._query(query)
        assert len(points) == len(scalars)
        out = np.empty(points.shape[1], np.uint8)
        with self.phases.span(f"msm {query}"):
            self._library.call(
                "msm", QUERIES[query], points, scalars, len(points), CHOOSE_WINDOW, self.threads, out
            )
        return out

    def _query(self, query: str) -> NDArray[np.uint8]:
        return _contiguous(getattr(self._loaded().key, query))

    def _loaded(self) -> HostKey:
        assert self._ready is not None, "load() comes first"
        return self._ready

    def _secret(self, n: int) -> Scalars:
        """A new vector that `close`, or the next witness, erases."""
        self._secrets.append(_vector(n))
        return self._secrets[-1]

    def _scrub(self) -> None:
        for vector in self._secrets:
            vector[:] = 0
        self._secrets.clear()


def proof_bytes(key: ProvingKey) -> int:
    """Memory that proofs take at least: tables (2 n), A.w, B.w and their product (n each), witness, order."""
    elements = 5 * key.domain_size + key.n_vars
    return SCALAR_BYTES * elements + 4 * (len(key.coefs) + 2 * key.domain_size)


def _contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The library walks rows without gaps; those of a mapped key and of our vectors are so already."""
    return np.ascontiguousarray(array)


def _vector(n: int) -> Scalars:
    """n elements of Fr at an address that is a multiple of 16, as the library asks of what it writes."""
    room = np.empty(n * SCALAR_BYTES + 15, np.uint8)
    start = -room.ctypes.data % 16
    return room[start : start + n * SCALAR_BYTES].reshape(n, SCALAR_BYTES)
