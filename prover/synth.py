"""Synthetic circuits of any size with a satisfying witness, the same for the same seed on every machine.

Two kinds of constraint, mixed in a given share:

    (c w_i + w_j) * (w_k + d) = w_new      dense: w_new is spread over the whole field
    w_bit * (w_bit - 1) = 0                binary: the witness of hash circuits is mostly such wires

with i, j, k random among the earlier wires, w_j itself dense, and c, d random. No wire comes twice in one
row: some readers keep only the last. "Earlier" is by layers, each a `LAYER`-th of what is before it: the
wires of a layer do not depend on each other, so a backend can compute them all at once.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import ConfigurationError
from prover.formats.r1cs import ConstraintSystem, SparseMatrix
from prover.params import SCALAR_BYTES
from prover.qap import log_domain
from prover.scalars import decode_scalars, encode_scalars, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from prover.backends import DenseWires
    from prover.params import Curve

N_PUBLIC = 2
N_SEEDS = 8
"""Private wires of random value that the first dense constraints draw on."""
ENTRY_BYTES = 4 + 4 + SCALAR_BYTES
"""Memory of an entry of a `SparseMatrix`: row, wire, coefficient."""
LAYER = 32
"""A layer has a 32nd of the dense constraints before it, at least one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked for."""

    curve: Curve
    n_constraints: int
    binary_share: float = 0.0
    """The part of the constraints, 0 to 1, that force a wire to be 0 or 1."""
    seed: str = "0"

    @property
    def n_binary(self) -> int:
        """Binary constraints, and their wires."""
        return round(self.n_constraints * self.binary_share)

    @property
    def n_wires(self) -> int:
        """The constant, public wires, seeds, and one a constraint."""
        return 1 + N_PUBLIC + N_SEEDS + self.n_constraints

    @property
    def n_entries(self) -> int:
        """Entries of A and B: 2 and 2 a dense constraint, 1 and 2 a binary one."""
        return 4 * self.n_constraints - self.n_binary

    @property
    def system_bytes(self) -> int:
        """Memory of the circuit and its witness, which stay while the key is made."""
        n_dense = self.n_constraints - self.n_binary
        return ENTRY_BYTES * (self.n_entries + n_dense) + SCALAR_BYTES * self.n_wires


def constraints_filling(log_domain: int) -> int:
    """The number of constraints that fills a domain of size 2^log_domain to the last row."""
    return (1 << log_domain) - N_PUBLIC - 1


def synthesize(shape: Shape, backend: DenseWires | None = None) -> tuple[ConstraintSystem, NDArray[np.uint8]]:
    """A circuit and its witness, (n_wires, 32) in standard form. Raises `ConfigurationError` for a bad shape.

    Wires: 1 | public | seeds | bits | one a dense constraint. The dense constraints come first. ``backend``
    makes it fast and changes nothing else.
    """
    if shape.n_constraints < 1 or not 0 <= shape.binary_share <= 1:
        raise ConfigurationError("a circuit has at least one constraint, and a binary share from 0 to 1")
    curve, n_bits = shape.curve, shape.n_binary
    log_domain(curve, shape.n_constraints, N_PUBLIC)  # refuse before the work what no key could be made for
    n_dense = shape.n_constraints - n_bits
    first_bit = 1 + N_PUBLIC + N_SEEDS
    first_new = first_bit + n_bits
    layers = _layers(n_dense)
    wires = _pick_wires(shape, first_new, layers)
    c, d = (_random_elements(shape, name, n_dense) for name in "cd")
    words = np.zeros((first_new + n_dense, SCALAR_BYTES), np.uint8)
    words[0, 0] = 1
    words[1:first_bit] = _random_elements(shape, "inputs", N_PUBLIC + N_SEEDS)
    words[first_bit:first_new, 0] = _random_words(shape, "bits", n_bits) & np.uint64(1)
    if backend is None:
        _extend(words, first_new, wires, c, d, curve.r)
    else:
        for start, end in itertools.pairwise(layers):
            i, j, k = (take(words, wires[start:end, column]) for column in range(3))
            words[first_new + start : first_new + end] = backend.dense_wires(
                c[start:end], i, j, k, d[start:end]
            )
    system = ConstraintSystem(
        curve,
        n_wires=first_new + n_dense,
        n_outputs=0,
        n_public_inputs=N_PUBLIC,
        n_private_inputs=N_SEEDS + n_bits,
        n_constraints=shape.n_constraints,
        **_matrices(curve, wires, c, d, first_bit, n_bits),
    )
    return system, words


def _layers(n_dense: int) -> list[int]:
    """Where each layer of dense constraints begins, and the end of the last."""
    bounds = [0]
    while bounds[-1] < n_dense:
        bounds.append(min(n_dense, bounds[-1] + max(1, bounds[-1] // LAYER)))
    return bounds


def _pick_wires(shape: Shape, first_new: int, layers: Sequence[int]) -> NDArray[np.uint32]:
    """i, j, k for each dense constraint: i any earlier wire, j one of random value, k any but wire 0."""
    n_dense = layers[-1]
    picks = _random_words(shape, "picks", 3 * n_dense).reshape(n_dense, 3).T
    made = np.repeat(np.array(layers[:-1], np.uint64), np.diff(layers))  # wires of the layers before
    i = picks[0] % (first_new + made)
    j = 1 + picks[1] % (N_PUBLIC + N_SEEDS + made)
    j += np.where(j > N_PUBLIC + N_SEEDS, np.uint64(shape.n_binary), np.uint64(0))  # past the bits
    k = 1 + picks[2] % (first_new - 1 + made)
    return np.stack([np.where(i == j, 0, i), j, k], axis=1).astype(np.uint32)


def _extend(
    words: NDArray[np.uint8],
    first_new: int,
    wires: NDArray[np.uint32],
    c: NDArray[np.uint8],
    d: NDArray[np.uint8],
    r: int,
) -> None:
    """Fill in the value of each dense constraint's new wire, in Python integers."""
    values = decode_scalars(words[:first_new])
    for (i, j, k), c_, d_ in zip(wires.tolist(), decode_scalars(c), decode_scalars(d), strict=True):
        values.append((c_ * values[i] + values[j]) * (values[k] + d_) % r)
    words[first_new:] = encode_scalars(values[first_new:])


def _matrices(
    curve: Curve,
    wires: NDArray[np.uint32],
    c: NDArray[np.uint8],
    d: NDArray[np.uint8],
    first_bit: int,
    n_bits: int,
) -> dict[str, SparseMatrix]:
    """The rows of the dense constraints have two entries each in A and B, those of the bits one and two."""
    n_dense = len(wires)
    dense = np.arange(n_dense, dtype=np.uint32)
    binary = np.arange(n_dense, n_dense + n_bits, dtype=np.uint32)
    bit_wires = np.arange(first_bit, first_bit + n_bits, dtype=np.uint32)
    new_wires = dense + np.uint32(first_bit + n_bits)
    one, minus_one = encode_scalars([1]), encode_scalars([curve.r - 1])
    ones, no_wires = np.broadcast_to(one, (n_dense, SCALAR_BYTES)), np.zeros(n_dense, np.uint32)
    bit_ones, bit_minus_ones = (np.broadcast_to(w, (n_bits, SCALAR_BYTES)) for w in (one, minus_one))

    def pairs(rows: NDArray[Any], *entries: tuple[NDArray[Any], NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Rows of two entries (wires, coefficients), as lists of entries."""
        columns, coefs = (np.stack(part, axis=1) for part in zip(*entries, strict=True))
        return np.repeat(rows, len(entries)), columns.reshape(-1), coefs.reshape(-1, SCALAR_BYTES)

    def matrix(*parts: tuple[NDArray[Any], ...]) -> SparseMatrix:
        return SparseMatrix(*(np.concatenate(piece) for piece in zip(*parts, strict=True)))

    return {
        "a": matrix(pairs(dense, (wires[:, 0], c), (wires[:, 1], ones)), (binary, bit_wires, bit_ones)),
        "b": matrix(
            pairs(dense, (no_wires, d), (wires[:, 2], ones)),
            pairs(binary, (np.zeros(n_bits, np.uint32), bit_minus_ones), (bit_wires, bit_ones)),
        ),
        "c": SparseMatrix(dense, new_wires, np.ascontiguousarray(ones)),
    }


def _stream(shape: Shape, name: str, n_bytes: int) -> bytes:
    label = f"freshproof synth {shape.curve.name} {shape.seed} {name}"
    return hashlib.shake_256(label.encode(errors="surrogateescape")).digest(n_bytes)


def _random_words(shape: Shape, name: str, count: int) -> NDArray[np.uint64]:
    return np.frombuffer(_stream(shape, name, 8 * count), "<u8").astype(np.uint64)


def _random_elements(shape: Shape, name: str, count: int) -> NDArray[np.uint8]:
    """(count, 32): uniform below the largest power of two that is below r."""
    data = _stream(shape, name, SCALAR_BYTES * count)
    words = np.frombuffer(data, np.uint8).reshape(count, SCALAR_BYTES).copy()
    words[:, -1] &= (1 << (shape.curve.r.bit_length() - 1) % 8) - 1
    return words
