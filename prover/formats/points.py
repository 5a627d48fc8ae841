"""Affine points: the bytes of key files <-> Python integers.

In files: Montgomery form, little-endian, all zero = identity.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prover.params import Curve, G1Point, G2Point


@cache
def _inverse_radix(curve: Curve) -> int:
    """Inverting takes ten times as long as all the rest of decoding a point."""
    return pow(curve.radix_q, -1, curve.q)


def _coordinates(curve: Curve, data: bytes | memoryview, count: int) -> list[int]:
    width = curve.q_bytes
    if len(data) != count * width:
        raise ValueError(f"a point of {len(data)} bytes; {count * width} wanted")
    inverse = _inverse_radix(curve)
    raw = [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)]
    if any(value >= curve.q for value in raw):
        raise ValueError("a coordinate that is not below q")
    return [value * inverse % curve.q for value in raw]


def decode_g1(curve: Curve, data: bytes | memoryview) -> G1Point:
    """The point of ``g1_bytes`` bytes, not checked to be on the curve. Raises `ValueError` above q."""
    x, y = _coordinates(curve, data, 2)
    return (x, y) if x or y else None


def decode_g2(curve: Curve, data: bytes | memoryview) -> G2Point:
    """The point of ``g2_bytes`` bytes, not checked to be on the curve. Raises `ValueError` above q."""
    x0, x1, y0, y1 = _coordinates(curve, data, 4)
    return ((x0, x1), (y0, y1)) if x0 or x1 or y0 or y1 else None


def encode_g1(curve: Curve, point: G1Point) -> bytes:
    """``g1_bytes`` bytes as in key files."""
    return _encode(curve, point if point is not None else (0, 0))


def encode_g2(curve: Curve, point: G2Point) -> bytes:
    """``g2_bytes`` bytes as in key files."""
    return _encode(curve, (*point[0], *point[1]) if point is not None else (0, 0, 0, 0))


def _encode(curve: Curve, coordinates: tuple[int, ...]) -> bytes:
    radix = curve.radix_q
    return b"".join((v * radix % curve.q).to_bytes(curve.q_bytes, "little") for v in coordinates)
