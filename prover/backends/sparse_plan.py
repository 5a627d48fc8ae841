"""A key's matrices A and B in compressed rows, the long rows cut into segments. No GPU is needed here.

The layout is that of ``cuda_src/kernels/sparse.cuh``: rows 2i (of A) and 2i + 1 (of B) in one list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prover.formats.zkey import COEF_ROWS
from prover.params import SCALAR_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_LIMIT = 32
"""Longer rows are not one thread's work: a warp waits for its longest row."""
SEGMENT = 1024
"""Entries that a block sums of a long row: 8 a thread."""
ALIGNMENT = 256
"""Each array starts at a multiple of this in the GPU's memory."""
ARRAYS = (
    "starts",
    "wires",
    "values",
    "long_rows",
    "first_segments",
    "segment_starts",
    "segment_ends",
)
"""What goes to the GPU, in this order; a partial sum a segment follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One field of a key's entries, sorted. Never whole: fresh memory for it takes longer than sorting."""

    items: NDArray[Any]
    """As the key has them, other fields between them."""
    order: NDArray[np.int64] | None
    """Which of them come one after the other; ``None``: as they are."""

    @property
    def nbytes(self) -> int:
        """Of all, side by side."""
        return len(self.items) * self.items.dtype.itemsize

    def fill(self, start: int, out: NDArray[np.uint8]) -> None:
        """Bytes ``start`` and on, as many as ``out`` takes: whole items."""
        size = self.items.dtype.itemsize
        which = slice(start // size, (start + len(out)) // size)
        out.view(self.items.dtype)[:] = self.items[which if self.order is None else self.order[which]]


@dataclass(frozen=True, slots=True)
class CompressedRows:
    """Both matrices. Row m's entries are starts[m] .. starts[m + 1] - 1."""

    starts: NDArray[np.uint32]
    """(2n + 1,)"""
    wires: Column
    """(entries,): uint32"""
    values: Column
    """(entries,) of 32 bytes: coefficient * R^2 mod r, as in the key."""
    long_rows: NDArray[np.uint32]
    """The rows of more than `ROW_LIMIT` entries."""
    first_segments: NDArray[np.uint32]
    """(len(long_rows) + 1,): long row k has the segments first[k] .. first[k + 1] - 1."""
    segment_starts: NDArray[np.uint32]
    segment_ends: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Bytes on the GPU: all arrays, and a partial sum a segment."""
        sizes = [getattr(self, name).nbytes for name in ARRAYS] + [SCALAR_BYTES * len(self.segment_starts)]
        return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def most_bytes(entries: int, n: int) -> int:
    """`CompressedRows.nbytes` at most, for that many entries over a domain of n points."""
    long_rows = entries // (ROW_LIMIT + 1)
    segments = long_rows + entries // SEGMENT
    arrays = 4 * (2 * n + 1) + 36 * entries + 4 * (2 * long_rows + 1) + 40 * segments
    return arrays + (len(ARRAYS) + 1) * ALIGNMENT


def compressed_rows(coefs: NDArray[Any], n: int) -> CompressedRows:
    """Sort a key's entries by row. Rows are below n, as `read_zkey` has checked; keys are mostly sorted."""
    rows = coefs["constraint"].astype(np.int64) * 2 + coefs["matrix"]
    order = np.argsort(rows, kind="stable") if np.any(rows[1:] < rows[:-1]) else None
    starts = np.zeros(2 * n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=2 * n), out=starts[1:])
    lengths = np.diff(starts)
    long_rows = np.flatnonzero(lengths > ROW_LIMIT)
    counts = -(-lengths[long_rows] // SEGMENT)
    first = np.zeros(len(long_rows) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    within = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    segment_starts = np.repeat(starts[long_rows], counts) + within * SEGMENT
    row_ends = np.repeat(starts[long_rows + 1], counts)
    return CompressedRows(
        starts=starts.astype(np.uint32),
        wires=Column(coefs["wire"], order),
        values=Column(coefs.view(COEF_ROWS)["value"], order),
        long_rows=long_rows.astype(np.uint32),
        first_segments=first.astype(np.uint32),
        segment_starts=segment_starts.astype(np.uint32),
        segment_ends=np.minimum(segment_starts + SEGMENT, row_ends).astype(np.uint32),
    )
