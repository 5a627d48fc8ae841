"""Constraint systems of circom (``.r1cs``, version 1): rows A, B, C with (A.w) * (B.w) = C.w."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from prover.formats.container import (
    Cursor,
    Section,
    first_not_below,
    open_container,
    write_container,
)
from prover.params import SCALAR_BYTES, Curve, curve_by_scalar_prime

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SECTIONS = {1: "header", 2: "constraints", 3: "wire labels", 4: "custom gates", 5: "custom gate uses"}
REQUIRED = frozenset({1, 2})

_U32 = struct.Struct("<I")
_TERM = np.dtype([("wire", "<u4"), ("coef", "u1", (SCALAR_BYTES,))])


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """Entries (row, wire, coefficient), by row."""

    rows: NDArray[np.uint32]
    wires: NDArray[np.uint32]
    coefs: NDArray[np.uint8] = field(repr=False)
    """(entries, 32): standard form, little-endian, below r."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintSystem:
    """A rank-1 constraint system. Wire 0 is the constant 1; then outputs, public inputs, private wires."""

    curve: Curve
    n_wires: int
    n_outputs: int
    n_public_inputs: int
    n_private_inputs: int
    n_constraints: int
    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix

    @property
    def n_public(self) -> int:
        """Public signals: outputs and public inputs."""
        return self.n_outputs + self.n_public_inputs


def read_r1cs(path: Path) -> ConstraintSystem:
    """Read a constraint system. Raises `Missing` and `MalformedFile`; refuses custom gates (PLONK)."""
    container = open_container(path, b"r1cs", 1, SECTIONS, REQUIRED)
    for kind in (4, 5):
        gates = container.sections.get(kind)
        if gates is not None and any(gates.data[:4]):
            raise gates.fault(0, "custom gates cannot be proven with Groth16", remedy="compile without them")
    header = container.section(1)
    cursor = Cursor(header)
    n8 = cursor.u32("the size of a coefficient")
    if n8 != SCALAR_BYTES:
        raise header.fault(0, f"coefficients of {n8} bytes belong to no known curve")
    prime = cursor.integer(n8, "the prime r")
    curve = curve_by_scalar_prime(prime)
    if curve is None:
        raise header.fault(4, f"prime {prime} belongs to no known curve")
    at = cursor.position
    n_wires, n_outputs = cursor.u32("nWires"), cursor.u32("nPubOut")
    n_public_inputs, n_private_inputs = cursor.u32("nPubIn"), cursor.u32("nPrvIn")
    cursor.u64("nLabels")
    n_constraints = cursor.u32("nConstraints")
    cursor.end()
    if n_outputs + n_public_inputs + n_private_inputs >= n_wires:
        raise header.fault(at, f"nWires = {n_wires} is too few for its inputs, outputs and the constant 1")
    a, b, c = _read_matrices(container.section(2), curve, n_wires, n_constraints)
    return ConstraintSystem(
        curve, n_wires, n_outputs, n_public_inputs, n_private_inputs, n_constraints, a, b, c
    )


def _read_matrices(section: Section, curve: Curve, n_wires: int, n_constraints: int) -> list[SparseMatrix]:
    data, end = section.data, len(section.data)
    if n_constraints * 3 * _U32.size > end:
        raise section.fault(0, f"is too short for the {n_constraints} constraints that the header promises")
    starts = np.empty(3 * n_constraints, np.int64)
    counts = np.empty(3 * n_constraints, np.int64)
    position = 0
    for index in range(3 * n_constraints):
        if end - position < _U32.size:
            raise section.fault(position, f"ends inside constraint {index // 3}")
        (count,) = _U32.unpack_from(data, position)
        starts[index], counts[index] = position + _U32.size, count
        position += _U32.size + count * _TERM.itemsize
        if position > end:
            raise section.fault(
                int(starts[index]) - _U32.size,
                f"constraint {index // 3} claims {count} terms; the section ends before them",
            )
    if position != end:
        raise section.fault(position, f"{end - position} bytes follow the last constraint")
    return [_gather(section, curve, n_wires, starts[which::3], counts[which::3]) for which in range(3)]


def _gather(
    section: Section, curve: Curve, n_wires: int, starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> SparseMatrix:
    """The terms of every third linear combination, copied out of the section."""
    rows = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = np.repeat(starts, counts) + nth * _TERM.itemsize
    raw = np.frombuffer(section.data, np.uint8)
    terms = np.empty(len(rows), _TERM)
    flat = terms.view(np.uint8).reshape(-1, _TERM.itemsize)
    for byte in range(_TERM.itemsize):
        flat[:, byte] = raw[offsets + byte]
    wrong = np.flatnonzero(terms["wire"] >= n_wires)
    if len(wrong):
        index = int(wrong[0])
        raise section.fault(
            int(offsets[index]), f"wire {terms['wire'][index]} is not below nWires = {n_wires}"
        )
    bad = first_not_below(terms["coef"], curve.r)
    if bad is not None:
        raise section.fault(int(offsets[bad]) + 4, "a coefficient is not below r")
    return SparseMatrix(rows, terms["wire"].copy(), terms["coef"].copy())


def write_r1cs(path: Path, system: ConstraintSystem) -> None:
    """Write a constraint system, wires labelled by their own numbers."""
    counts = (system.n_wires, system.n_outputs, system.n_public_inputs, system.n_private_inputs)
    header = _U32.pack(SCALAR_BYTES) + system.curve.r.to_bytes(SCALAR_BYTES, "little")
    header += struct.pack("<IIIIQI", *counts, system.n_wires, system.n_constraints)
    labels = np.arange(system.n_wires, dtype="<u8").tobytes()
    write_container(path, b"r1cs", 1, {2: [_pack_matrices(system)], 1: [header], 3: [labels]})


def _pack_matrices(system: ConstraintSystem) -> bytes:
    parts: list[bytes] = []
    packed = []
    for matrix in (system.a, system.b, system.c):
        terms = np.empty(len(matrix.rows), _TERM)
        terms["wire"], terms["coef"] = matrix.wires, matrix.coefs
        bounds = np.searchsorted(matrix.rows, np.arange(system.n_constraints + 1)).tolist()
        packed.append((terms.tobytes(), bounds))
    for row in range(system.n_constraints):
        for data, bounds in packed:
            first, last = bounds[row], bounds[row + 1]
            parts += [_U32.pack(last - first), data[first * _TERM.itemsize : last * _TERM.itemsize]]
    return b"".join(parts)
