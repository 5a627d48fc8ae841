"""Sums of a few multiples on the CPU, by the host library: what blinds a proof and puts it together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prover.backends.host_library import load_library
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.scalars import encode_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from prover.artifact import Artifact
    from prover.params import Curve, G1Point, G2Point

G1, G2 = 1, 2
"""The groups' numbers in the library's interface."""

CHOOSE_WINDOW = 0
ONE_THREAD = 1
"""A few points are summed sooner than threads start."""


class HostCombine:
    """One loaded host library, for single points. The CUDA backend has it beside its kernels."""

    def __init__(self, curve: Curve, artifact: Artifact) -> None:
        """Raises `Refused` when the library in this process is not the admitted one; see `load_library`."""
        self.curve = curve
        self.library, self.loaded = load_library(artifact, curve.name)

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """sum scalars[i] * points[i] in G1."""
        return decode_g1(self.curve, self._sum(G1, scalars, [encode_g1(self.curve, p) for p in points]))

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """sum scalars[i] * points[i] in G2."""
        return decode_g2(self.curve, self._sum(G2, scalars, [encode_g2(self.curve, p) for p in points]))

    def _sum(self, group: int, scalars: Sequence[int], points: list[bytes]) -> memoryview:
        rows: NDArray[np.uint8] = np.frombuffer(b"".join(points), np.uint8).reshape(len(points), -1)
        out = np.empty(rows.shape[1], np.uint8)
        words = encode_scalars(scalars)
        self.library.call("msm", group, rows, words, len(rows), CHOOSE_WINDOW, ONE_THREAD, out)
        return out.data
