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
FAN_IN = 16
"""Partial sums that one thread adds at one level."""
LEAST_CHUNK = 8
"""Entries a thread accumulates at least: fewer would only make more partial sums to add afterwards."""
BATCH = 256
"""Additions of a pairing pass that share an inversion, which costs as much as 34 multiplications."""
SEGMENT = 1 << 25
"""Outputs of the first pairing pass that are worked on at once; bounds the memory of the passes."""


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


def shape(curve: Curve, n: int, tuning: Tuning, max_tables: int) -> Shape:
    """The shape with that tuning and as many tables as allowed. Raises `ValueError` if an index overflows."""
    if not 2 <= tuning.bits <= MAX_BITS:
        raise ValueError(f"windows of {tuning.bits} bits are outside 2..{MAX_BITS}")
    windows = -(-curve.r.bit_length() // tuning.bits)
    sets = -(-windows // max(1, min(max_tables, windows)))
    made = Shape(n, tuning.bits, windows, sets, tuning.passes)
    if made.tables * n >= MAX_INDEX or made.entries >= 1 << 32:
        raise ValueError(f"{made.tables} tables of {n} points are more than an entry can name")
    if made.bins > MAX_BINS:
        raise ValueError(f"{made.buckets} buckets are more than the sort can handle")
    return made


TUNING_WITH_TABLES: dict[Group, tuple[Tuning, ...]] = {}
"""By log2 of n, rounded up."""

# Until measured: wide enough that adding pairs outweighs reducing buckets, 2^7 pairs a bucket or more.
for _group, _two_passes in (("g1", 17), ("g2", 16)):
    TUNING_WITH_TABLES[_group] = tuple(  # type: ignore[index]
        Tuning(bits=min(22, max(6, k - 3)), passes=0 if k < _two_passes else 3) for k in range(32)
    )
TUNING_WITHOUT: dict[Group, tuple[Tuning, ...]] = {
    group: tuple(Tuning(min(18, max(4, t.bits - 1)), t.passes) for t in tunings)
    for group, tunings in TUNING_WITH_TABLES.items()
}


def tuning(group: Group, n: int, *, tables: bool) -> Tuning:
    """The tuning for ``n`` points, with a table for every window or with none."""
    return (TUNING_WITH_TABLES if tables else TUNING_WITHOUT)[group][max(n - 1, 0).bit_length()]


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


def layout(shape: Shape, grid: Grid, affine_bytes: int, block: int) -> Layout:
    """The workspace of one MSM: ``affine_bytes`` a point, sums of twice that, products of half."""
    first, second = shape.column_bits
    threads = accumulate_threads(shape, grid, block)
    out = Layout()
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
        segment = min(SEGMENT, shape.entries // 2)
        steps = min(BATCH, -(-segment // grid.pair))
        out.add("products", affine_bytes // 2 * steps * grid.pair)
        if shape.passes > 1:
            out.add("odd_pass", affine_bytes * segment)
        if shape.passes > 2:
            out.add("even_pass", affine_bytes * (segment // 2))
    return out
