"""Witnesses of circom and snarkjs (``.wtns``, version 2): the value of every wire."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from prover.formats.container import (
    Container,
    Cursor,
    MalformedFile,
    first_not_below,
    open_container,
    write_container,
)
from prover.params import SCALAR_BYTES, Curve, curve_by_scalar_prime

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SECTIONS = {1: "header", 2: "values"}


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The value of every wire; wire 0 is the constant 1, then the public signals."""

    curve: Curve
    words: NDArray[np.uint8] = field(repr=False)
    """(n, 32): standard form, little-endian, each below r; a view of the file."""
    file: Container

    def public_signals(self, n_public: int) -> list[int]:
        """The values of wires 1..n_public."""
        return [int.from_bytes(row.tobytes(), "little") for row in self.words[1 : n_public + 1]]


def read_wtns(path: Path) -> Witness:
    """Map a witness and check it: sizes, every value below r, wire 0 equal to 1.

    Whether it satisfies a circuit shows when the proof is checked. Raises `Missing` and `MalformedFile`.
    """
    container = open_container(path, b"wtns", 2, SECTIONS, frozenset(SECTIONS))
    header = container.section(1)
    cursor = Cursor(header)
    n8 = cursor.u32("the size of a value")
    if n8 != SCALAR_BYTES:
        raise header.fault(0, f"values of {n8} bytes belong to no known curve")
    prime = cursor.integer(n8, "the prime r")
    curve = curve_by_scalar_prime(prime)
    if curve is None:
        raise header.fault(4, f"prime {prime} belongs to no known curve")
    count = cursor.u32("the number of values")
    cursor.end()
    values = container.section(2)
    words = values.array(count, SCALAR_BYTES)
    bad = first_not_below(words, curve.r)
    if bad is not None:
        raise values.fault(bad * SCALAR_BYTES, f"the value of wire {bad} is not below r")
    if not count or int.from_bytes(words[0].tobytes(), "little") != 1:
        raise values.fault(0, "wire 0 must be the constant 1")
    return Witness(curve, words, container)


def require_match(witness: Witness, curve: Curve, n_vars: int, key_path: Path) -> None:
    """Refuse a witness of another curve or with another number of wires than the key has."""
    path = witness.file.path
    remedy = "give the witness of the circuit that the key was made for"
    if witness.curve != curve:
        raise MalformedFile(
            path, f"is for {witness.curve.name}; {key_path} is for {curve.name}", remedy=remedy
        )
    if len(witness.words) != n_vars:
        raise MalformedFile(
            path, f"has {len(witness.words)} wires; {key_path} has {n_vars}", section="1", remedy=remedy
        )


def write_wtns(path: Path, curve: Curve, words: NDArray[np.uint8]) -> None:
    """Write a witness. ``words``: (n, 32), standard form, each below r."""
    header = struct.pack("<I", SCALAR_BYTES) + curve.r.to_bytes(SCALAR_BYTES, "little")
    header += struct.pack("<I", len(words))
    write_container(path, b"wtns", 2, {1: [header], 2: [words.tobytes()]})
