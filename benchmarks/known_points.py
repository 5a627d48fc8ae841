"""Points on the GPU whose discrete logarithms are known, and what an MSM over them must give.

A pool of consecutive multiples comes from the oracle; each level then doubles every point there is a number
of times of its own, on the GPU. Point ``i + pool * j`` is 2^e(j) times point ``i`` of the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prover.backends.cuda_device import Buffer, Memory, Stream
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.reference import g1, g2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prover.backends.cuda_msm import Msm

LOG_POOL = 9
FIRST, STEP = 0x1234567890ABCDEF1234567890ABCDEF, 0x77777777777777777777
DOUBLINGS = (250, 230, 210, 190, 170, 150, 120, 100, 80, 48, 32, 16, 8, 7, 4, 2, 1)
"""By level, most first, while there are few points; sums of them are 2^17 exponents with few equal ones."""
LIMB_BITS, LIMBS = 16, 16
STRIP = 1024
"""Scalars of each point of the pool that are summed at once."""


def making_bytes(msm: Msm, log_n: int) -> int:
    """Device memory that making 2^log_n points takes beside them."""
    return msm.doubling_scratch_bytes(1 << max(log_n - 1, min(log_n, LOG_POOL)))


class KnownPoints:
    """2^log_n points of the group of ``msm`` in ``points``."""

    def __init__(self, msm: Msm, log_n: int, memory: Memory, stream: Stream) -> None:
        curve = msm.curve
        self._msm = msm
        self._group: Any = g1(curve) if msm.group == "g1" else g2(curve)
        self._generator: Any = curve.generator_g1 if msm.group == "g1" else curve.generator_g2
        log_pool = min(log_n, LOG_POOL)
        self._logs = [(FIRST + STEP * i) % curve.r for i in range(1 << log_pool)]
        self._levels = DOUBLINGS[: log_n - log_pool]
        self.points = memory.allocate(msm.point_bytes << log_n, "points")
        self.points.upload(self._pool(), stream)
        count = len(self._logs)
        scratch = memory.allocate(making_bytes(msm, log_n), "doubling")
        for times in self._levels:
            size = msm.point_bytes * count
            target = self.points.part(size, size)
            msm.double(self.points.part(0, size), count, times, target, scratch, stream)
            count *= 2
        stream.synchronize()
        memory.free(scratch)

    def _pool(self) -> NDArray[np.uint8]:
        encode: Any = encode_g1 if self._msm.group == "g1" else encode_g2
        point = self._group.multiply(FIRST, self._generator)
        step = self._group.multiply(STEP, self._generator)
        data = bytearray()
        for _ in self._logs:
            data += encode(self._msm.curve, point)
            point = self._group.add(point, step)
        return np.frombuffer(bytes(data), np.uint8)

    def release(self, memory: Memory) -> None:
        """Give the points' memory back; what they sum to is known without them."""
        memory.free(self.points)

    def expected(self, scalars: NDArray[np.uint8]) -> Any:
        """The MSM over the first ``len(scalars)`` points, a power of two. Exact: sums stay below 2^53."""
        r, pool = self._msm.curve.r, min(len(self._logs), len(scalars))
        exponents = [0]
        for times in self._levels:
            exponents += [e + times for e in exponents]
        factors = _limbs(b"".join(pow(2, e, r).to_bytes(32, "little") for e in exponents))
        # limbs[j, i, b]: limb b of the scalar of point i + pool * j. A matrix product over j sums by i.
        limbs = scalars.view("<u2").reshape(-1, pool * LIMBS)
        sums = np.zeros((LIMBS, pool * LIMBS))
        for j in range(0, len(limbs), STRIP):
            sums += factors[j : j + STRIP][: len(limbs) - j].T @ limbs[j : j + STRIP].astype(np.float64)
        log = 0
        for own, row in zip(self._logs, sums.reshape(LIMBS, pool, LIMBS).transpose(1, 0, 2), strict=False):
            total = sum(int(row[a, b]) << LIMB_BITS * (a + b) for a in range(LIMBS) for b in range(LIMBS))
            log += total % r * own
        return self._group.multiply(log % r, self._generator) if log % r else None

    def decode(self, result: Buffer, stream: Stream) -> Any:
        """A result of the MSM as the oracle represents points."""
        decode: Any = decode_g1 if self._msm.group == "g1" else decode_g2
        return decode(self._msm.curve, result.download(stream).tobytes())


def _limbs(data: bytes) -> NDArray[np.float64]:
    """32-byte integers as rows of 16 limbs."""
    return np.frombuffer(data, "<u2").reshape(-1, LIMBS).astype(np.float64)
