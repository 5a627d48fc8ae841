"""Copies to the GPU from ordinary memory, through page-locked slots.

A copy from pageable memory runs at a tenth of the bus's speed (5 against 55 GB/s on an H200's host). Here
host threads fill some slots while the bus empties others: 50 GB/s with eight threads.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from prover.backends.cuda_device import Buffer, Event, Pinned, Stream, checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOT_BYTES = 4 << 20
"""A piece that one thread copies, and one transfer. Handing out a piece takes Python some 60 us: 17 GB/s with
pieces of 1 MiB, 40 with 2, 50 with 4, 48 with 8."""
SLOTS = 16
THREADS = 8
"""With 16 threads on 16 processors: 41 GB/s."""
LEAST_PIECE = 1 << 20
"""Small arrays are cut finer, so that every thread has a part."""


class Made(Protocol):
    """Bytes that are made piece by piece."""

    @property
    def nbytes(self) -> int: ...

    def fill(self, start: int, out: NDArray[np.uint8]) -> None: ...


class Staging:
    """A ring of page-locked slots. One upload at a time."""

    def __init__(self) -> None:
        pinned = Pinned(SLOTS * SLOT_BYTES, "staging of copies to the GPU").array
        self._slots = [pinned[k * SLOT_BYTES : (k + 1) * SLOT_BYTES] for k in range(SLOTS)]
        self._emptied = [Event(disable_timing=True) for _ in range(SLOTS)]
        self._threads = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), thread_name_prefix="staging")

    def upload(self, array: NDArray[Any], target: Buffer, stream: Stream) -> None:
        """Copy a C-contiguous array to the start of a buffer, ordered on the stream.

        The array is free when this returns; the last slots may still be on their way.
        """
        data = array.reshape(-1).view(np.uint8)
        if data.nbytes > target.nbytes:
            raise ValueError(f"cannot upload {data.nbytes} bytes into a buffer of {target.nbytes}")
        filling: deque[tuple[Future[None], int, int, int]] = deque()

        def send_oldest() -> None:
            filled, number, start, size = filling.popleft()
            filled.result()
            target.part(start, size).upload(self._slots[number][:size], stream)
            with checked("upload"):
                self._emptied[number].record(stream)

        step = min(SLOT_BYTES, max(LEAST_PIECE, data.nbytes // THREADS // 64 * 64))
        for count, start in enumerate(range(0, data.nbytes, step)):
            while len(filling) == SLOTS or (filling and filling[0][0].done()):
                send_oldest()
            number, piece = count % SLOTS, data[start : start + step]
            with checked("upload"):
                self._emptied[number].synchronize()
            copied = self._threads.submit(np.copyto, self._slots[number][: piece.nbytes], piece)
            filling.append((copied, number, start, piece.nbytes))
        while filling:
            send_oldest()

    def upload_made(self, made: Made, target: Buffer, stream: Stream) -> None:
        """As `upload`, of bytes that this thread makes in the slots."""
        if made.nbytes > target.nbytes:
            raise ValueError(f"cannot upload {made.nbytes} bytes into a buffer of {target.nbytes}")
        for count, start in enumerate(range(0, made.nbytes, SLOT_BYTES)):
            slot = self._slots[count % SLOTS][: min(SLOT_BYTES, made.nbytes - start)]
            with checked("upload"):
                self._emptied[count % SLOTS].synchronize()
            made.fill(start, slot)
            target.part(start, len(slot)).upload(slot, stream)
            with checked("upload"):
                self._emptied[count % SLOTS].record(stream)

    def scrub(self) -> None:
        """Overwrite what the slots held; no upload is under way."""
        for slot in self._slots:
            slot.fill(0)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()
