"""What makes and checks keys on the GPU: multiples of the generators, and points against their curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from prover.backends.cuda_device import Memory, Stream
from prover.backends.cuda_module import LoadedModule
from prover.formats.points import encode_g1, encode_g2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prover.backends.cuda_device import Buffer
    from prover.params import Curve

    Group = Literal["g1", "g2"]

BLOCK = 128
TABLE_POINTS = 32 * 255
"""One for each value but 0 of each of a scalar's 32 bytes."""
CHUNK = 1 << 19
"""Scalars at a time: bounds the scratch memory to 384 bytes times this."""
AFFINE_THREADS = 1 << 14
"""Threads that turn a chunk affine, each with one inversion: 32 points share one."""


class Setup:
    """Kernels over the groups of one curve."""

    def __init__(self, module: LoadedModule, curve: Curve, memory: Memory, stream: Stream) -> None:
        self._module = module
        self._curve = curve
        self._memory = memory
        self._stream = stream

    def first_off_curve(self, points: Buffer, count: int, group: Group) -> int | None:
        """The first of ``count`` affine points that is neither the identity nor on the curve."""
        first = self._memory.allocate(4, "a check's result")
        try:
            first.fill(0xFF, self._stream)
            if count:
                args = (first, points, np.uint32(count))
                self._module.kernel(f"setup_check_{group}")(-(-count // BLOCK), BLOCK, args, self._stream)
            found = int(first.download(self._stream).view(np.uint32)[0])
        finally:
            self._memory.free(first)
        return None if found == 0xFFFFFFFF else found

    def multiples(self, scalars: NDArray[np.uint8], group: Group) -> NDArray[np.uint8]:
        """k times the generator for each scalar, as in key files."""
        curve = self._curve
        if group == "g1":
            width, generator = curve.g1_bytes, encode_g1(curve, curve.generator_g1)
        else:
            width, generator = curve.g2_bytes, encode_g2(curve, curve.generator_g2)
        out = np.empty((len(scalars), width), np.uint8)
        chunk = min(CHUNK, max(1, len(scalars)))
        sizes = {"scalars": 32, "sums": 2 * width, "affine": width}
        at = {k: self._memory.allocate(size * chunk, f"multiples: {k}") for k, size in sizes.items()}
        at["table"] = self._memory.allocate(TABLE_POINTS * width, "multiples: table")
        at["generator"] = self._memory.allocate(width, "multiples: generator")
        try:
            at["generator"].upload(np.frombuffer(generator, np.uint8), self._stream)
            table = self._module.kernel(f"setup_table_{group}")
            table(-(-TABLE_POINTS // BLOCK), BLOCK, (at["table"], at["generator"]), self._stream)
            for start in range(0, len(scalars), chunk):
                part = np.ascontiguousarray(scalars[start : start + chunk])
                self._chunk(part, at, group)
                out[start : start + len(part)] = (
                    at["affine"].part(0, len(part) * width).download(self._stream).reshape(-1, width)
                )
        finally:
            self._stream.synchronize()
            for buffer in at.values():
                self._memory.free(buffer)
        return out

    def _chunk(self, scalars: NDArray[np.uint8], at: dict[str, Buffer], group: Group) -> None:
        n = np.uint32(len(scalars))
        at["scalars"].upload(scalars, self._stream)
        multiply = self._module.kernel(f"setup_multiply_{group}")
        args = (at["sums"], at["scalars"], at["table"], n)
        multiply(-(-len(scalars) // BLOCK), BLOCK, args, self._stream)
        to_affine = self._module.kernel(f"setup_affine_{group}")
        blocks = -(-min(AFFINE_THREADS, len(scalars)) // BLOCK)
        to_affine(blocks, BLOCK, (at["affine"], at["sums"], n), self._stream)
