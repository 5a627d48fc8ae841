"""Sums of a few multiples on the CPU, by the host library: what blinds a proof and puts it together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prover.backends.host_library import load_library
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.scalars import encode_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.artifact import Artifact
    from prover.params import Curve, G1Point, G2Point

G1, G2 = 1, 2
"""The groups' numbers in the library's interface."""

CHOOSE_WINDOW = 0
ONE_THREAD = 1
"""A few points are summed sooner than threads start."""
KEPT_BITS = 5
"""c: a multiple is kept for every so many bits of a scalar. Of 3 to 8, the fewest microseconds."""


class HostCombine:
    """One loaded host library, for single points. The CUDA backend has it beside its kernels."""

    def __init__(self, curve: Curve, artifact: Artifact) -> None:
        """Raises `Refused` when the library in this process is not the admitted one; see `load_library`."""
        self.curve = curve
        self.library, self.loaded = load_library(artifact, curve.name)
        self._kept: dict[tuple[int, G1Point | G2Point], bytes] = {}
        self._places = range(0, curve.r.bit_length(), KEPT_BITS)

    def keep_g1(self, point: G1Point) -> None:
        """Make products with a point that comes again and again faster: less than half the time."""
        self._kept[G1, point] = self._multiples(point, self.combine_g1, encode_g1)

    def keep_g2(self, point: G2Point) -> None:
        """As `keep_g1`: a third of the time."""
        self._kept[G2, point] = self._multiples(point, self.combine_g2, encode_g2)

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """sum scalars[i] * points[i] in G1."""
        return decode_g1(self.curve, self._sum(G1, scalars, points, encode_g1))

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """sum scalars[i] * points[i] in G2."""
        return decode_g2(self.curve, self._sum(G2, scalars, points, encode_g2))

    def _multiples(self, point: Any, combine: Any, encode: Any) -> bytes:
        """2^(c j) times the point, for every c bits of a scalar: a sum over these needs no doublings."""
        data = b""
        for _ in self._places:
            data += encode(self.curve, point)
            point = combine([1 << KEPT_BITS], [point])
        return data

    def _sum(self, group: int, scalars: Sequence[int], points: Sequence[Any], encode: Any) -> memoryview:
        kept = [self._kept.get((group, point)) for point in points]
        products = [multiples for scalar, multiples in zip(scalars, kept, strict=True) if scalar > 1]
        if products and all(products):
            rows, terms = self._split(scalars, points, kept, encode)
            window = KEPT_BITS + 1
        else:  # a product that needs doublings has them for all
            rows, terms = b"".join(encode(self.curve, point) for point in points), list(scalars)
            window = CHOOSE_WINDOW
        out = np.empty(len(rows) // len(terms), np.uint8)
        data, words = np.frombuffer(rows, np.uint8), encode_scalars(terms)
        self.library.call("msm", group, data, words, len(terms), window, ONE_THREAD, out)
        return out.data

    def _split(
        self, scalars: Sequence[int], points: Sequence[Any], kept: Sequence[bytes | None], encode: Any
    ) -> tuple[bytes, list[int]]:
        """The same sum over the kept multiples, with small scalars."""
        rows, terms = b"", []
        for scalar, point, multiples in zip(scalars, points, kept, strict=True):
            if multiples is None or scalar < 2:
                rows += encode(self.curve, point)
                terms.append(scalar)
            else:
                rows += multiples
                terms += [scalar >> at & ((1 << KEPT_BITS) - 1) for at in self._places]
        return rows, terms
