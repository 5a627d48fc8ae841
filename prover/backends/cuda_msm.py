"""Multi-scalar multiplication on the GPU: which kernels run, over what, in what order.

One MSM is a fixed sequence of launches on one stream, without a question to the host in between: decompose
and sort (`msm_sort.cuh`), pair (`msm_pair.cuh`), accumulate (`msm_accumulate.cuh`), reduce and combine
(`msm_reduce.cuh`). Numbers that depend on the scalars stay on the device; launches are sized by their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from prover.backends import msm_plan
from prover.backends.msm_plan import (
    FAN_IN,
    LEAST_CHUNK,
    SORT_THREADS,
    TILE,
    Grid,
    Group,
    Shape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prover.params import Curve

BLOCK = 128
"""Threads of a block that handles points."""
SORT_BLOCK = 256
SCAN_BLOCK = 1024
PAIR_BLOCKS_AN_SM: dict[Group, int] = {"g1": 4, "g2": 2}
"""Blocks that an SM's registers hold: the bounds in ``cuda_src/kernels_msm_*.cu``."""
ACCUMULATE_BLOCKS_AN_SM: dict[Group, int] = {"g1": 2, "g2": 2}
COUNT_BLOCKS_AN_SM = 8
QUAD = 4
"""Threads that share a point (`quad.cuh`)."""
WEIGHTED_POINTS = 64
"""Points, of four threads each, in a block that makes weighted sums (`msm_reduce.cuh`)."""
SHORT_LINE_BITS = 6
"""Lines of up to 2^6 buckets are summed by quads: at 2^6 a chain half as long."""
INBOX, INBOX_BYTES = 5, 48
"""Shared memory of a thread that pairs: coordinates, and bytes beside them (`msm_pair.cuh`)."""


class Memory(Protocol):
    """A stretch of device memory (`prover.backends.cuda_device.Buffer`)."""

    @property
    def nbytes(self) -> int: ...

    def part(self, offset: int, nbytes: int) -> Memory: ...

    def fill(self, byte: int, stream: Any) -> None: ...


class Launch(Protocol):
    """A kernel (`prover.backends.cuda_device.Kernel`)."""

    def __call__(
        self, grid: int, block: int, args: Sequence[object], stream: Any, *, shared: int = 0
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Bases:
    """The points of one MSM, resident: ``table`` holds ``shape.tables`` times ``shape.n`` affine points.

    ``present`` has a bit for each of the ``shape.n`` bases: whether it is not the identity.
    """

    shape: Shape
    table: Any
    present: Any


class Msm:
    """MSMs over one group of one curve. ``find`` gives a kernel of either module by its name."""

    def __init__(
        self,
        curve: Curve,
        group: Group,
        find: Callable[[str], Launch],
        multiprocessors: int,
    ) -> None:
        self.curve = curve
        self.group: Group = group
        self.point_bytes = curve.g1_bytes if group == "g1" else curve.g2_bytes
        self._find = find
        self._kernels: dict[str, Launch] = {}
        self._multiprocessors = multiprocessors
        self.grid = Grid(
            pair=multiprocessors * PAIR_BLOCKS_AN_SM[group] * BLOCK,
            accumulate=multiprocessors * ACCUMULATE_BLOCKS_AN_SM[group] * BLOCK,
        )

    def shape(self, n: int, *, max_tables: int) -> Shape:
        """The shape for ``n`` points with at most that many tables (1: the points alone)."""
        allowed = max(1, min(max_tables, (msm_plan.MAX_INDEX - 1) // max(1, n)))
        whole = msm_plan.tuning(self.group, n, tables=True)
        if msm_plan.windows(self.curve, whole.bits) <= allowed:
            return msm_plan.shape(self.curve, n, whole, allowed)
        return msm_plan.shape(self.curve, n, msm_plan.tuning(self.group, n, tables=False), allowed)

    def table_bytes(self, shape: Shape) -> int:
        """Memory of the points, their tables, and a bit a point."""
        return self._present_at(shape) + 4 * -(-shape.n // 32)

    def table_scratch_bytes(self, shape: Shape) -> int:
        """Memory needed beside them while the tables are made."""
        return 0 if shape.tables == 1 else self.doubling_scratch_bytes(shape.n)

    def workspace_bytes(self, shape: Shape) -> int:
        """Memory that a run needs and that later runs may use again."""
        return self._layout(shape).size

    def build(self, shape: Shape, table: Memory, scratch: Memory, stream: Any) -> Bases:
        """Make the tables. ``table`` begins with the n points, affine, Montgomery form."""
        level = self.point_bytes * shape.n
        for j in range(1, shape.tables):
            self.double(
                table.part((j - 1) * level, level),
                shape.n,
                shape.bits * shape.sets,
                table.part(j * level, level),
                scratch,
                stream,
            )
        words = -(-shape.n // 32)
        present = table.part(self._present_at(shape), 4 * words)
        if words:
            args = (table, _u32(shape.n), present)
            self._launch("msm_find_present", -(-words // BLOCK), BLOCK, args, stream)
        return Bases(shape, table, present)

    def double(self, points: Memory, n: int, times: int, out: Memory, scratch: Memory, stream: Any) -> None:
        """``out[i]`` = 2^times points[i], affine. ``scratch``: as `doubling_scratch_bytes` says."""
        threads = self._doubling_threads(n)
        half = self.doubling_scratch_bytes(n) // 2
        denominators, products = scratch.part(0, half), scratch.part(half, half)
        args = (points, _u32(n), _u32(times), denominators, products, out)
        self._launch("msm_double_points", threads // BLOCK, BLOCK, args, stream)

    def doubling_scratch_bytes(self, n: int) -> int:
        """Memory that `double` works in: two coordinates for each step of each thread."""
        threads = self._doubling_threads(n)
        return self.point_bytes * -(-n // threads) * threads

    def run(self, bases: Bases, scalars: Memory, workspace: Memory, out: Memory, stream: Any) -> None:
        """``out`` = the sum of scalars[i] * points[i], affine; n = 0 gives the identity. Returns at once.

        ``scalars``: n times 32 bytes, standard form, below r. ``workspace``: as `workspace_bytes` says; free
        for others when the stream has come this far.
        """
        for _, put in self.phases(bases, scalars, workspace, out, stream):
            put()

    def phases(
        self, bases: Bases, scalars: Memory, workspace: Memory, out: Memory, stream: Any
    ) -> list[tuple[str, Callable[[], None]]]:
        """The phases of `run` by name; each, called in this order, puts itself on the stream."""
        if bases.shape.n == 0:
            return [("clear", partial(out.fill, 0, stream))]
        run = _Run(self, bases, workspace, stream)
        sort, reduce = partial(run.sort, scalars), partial(run.reduce, out)
        return [("sort", sort), ("pair", run.pair), ("accumulate", run.accumulate), ("reduce", reduce)]

    def _present_at(self, shape: Shape) -> int:
        return -(-self.point_bytes * shape.tables * shape.n // 256) * 256

    def _layout(self, shape: Shape) -> msm_plan.Layout:
        return msm_plan.layout(shape, self.grid, self.point_bytes, BLOCK)

    def _doubling_threads(self, n: int) -> int:
        return min(self.grid.pair, max(1, -(-n // BLOCK)) * BLOCK)

    def _launch(
        self, name: str, grid: int, block: int, args: Sequence[object], stream: Any, shared: int = 0
    ) -> None:
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self._find(name)
        kernel(grid, block, args, stream, shared=shared)


class _Run:
    """The launches of one MSM."""

    def __init__(self, msm: Msm, bases: Bases, workspace: Memory, stream: Any) -> None:
        self.msm = msm
        self.bases = bases
        self.shape = bases.shape
        self.stream = stream
        layout = msm._layout(bases.shape)
        if workspace.nbytes < layout.size:
            raise ValueError(f"a workspace of {workspace.nbytes} bytes; this MSM needs {layout.size}")
        self._at = {name: workspace.part(*where) for name, where in layout.parts.items()}
        self._counters = workspace.part(0, layout.parts["bin_starts"][0])

    def sort(self, scalars: Memory) -> None:
        """Digits of the scalars, grouped by bucket: `entries` and `starts`."""
        s = self.shape
        windows = (_u32(s.n), _u32(s.bits), _u32(s.windows), _u32(s.sets), _u32(s.low_bits), _u32(s.bins))
        low, tile = _u32(s.low_bits), (_u32(s.bins), _u32(TILE), _u32(s.low_bits))
        scan_shared = 4 * SORT_BLOCK
        self._counters.fill(0, self.stream)
        counting = min(-(-s.n // SORT_BLOCK), COUNT_BLOCKS_AN_SM * self.msm._multiprocessors)
        digits = (scalars, self.bases.present, *windows)
        self._go("msm_count_bins", counting, SORT_BLOCK, (*digits, "bin_counts"), 4 * s.bins)
        bins = ("bin_counts", _u32(s.bins), _u32(TILE), "bin_starts", "bin_cursors", "tile_starts")
        self._go("msm_scan_bins", 1, SCAN_BLOCK, bins, 4 * SCAN_BLOCK)
        per_tile = s.scalars_a_tile
        placed = (_u32(per_tile), "bin_cursors", "lows", "values")
        shared = 8 * (s.bins + per_tile * s.windows) + 4 * SORT_THREADS
        self._go("msm_partition", -(-s.n // per_tile), SORT_THREADS, (*digits, *placed), shared)
        tiles = ("bin_starts", "tile_starts", *tile)
        self._go("msm_count_buckets", s.tiles, SORT_BLOCK, ("lows", *tiles, "counts"), 4 << s.low_bits)
        align = _u32(s.passes)
        self._go("msm_measure_bins", s.bins, SORT_BLOCK, ("counts", low, align, "bin_sizes"), scan_shared)
        made = ("starts", "cursors", "entries")
        self._go(
            "msm_start_buckets", s.bins, SORT_BLOCK, ("counts", "bin_sizes", low, align, *made), scan_shared
        )
        shared = (8 << s.low_bits) + 6 * TILE + 4 * SORT_THREADS
        self._go("msm_place", s.tiles, SORT_THREADS, ("lows", "values", *tiles, "cursors", "entries"), shared)

    def pair(self) -> None:
        """All pairing passes: the list that is left to accumulate."""
        s, point = self.shape, self.msm.point_bytes
        if s.passes == 0:
            return
        length = self._at["starts"].part(4 * s.buckets, 4)
        batch = msm_plan.batch(s, self.msm.grid)
        least = msm_plan.least_batch(s, self.msm.grid) >> (s.passes - 1)
        shares = (_u32(s.passes), _u32(batch), _u32(least), "next_pair")
        args = (self.bases.table, "entries", length, *shares, "products", "lists", "list")
        blocks = min(self.msm.grid.pair // BLOCK, -(-s.accumulated // BLOCK))
        self._go("msm_add_pairs", blocks, BLOCK, args, (INBOX * point // 2 + INBOX_BYTES) * BLOCK)

    def accumulate(self) -> None:
        """Bucket sums, whole."""
        s = self.shape
        threads = msm_plan.accumulate_threads(s, self.msm.grid, BLOCK)
        stretches = ("starts", _u32(s.buckets), _u32(s.passes), _u32(LEAST_CHUNK))
        source = ("list", 0) if s.passes else (self.bases.table, "entries")
        sums = ("sums", "partials", "partial_buckets")
        self._go("msm_accumulate", threads // BLOCK, BLOCK, (*source, *stretches, *sums))
        stride = 1
        while stride < threads:
            self._go("msm_add_partials", QUAD * threads // BLOCK, BLOCK, (*stretches, _u32(stride), *sums))
            stride *= FAN_IN

    def reduce(self, out: Memory) -> None:
        """The weighted sum of the bucket sums, and the sets' sums made one."""
        s = self.shape
        first, second = s.column_bits
        rows, columns, arrays = s.bits - 1 - first, first, s.sets
        args = ("sums", "starts", _u32(arrays), _u32(rows), _u32(columns), "lines_1")
        lines = "msm_sum_short_lines" if first <= SHORT_LINE_BITS else "msm_sum_lines"
        self._go(lines, self._warp_blocks(arrays << (columns + 1)), BLOCK, args)
        rows, columns, arrays = first - second, second, 2 * s.sets
        short = ("lines_1", 0, _u32(arrays), _u32(rows), _u32(columns), "lines_2")
        self._go("msm_sum_short_lines", self._warp_blocks(arrays << (columns + 1)), BLOCK, short)
        shared = WEIGHTED_POINTS * 2 * self.msm.point_bytes
        weighted = ("lines_2", _u32(first), _u32(second), "set_sums")
        self._go("msm_sum_weighted", s.sets, QUAD * WEIGHTED_POINTS, weighted, shared)
        self._go("msm_combine", 1, QUAD, ("set_sums", _u32(s.sets), _u32(s.bits), out))

    def _warp_blocks(self, warps: int) -> int:
        return -(-warps // (BLOCK // 32))

    def _go(self, name: str, grid: int, block: int, args: Sequence[object], shared: int = 0) -> None:
        values = tuple(self._at[a] if isinstance(a, str) else a for a in args)
        self.msm._launch(name, grid, block, values, self.stream, shared)


def _u32(value: int) -> np.uint32:
    return np.uint32(value)
