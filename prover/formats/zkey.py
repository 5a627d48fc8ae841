"""Groth16 proving keys of snarkjs (``.zkey``, version 1).

The points and the matrix entries stay in the mapped file: a key of gigabytes costs no copy. Every rule that
the arithmetic relies on (sizes, indices, ranges) is checked here, vectorised; so are the curve equations of
the header's points and of IC. Those of the queries are for the backend (`Backend.check_points`), which has
fast arithmetic; subgroups are for `prover.check`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from prover.formats.container import (
    Container,
    Cursor,
    Section,
    first_in_slices,
    first_not_below,
    open_container,
    write_container,
)
from prover.formats.points import decode_g1, decode_g2
from prover.groth16 import VerificationKey
from prover.params import CURVES, SCALAR_BYTES, Curve, G1Point, G2Point, curve_by_primes
from prover.reference import g1, g2

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SECTIONS = {
    1: "protocol",
    2: "header",
    3: "IC points",
    4: "matrix entries",
    5: "A points",
    6: "B1 points",
    7: "B2 points",
    8: "L points",
    9: "H points",
    10: "contributions",
}
REQUIRED = frozenset(range(1, 10))
PROTOCOL_GROTH16 = 1
_U32 = struct.Struct("<I")

COEF = np.dtype([("matrix", "<u4"), ("constraint", "<u4"), ("wire", "<u4"), ("value", "u1", (SCALAR_BYTES,))])
"""One matrix entry: matrix 0 = A, 1 = B; value = coefficient * R^2 mod r ("double Montgomery"), so that one
Montgomery multiplication by a standard-form witness word gives coefficient * wire in Montgomery form."""

COEF_ROWS = np.dtype([*COEF.descr[:3], ("value", f"V{SCALAR_BYTES}")])
"""`COEF` with its value as one item: NumPy copies that many times sooner than bytes."""


def entries_of(
    matrix: int, constraints: NDArray[Any], wires: NDArray[Any], values: NDArray[np.uint8]
) -> NDArray[Any]:
    """Entries of one matrix, (n,) of `COEF`. ``values``: (n, 32), coefficient * R^2."""
    entries = np.empty(len(constraints), COEF)
    entries["matrix"], entries["constraint"], entries["wire"] = matrix, constraints, wires
    rows = np.ascontiguousarray(values).view(f"V{SCALAR_BYTES}").reshape(-1)
    entries.view(COEF_ROWS)["value"] = rows
    return entries


@dataclass(frozen=True, slots=True, eq=False)
class ProvingKey:
    """A proving key. Single points are integers; queries are views of the file, one row a point."""

    curve: Curve
    n_vars: int
    """Wires, the constant 1 included."""
    n_public: int
    """Public signals (outputs, then inputs), the constant 1 not included."""
    domain_size: int
    alpha_g1: G1Point
    beta_g1: G1Point
    beta_g2: G2Point
    gamma_g2: G2Point
    delta_g1: G1Point
    delta_g2: G2Point
    ic: NDArray[np.uint8] = field(repr=False)
    """(n_public + 1, g1_bytes): for the constant and the public signals, over gamma."""
    a_query: NDArray[np.uint8] = field(repr=False)
    """(n_vars, g1_bytes)"""
    b_g1_query: NDArray[np.uint8] = field(repr=False)
    """(n_vars, g1_bytes)"""
    b_g2_query: NDArray[np.uint8] = field(repr=False)
    """(n_vars, g2_bytes)"""
    l_query: NDArray[np.uint8] = field(repr=False)
    """(n_vars - n_public - 1, g1_bytes): for wires n_public + 1 and up, over delta."""
    h_query: NDArray[np.uint8] = field(repr=False)
    """(domain_size, g1_bytes): Lagrange basis at the odd points of the doubled domain, over delta."""
    coefs: NDArray[Any] = field(repr=False)
    """(n_coefs,) of `COEF`, in any order."""
    file: Container

    @property
    def log_domain(self) -> int:
        """k, where domain_size = 2^k."""
        return self.domain_size.bit_length() - 1

    @property
    def n_constraints(self) -> int:
        """Constraints of the circuit: the matrices end with n_public + 1 rows of their own."""
        rows = int(self.coefs["constraint"].max(initial=0)) + 1
        return max(0, rows - self.n_public - 1)

    def verification_key(self) -> VerificationKey:
        """What a verifier of this key's proofs needs."""
        return VerificationKey(
            self.curve,
            alpha=self.alpha_g1,
            beta=self.beta_g2,
            gamma=self.gamma_g2,
            delta=self.delta_g2,
            ic=tuple(decode_g1(self.curve, row.data) for row in self.ic),
        )

    def query_section(self, query: str) -> Section:
        """The section of the file that holds a query, for messages."""
        return self.file.section(_QUERY_SECTIONS[query])


_QUERY_SECTIONS = {"a_query": 5, "b_g1_query": 6, "b_g2_query": 7, "l_query": 8, "h_query": 9}


def read_zkey(path: Path) -> ProvingKey:
    """Map a key and check everything but the queries' curve equations, and subgroups.

    Raises `Missing` (no such file) and `MalformedFile`; an unknown curve or protocol, too.
    """
    container = open_container(path, b"zkey", 1, SECTIONS, REQUIRED)
    protocol = Cursor(container.section(1))
    kind = protocol.u32("the protocol")
    if kind != PROTOCOL_GROTH16:
        raise container.section(1).fault(
            0, f"protocol {kind} is not Groth16 (1)", remedy="make the key with `snarkjs groth16 setup`"
        )
    protocol.end()
    header = _read_header(container.section(2))
    key = _map_queries(container, header)
    _check_entries(key)
    _check_coordinates(key)
    _check_ic(key)
    return key


@dataclass(frozen=True, slots=True)
class _Header:
    curve: Curve
    n_vars: int
    n_public: int
    domain_size: int
    points: dict[str, Any]


def _read_header(section: Section) -> _Header:
    cursor = Cursor(section)
    q = cursor.integer(_field_bytes(cursor, "q"), "the prime q")
    r = cursor.integer(_field_bytes(cursor, "r"), "the prime r")
    curve = curve_by_primes(q, r)
    if curve is None:
        known = ", ".join(c.file_name for c in CURVES)
        raise section.fault(0, f"primes q = {q}, r = {r} belong to no known curve", remedy=f"known: {known}")
    at = cursor.position
    n_vars, n_public = cursor.u32("nVars"), cursor.u32("nPublic")
    domain_size = cursor.u32("domainSize")
    if n_public >= n_vars:
        raise section.fault(
            at + 4, f"nPublic = {n_public} leaves no wire for the constant 1: nVars = {n_vars}"
        )
    if domain_size < 1 or domain_size & (domain_size - 1):
        raise section.fault(at + 8, f"domainSize = {domain_size} is not a power of two")
    if domain_size > curve.max_domain:
        raise section.fault(
            at + 8, f"domainSize = {domain_size} is more than {curve.name} allows, {curve.max_domain}"
        )
    points = {name: _read_point(cursor, curve, name) for name in _HEADER_POINTS}
    cursor.end()
    return _Header(curve, n_vars, n_public, domain_size, points)


_HEADER_POINTS = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")


def _field_bytes(cursor: Cursor, name: str) -> int:
    at = cursor.position
    n8 = cursor.u32(f"the size of {name}")
    allowed = {c.q_bytes for c in CURVES} if name == "q" else {SCALAR_BYTES}
    if n8 not in allowed:
        raise cursor.section.fault(at, f"{name} of {n8} bytes belongs to no known curve")
    return n8


def _read_point(cursor: Cursor, curve: Curve, name: str) -> G1Point | G2Point:
    at = cursor.position
    in_g1 = name.endswith("g1")
    data = cursor.take(curve.g1_bytes if in_g1 else curve.g2_bytes, name)
    try:
        point: Any = decode_g1(curve, data) if in_g1 else decode_g2(curve, data)
    except ValueError as error:
        raise cursor.section.fault(at, f"{name}: {error}") from None
    if point is None:
        raise cursor.section.fault(at, f"{name} is the identity")
    group: Any = g1(curve) if in_g1 else g2(curve)
    if not group.is_on_curve(point):
        raise cursor.section.fault(at, f"{name} is not on the curve")
    return cast("G1Point | G2Point", point)


def _map_queries(container: Container, header: _Header) -> ProvingKey:
    curve, n_vars, n_public = header.curve, header.n_vars, header.n_public
    entries = container.section(4)
    count = Cursor(entries).u32("the number of entries")
    return ProvingKey(
        curve=curve,
        n_vars=n_vars,
        n_public=n_public,
        domain_size=header.domain_size,
        **header.points,
        ic=container.section(3).array(n_public + 1, curve.g1_bytes),
        a_query=container.section(5).array(n_vars, curve.g1_bytes),
        b_g1_query=container.section(6).array(n_vars, curve.g1_bytes),
        b_g2_query=container.section(7).array(n_vars, curve.g2_bytes),
        l_query=container.section(8).array(n_vars - n_public - 1, curve.g1_bytes),
        h_query=container.section(9).array(header.domain_size, curve.g1_bytes),
        coefs=entries.array(count, COEF.itemsize, start=4).reshape(-1).view(COEF),
        file=container,
    )


def _check_entries(key: ProvingKey) -> None:
    section = key.file.section(4)

    def refuse(index: int, field_name: str, what: str) -> None:
        fields = COEF.fields
        assert fields is not None
        at = 4 + index * COEF.itemsize + fields[field_name][1]
        raise section.fault(at, f"entry {index}: {what}")

    limits = (
        ("matrix", 2, "matrix {} is neither A (0) nor B (1)"),
        ("constraint", key.domain_size, f"row {{}} is not below domainSize = {key.domain_size}"),
        ("wire", key.n_vars, f"wire {{}} is not below nVars = {key.n_vars}"),
    )
    for name, limit, message in limits:
        index = _first_reaching(key.coefs[name], limit)
        if index is not None:
            refuse(index, name, message.format(int(key.coefs[name][index])))
    bad = first_not_below(key.coefs["value"], key.curve.r)
    if bad is not None:
        refuse(bad, "value", "the coefficient is not below r")


def _first_reaching(values: NDArray[np.uint32], limit: int) -> int | None:
    def first_in(start: int, end: int) -> int | None:
        wrong = np.flatnonzero(values[start:end] >= limit)
        return start + int(wrong[0]) if len(wrong) else None

    return first_in_slices(len(values), first_in)


def _check_coordinates(key: ProvingKey) -> None:
    width = key.curve.q_bytes
    queries = {3: key.ic, **{kind: getattr(key, name) for name, kind in _QUERY_SECTIONS.items()}}
    for kind, points in queries.items():
        bad = first_not_below(points.reshape(-1, width), key.curve.q)
        if bad is not None:
            point = bad * width // points.shape[1]
            raise key.file.section(kind).fault(bad * width, f"point {point}: a coordinate is not below q")


def _check_ic(key: ProvingKey) -> None:
    group, width = g1(key.curve), key.curve.g1_bytes
    for index, row in enumerate(key.ic):
        if not group.is_on_curve(decode_g1(key.curve, row.data)):
            raise key.file.section(3).fault(index * width, f"point {index} is not on the curve")


def write_zkey(
    path: Path,
    curve: Curve,
    *,
    n_public: int,
    singles: Sequence[bytes],
    ic: NDArray[np.uint8],
    a_query: NDArray[np.uint8],
    b_g1_query: NDArray[np.uint8],
    b_g2_query: NDArray[np.uint8],
    l_query: NDArray[np.uint8],
    h_query: NDArray[np.uint8],
    coefs: NDArray[Any],
) -> None:
    """Write a key without contributions. ``singles`` are the header's points in order, encoded."""
    header = _U32.pack(curve.q_bytes) + curve.q.to_bytes(curve.q_bytes, "little")
    header += _U32.pack(SCALAR_BYTES) + curve.r.to_bytes(SCALAR_BYTES, "little")
    header += struct.pack("<III", len(a_query), n_public, len(h_query)) + b"".join(singles)
    queries = {3: ic, 5: a_query, 6: b_g1_query, 7: b_g2_query, 8: l_query, 9: h_query}
    sections: dict[int, Sequence[bytes | memoryview]] = {1: [_U32.pack(PROTOCOL_GROTH16)], 2: [header]}
    sections[4] = [_U32.pack(len(coefs)), _bytes_of(coefs)]
    sections |= {kind: [_bytes_of(points)] for kind, points in queries.items()}
    sections[10] = [bytes(64), _U32.pack(0)]  # no circuit hash, no contributions
    write_container(path, b"zkey", 1, sections)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
