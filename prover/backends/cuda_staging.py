"""Copies to the GPU from ordinary memory, through page-locked slots.

A copy from pageable memory runs at a tenth of the bus's speed (5 against 55 GB/s on an H200's host). Here
host threads fill one slot while the bus empties another, so their memory bandwidth is the limit.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from prover.backends.cuda_device import Buffer, Event, Pinned, Stream, checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOT_BYTES = 16 << 20
SLOTS = 3
PIECE_BYTES = 2 << 20
"""What one thread copies at a time."""


class Staging:
    """A ring of page-locked slots. One upload at a time."""

    def __init__(self) -> None:
        pinned = Pinned(SLOTS * SLOT_BYTES, "staging of copies to the GPU")
        self._slots = [pinned.array[k * SLOT_BYTES : (k + 1) * SLOT_BYTES] for k in range(SLOTS)]
        self._emptied = [Event(disable_timing=True) for _ in range(SLOTS)]
        self._threads = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="staging")

    def upload(self, array: NDArray[Any], target: Buffer, stream: Stream) -> None:
        """Copy a C-contiguous array to the start of a buffer, ordered on the stream.

        The array is free when this returns; the last slots may still be on their way.
        """
        data = array.reshape(-1).view(np.uint8)
        if data.nbytes > target.nbytes:
            raise ValueError(f"cannot upload {data.nbytes} bytes into a buffer of {target.nbytes}")
        for number, start in enumerate(range(0, data.nbytes, SLOT_BYTES)):
            piece = data[start : start + SLOT_BYTES]
            slot, emptied = self._slots[number % SLOTS], self._emptied[number % SLOTS]
            with checked("upload"):
                emptied.synchronize()
            self._fill(slot, piece)
            target.part(start, piece.nbytes).upload(slot[: piece.nbytes], stream)
            with checked("upload"):
                emptied.record(stream)

    def scrub(self) -> None:
        """Overwrite what the slots held; no upload is under way."""
        for slot in self._slots:
            slot.fill(0)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _fill(self, slot: NDArray[np.uint8], piece: NDArray[np.uint8]) -> None:
        if piece.nbytes <= PIECE_BYTES:
            slot[: piece.nbytes] = piece
            return

        def copy(start: int) -> None:
            part = piece[start : start + PIECE_BYTES]
            np.copyto(slot[start : start + part.nbytes], part)

        list(self._threads.map(copy, range(0, piece.nbytes, PIECE_BYTES)))
