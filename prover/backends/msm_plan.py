"""How an MSM is cut up: windows, tables, passes, and the memory each step needs. No GPU is needed here.

The kernels are those of ``cuda_src/kernels/msm_*.cuh``; the words are theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from prover.params import Curve

Group = Literal["g1", "g2"]

LOW_BITS = 11
"""Bucket bits that the sort's second pass handles: two counters for each of 2^11 fit beside its tile."""
MAX_BINS = 8 * 1024
"""Two counters each of the sort's first pass, in 64 KiB of its shared memory."""
TILE = 14336
"""Pairs a block of the sort's second pass handles: with its counters 102 KiB of shared memory, two an SM."""
PARTITION_SHARED = 112 * 1024
"""Shared memory of a block of the sort's first pass: two blocks an SM."""
SORT_THREADS = 512
"""Threads of a block of either pass."""
MAX_BITS = 24
"""Buckets' sums are reduced through lists of at most 2^6: (24 - 1) / 2 rounded up twice."""
MAX_INDEX = (1 << 31) - 1
"""Table entries an index can name beside its sign; the last is the mark of an empty entry."""
FAN_IN = 4
"""Partial sums that one thread adds at one level."""
LEAST_CHUNK = 8
"""Entries a thread accumulates at least: fewer would only make more partial sums to add afterwards."""
BATCH = 512
"""Additions of the first pairing pass that share an inversion, which costs as much as 34 multiplications."""
LEAST_BATCH = 64
"""The least of them that a block claims at a time where it claims more than once (`msm_pair.cuh`)."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The choices that depend on size alone. Figures behind them: benchmarks/NOTES.md."""

    bits: int
    """c: bits of a window."""
    passes: int
    """Pairing passes before accumulation."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An MSM of ``n`` points: ``bits``-bit windows, ``sets`` bucket sets, ``passes`` pairing passes."""

    n: int
    bits: int
    windows: int
    sets: int
    passes: int

    @property
    def tables(self) -> int:
        """Multiples of each point that are kept: 2^(bits * sets * j) P for j < tables."""
        return -(-self.windows // self.sets)

    @property
    def buckets(self) -> int:
        return self.sets << (self.bits - 1)

    @property
    def low_bits(self) -> int:
        return min(LOW_BITS, self.bits - 1)

    @property
    def bins(self) -> int:
        return self.buckets >> self.low_bits

    @property
    def pairs(self) -> int:
        """Digits that are not 0, at most."""
        return self.n * self.windows

    @property
    def scalars_a_tile(self) -> int:
        """Scalars a block of the sort's first pass handles: what its shared memory holds, in even rounds."""
        room = (PARTITION_SHARED - 4 * SORT_THREADS - 8 * self.bins) // (8 * self.windows)
        step = SORT_THREADS // 2
        return room // step * step if room >= step else max(1, room)

    @property
    def tiles(self) -> int:
        """Tiles of the sort's second pass, at most."""
        return self.pairs // TILE + min(self.bins, self.pairs)

    @property
    def entries(self) -> int:
        """Sorted entries, at most, each bucket filled up to a multiple of 2^passes."""
        filling = min(self.buckets, self.pairs) * ((1 << self.passes) - 1)
        return (self.pairs + filling) >> self.passes << self.passes

    @property
    def accumulated(self) -> int:
        """Points left for accumulation, at most."""
        return self.entries >> self.passes

    @property
    def column_bits(self) -> tuple[int, int]:
        """log2 of the columns in the two rounds of the reduction."""
        first = -(-(self.bits - 1) // 2)
        return first, -(-first // 2)


def windows(curve: Curve, bits: int) -> int:
    """Windows of so many bits that hold every scalar."""
    return -(-curve.r.bit_length() // bits)


def most_sets(tuning: Tuning) -> int:
    """Bucket sets that the sort can handle."""
    return (MAX_BINS << min(LOW_BITS, tuning.bits - 1)) >> (tuning.bits - 1)


def shape(curve: Curve, n: int, tuning: Tuning, max_tables: int) -> Shape:
    """The shape with that tuning and as many tables as allowed. Raises `ValueError` if an index overflows."""
    if not 2 <= tuning.bits <= MAX_BITS:
        raise ValueError(f"windows of {tuning.bits} bits are outside 2..{MAX_BITS}")
    count = windows(curve, tuning.bits)
    sets = -(-count // max(1, min(max_tables, count)))
    made = Shape(n, tuning.bits, count, sets, tuning.passes)
    if made.tables * n >= MAX_INDEX or max(made.entries, made.pairs + TILE) >= 1 << 32:
        raise ValueError(f"{made.tables} tables of {n} points are more than an entry can name")
    if made.bins > MAX_BINS:
        raise ValueError(f"{made.buckets} buckets are more than the sort can handle")
    return made


_WITH_TABLES: dict[Group, dict[int, tuple[int, int]]] = {
    "g1": {5: (5, 0), 8: (6, 0), 10: (7, 0), 12: (8, 0), 13: (9, 0), 14: (10, 0), 15: (12, 1), 16: (13, 1)}
    | {17: (14, 2), 18: (16, 2), 20: (17, 3), 21: (19, 3), 23: (20, 3), 25: (22, 3), 31: (24, 3)},
    "g2": {5: (5, 0), 8: (6, 0), 10: (8, 0), 12: (9, 0), 13: (9, 1), 14: (10, 2), 15: (12, 2), 16: (13, 2)}
    | {17: (14, 3), 18: (16, 3), 20: (17, 4), 21: (18, 4), 23: (20, 3), 31: (22, 3)},
}
"""log2 of n, at most: window bits and pairing passes. Wider windows mean fewer additions and more buckets; a
pass takes two thirds of the time of accumulating, and fills the buckets' ends. Best of what was measured."""

_WITHOUT_TABLES: dict[int, tuple[int, int]] = {
    5: (4, 0), 8: (5, 0), 10: (7, 0), 12: (8, 0), 14: (9, 0), 15: (11, 1), 16: (12, 2), 18: (13, 3)
} | {19: (14, 3), 20: (15, 3), 22: (17, 3), 25: (18, 3), 31: (20, 3)}  # fmt: skip
"""The same with one table, where each window has buckets of its own."""


def tuning(group: Group, n: int, *, tables: bool) -> Tuning:
    """The tuning for ``n`` points, with a table for every window or with none.

    Up to a quarter more points than 2^k count as 2^k: a key of 2^k constraints has a few points more.
    """
    choices = _WITH_TABLES[group] if tables else _WITHOUT_TABLES
    log_n = (max(n - 1, 0) * 4 // 5).bit_length()
    return Tuning(*choices[min(limit for limit in choices if limit >= log_n)])


class Layout:
    """Stretches of one workspace, named; those given to `overlay` begin anew at one place."""

    ALIGNMENT = 256

    def __init__(self) -> None:
        self.parts: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._size = 0

    def add(self, name: str, nbytes: int) -> None:
        self.parts[name] = (self._end, nbytes)
        self._end += -(-nbytes // self.ALIGNMENT) * self.ALIGNMENT
        self._size = max(self._size, self._end)

    def rewind(self, name: str) -> None:
        """Let what follows overlay the stretch ``name`` and all after it."""
        self._end = self.parts[name][0]

    @property
    def size(self) -> int:
        return self._size


@dataclass(frozen=True, slots=True)
class Grid:
    """Threads that fill the GPU once, for the kernels whose work is cut to fit them."""

    pair: int
    accumulate: int


def accumulate_threads(shape: Shape, grid: Grid, block: int) -> int:
    """Threads that accumulate: no more than have `LEAST_CHUNK` entries each, in whole blocks."""
    wanted = min(grid.accumulate, -(-shape.accumulated // LEAST_CHUNK))
    return max(1, -(-wanted // block)) * block


def batch(shape: Shape, grid: Grid) -> int:
    """Additions of the first pairing pass that a thread does for an inversion: a multiple of 2^passes."""
    group = 1 << shape.passes
    return max(group, min(BATCH, -(-shape.accumulated // grid.pair) * group // 2) // group * group)


def least_batch(shape: Shape, grid: Grid) -> int:
    """The least such additions in a share; 0 where one share for each block is best."""
    first_pass = shape.entries // 2
    return 0 if first_pass <= batch(shape, grid) * grid.pair else LEAST_BATCH


def layout(shape: Shape, grid: Grid, affine_bytes: int, block: int) -> Layout:
    """The workspace of one MSM: ``affine_bytes`` a point, sums of twice that, products of half."""
    first, second = shape.column_bits
    threads = accumulate_threads(shape, grid, block)
    out = Layout()
    out.add("next_pair", 4)
    out.add("bin_counts", 4 * shape.bins)
    out.add("counts", 4 * shape.buckets)
    for name in ("bin_starts", "bin_cursors", "tile_starts", "bin_sizes"):
        out.add(name, 4 * (shape.bins + 1))
    out.add("starts", 4 * (shape.buckets + 1))
    out.add("cursors", 4 * shape.buckets)
    out.add("entries", 4 * shape.entries)
    out.add("sums", 2 * affine_bytes * shape.buckets)
    out.add("partials", 2 * affine_bytes * threads)
    out.add("partial_buckets", 4 * threads)
    out.add("lines_1", 2 * affine_bytes * (shape.sets << (first + 1)))
    out.add("lines_2", 2 * affine_bytes * (shape.sets << (second + 2)))
    out.add("set_sums", 2 * affine_bytes * shape.sets)
    if shape.passes:
        out.add("list", affine_bytes * shape.accumulated)
    out.add("lows", 2 * shape.pairs)
    out.add("values", 4 * shape.pairs)
    if shape.passes:
        out.rewind("lows")  # the sort is over when pairing begins
        steps = batch(shape, grid) * grid.pair
        out.add("products", affine_bytes // 2 * steps)
        out.add("lists", affine_bytes * (steps + steps // 2))
    return out
