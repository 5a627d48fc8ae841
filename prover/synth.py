"""Synthetic circuits of any size with a satisfying witness, the same for the same seed on every machine.

Two kinds of constraint, mixed in a given share:

    (c w_i + w_j) * (w_k + d) = w_new      dense: w_new is spread over the whole field
    w_bit * (w_bit - 1) = 0                binary: the witness of hash circuits is mostly such wires

with i, j, k random among the earlier wires, w_j itself dense, and c, d random. No wire comes twice in one
row: some readers keep only the last.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.errors import ConfigurationError
from prover.formats.r1cs import ConstraintSystem, SparseMatrix
from prover.qap import log_domain
from prover.scalars import encode_scalars

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prover.params import Curve

N_PUBLIC = 2
N_SEEDS = 8
"""Private wires of random value that the first dense constraints draw on."""
_WIDE = 48
"""Bytes reduced mod r for one field element: the bias is below 2^-128."""


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


def constraints_filling(log_domain: int) -> int:
    """The number of constraints that fills a domain of size 2^log_domain to the last row."""
    return (1 << log_domain) - N_PUBLIC - 1


def synthesize(shape: Shape) -> tuple[ConstraintSystem, NDArray[np.uint8]]:
    """A circuit and its witness, (n_wires, 32) in standard form. Raises `ConfigurationError` for a bad shape.

    Wires: 1 | public | seeds | bits | one a dense constraint. The dense constraints come first.
    """
    if shape.n_constraints < 1 or not 0 <= shape.binary_share <= 1:
        raise ConfigurationError("a circuit has at least one constraint, and a binary share from 0 to 1")
    curve, n_bits = shape.curve, shape.n_binary
    log_domain(curve, shape.n_constraints, N_PUBLIC)  # refuse before the work what no key could be made for
    n_dense = shape.n_constraints - n_bits
    first_bit = 1 + N_PUBLIC + N_SEEDS
    first_new = first_bit + n_bits
    wires = _pick_wires(shape, first_new, n_dense)
    c, d = (_random_elements(shape, name, n_dense) for name in "cd")
    known = [1, *_random_elements(shape, "inputs", N_PUBLIC + N_SEEDS)]
    bits = (_random_words(shape, "bits", n_bits) & np.uint64(1)).tolist()
    values = _extend([*known, *bits], wires, c, d, curve.r)
    system = ConstraintSystem(
        curve,
        n_wires=first_new + n_dense,
        n_outputs=0,
        n_public_inputs=N_PUBLIC,
        n_private_inputs=N_SEEDS + n_bits,
        n_constraints=shape.n_constraints,
        **_matrices(curve, wires, c, d, first_bit, n_bits),
    )
    return system, encode_scalars(values)


def _pick_wires(shape: Shape, first_new: int, n_dense: int) -> NDArray[np.uint32]:
    """i, j, k for each dense constraint: i any earlier wire, j one of random value, k any but wire 0."""
    picks = _random_words(shape, "picks", 3 * n_dense).reshape(n_dense, 3).T
    made = np.arange(n_dense, dtype=np.uint64)  # wires that the constraints before have added
    i = picks[0] % (first_new + made)
    j = 1 + picks[1] % (N_PUBLIC + N_SEEDS + made)
    j += np.where(j > N_PUBLIC + N_SEEDS, np.uint64(shape.n_binary), np.uint64(0))  # past the bits
    k = 1 + picks[2] % (first_new - 1 + made)
    return np.stack([np.where(i == j, 0, i), j, k], axis=1).astype(np.uint32)


def _extend(values: list[int], wires: NDArray[np.uint32], c: list[int], d: list[int], r: int) -> list[int]:
    """Add the value of each dense constraint's new wire."""
    for (i, j, k), c_, d_ in zip(wires.tolist(), c, d, strict=True):
        values.append((c_ * values[i] + values[j]) * (values[k] + d_) % r)
    return values


def _matrices(
    curve: Curve, wires: NDArray[np.uint32], c: list[int], d: list[int], first_bit: int, n_bits: int
) -> dict[str, SparseMatrix]:
    n_dense = len(wires)
    dense = np.arange(n_dense, dtype=np.uint32)
    binary = np.arange(n_dense, n_dense + n_bits, dtype=np.uint32)
    bit_wires = np.arange(first_bit, first_bit + n_bits, dtype=np.uint32)
    new_wires = dense + np.uint32(first_bit + n_bits)
    one, zero_wire = encode_scalars([1]), np.zeros
    ones, minus_ones = np.repeat(one, n_dense, 0), np.repeat(encode_scalars([curve.r - 1]), n_bits, 0)
    bit_ones = np.repeat(one, n_bits, 0)

    def by_row(*parts: tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]) -> SparseMatrix:
        rows, columns, coefs = (np.concatenate(piece) for piece in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return SparseMatrix(rows[order], columns[order], coefs[order])

    return {
        "a": by_row(
            (dense, wires[:, 0], encode_scalars(c)), (dense, wires[:, 1], ones), (binary, bit_wires, bit_ones)
        ),
        "b": by_row(
            (dense, zero_wire(n_dense, np.uint32), encode_scalars(d)),
            (dense, wires[:, 2], ones),
            (binary, zero_wire(n_bits, np.uint32), minus_ones),
            (binary, bit_wires, bit_ones),
        ),
        "c": by_row((dense, new_wires, ones)),
    }


def _stream(shape: Shape, name: str, n_bytes: int) -> bytes:
    label = f"freshproof synth {shape.curve.name} {shape.seed} {name}"
    return hashlib.shake_256(label.encode()).digest(n_bytes)


def _random_words(shape: Shape, name: str, count: int) -> NDArray[np.uint64]:
    return np.frombuffer(_stream(shape, name, 8 * count), "<u8").astype(np.uint64)


def _random_elements(shape: Shape, name: str, count: int) -> list[int]:
    data, r = _stream(shape, name, _WIDE * count), shape.curve.r
    return [int.from_bytes(data[i : i + _WIDE], "little") % r for i in range(0, len(data), _WIDE)]
