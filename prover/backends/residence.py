"""Where the points of a key are kept: on the GPU with tables, or on the host and streamed through the GPU.

Sizes and a budget in, a plan out; no GPU is needed here. A query with tables is faster and takes more memory:
with a table for each window all windows share one set of buckets, with half as many tables there are two
sets, and so on; without tables each window has its own. What does not fit even so is streamed: the points are
cut into pieces, each an MSM of its own without tables, and one piece is copied while another is summed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestrator.errors import Missing
from prover.backends import msm_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prover.backends.msm_plan import Group, Shape
    from prover.params import Curve

QUERIES: dict[str, Group] = {
    "a_query": "g1",
    "b_g1_query": "g1",
    "l_query": "g1",
    "h_query": "g1",
    "b_g2_query": "g2",
}
ONE_LANE: dict[str, str] = dict.fromkeys(QUERIES, "msm")
"""Which MSMs follow one another, on one stream and in one workspace; those of other lanes run beside them."""
TWO_LANES: dict[str, str] = {query: str(group) for query, group in QUERIES.items()}
"""Against one lane: 3 % less time at 2^20, none at 2^22, where a kernel fills the GPU."""
THREE_LANES: dict[str, str] = TWO_LANES | {"b_g1_query": "g1 beside", "l_query": "g1 beside"}
"""Against two: 9 % less time at 2^18."""
SMALL = 1 << 19
"""Points of queries that gain from three lanes, at most."""
EVERY_WINDOW = 256
"""As many tables as a query may want: more than there are windows."""
MOST_SETS = 4
"""Bucket sets that a query with tables may have; beyond, no tables at all are better."""
LARGEST_PIECE, SMALLEST_PIECE = 22, 14
"""log2 of the points over G1 in a streamed piece, about; a point over G2 counts for two."""
PIECES_ON_THE_GPU = 2
"""One is summed while the next arrives."""


class Sizes(Protocol):
    """What a plan asks of the MSM over one group (`prover.backends.cuda_msm.Msm`)."""

    curve: Curve
    group: Group
    point_bytes: int

    def shape(self, n: int, *, max_tables: int) -> Shape: ...

    def table_bytes(self, shape: Shape) -> int: ...

    def table_scratch_bytes(self, shape: Shape) -> int: ...

    def workspace_bytes(self, shape: Shape) -> int: ...


@dataclass(frozen=True, slots=True)
class Resident:
    """Every query on the GPU, with these shapes, in these lanes."""

    shapes: dict[str, Shape]
    lanes: dict[str, str]
    nbytes: int

    def describe(self) -> str:
        """For people: how many tables each query has."""
        tables = {query: shape.tables for query, shape in self.shapes.items()}
        if set(tables.values()) <= {1}:
            return "resident, no tables"
        if len(set(tables.values())) == 1:
            return f"resident, tables: {next(iter(tables.values()))} a query"
        return "resident, tables: " + ", ".join(f"{query} {count}" for query, count in tables.items())


@dataclass(frozen=True, slots=True)
class Stretch:
    """Points ``start`` .. ``start + count - 1`` of a query."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Streamed:
    """Every query on the host; pieces of it go through buffers of ``piece_bytes`` on the GPU."""

    pieces: dict[str, tuple[Stretch, ...]]
    piece_bytes: int
    workspace_bytes: int
    nbytes: int
    resident_bytes: int
    """What it would take to keep the points resident, at least."""

    def describe(self) -> str:
        """For people: what is done, and what would avoid it."""
        count = sum(len(pieces) for pieces in self.pieces.values())
        pieces = f"streamed, {count} pieces of up to {self.piece_bytes / 1e6:.0f} MB"
        return f"{pieces}; resident they need {self.resident_bytes / 1e9:.1f} GB"


def plan(
    counts: Mapping[str, int], msms: Mapping[Group, Sizes], budget: int, *, tables: bool = True
) -> Resident | Streamed:
    """The fastest arrangement of queries of ``counts`` points that takes at most ``budget`` bytes.

    ``tables``: whether any may be made. A single proof is there sooner without: at 2^20 points they save it
    3 ms, and take 450.

    Raises `Missing` with need and have when not even the smallest pieces fit.
    """
    present = {query: n for query, n in counts.items() if n}
    resident = _resident(present, msms, budget, tables)
    if resident is not None:
        return resident
    least = _need({query: msms[QUERIES[query]].shape(n, max_tables=1) for query, n in present.items()}, msms)
    for log_piece in range(LARGEST_PIECE, SMALLEST_PIECE - 1, -1):
        streamed = _streamed(present, msms, 1 << log_piece, least)
        if streamed.nbytes <= budget:
            return streamed
    raise Missing(
        f"the key's points, streamed in the smallest pieces, need {streamed.nbytes / 1e6:.0f} MB of GPU "
        f"memory; {max(budget, 0) / 1e6:.0f} MB are left for them",
        remedy="free the GPU, allow more with --gpu-memory, or prove a smaller circuit",
    )


def lane_bytes(
    shapes: Mapping[str, Shape], lanes: Mapping[str, str], msms: Mapping[Group, Sizes]
) -> dict[str, int]:
    """The workspace of each lane: its MSMs use it one after the other, and their tables are made in it."""
    sizes = dict.fromkeys(lanes.values(), 0)
    for query, shape in shapes.items():
        msm, lane = msms[QUERIES[query]], lanes[query]
        sizes[lane] = max(sizes[lane], msm.workspace_bytes(shape), msm.table_scratch_bytes(shape))
    return sizes


def _resident(
    counts: Mapping[str, int], msms: Mapping[Group, Sizes], budget: int, tables: bool
) -> Resident | None:
    """All tables, in as many lanes as pay; if they do not fit, one lane; then fewer and fewer tables.

    It is the query whose points take most that gets fewer.
    """
    choices = {query: _choices(msms[QUERIES[query]], n) for query, n in counts.items()}
    if not tables:
        choices = {query: shapes[-1:] for query, shapes in choices.items()}
    lanes = [THREE_LANES] if max(counts.values(), default=0) <= SMALL else []
    lanes += [TWO_LANES, ONE_LANE]
    while True:
        shapes = {query: rest[0] for query, rest in choices.items()}
        need = _need(shapes, msms, lanes[0])
        if need <= budget:
            return Resident(shapes, lanes[0], need)
        if len(lanes) > 1:
            del lanes[0]
            continue
        shrinkable = [query for query, rest in choices.items() if len(rest) > 1]
        if not shrinkable:
            return None
        largest = max(shrinkable, key=lambda query: msms[QUERIES[query]].table_bytes(shapes[query]))
        choices[largest] = choices[largest][1:]


def _need(
    shapes: Mapping[str, Shape], msms: Mapping[Group, Sizes], lanes: Mapping[str, str] = ONE_LANE
) -> int:
    """Bytes of all points and tables, and of the lanes' workspaces."""
    tables = sum(msms[QUERIES[query]].table_bytes(shape) for query, shape in shapes.items())
    return tables + sum(lane_bytes(shapes, lanes, msms).values())


def _choices(msm: Sizes, n: int) -> Sequence[Shape]:
    """Shapes for n points, from most tables to none."""
    tuning = msm_plan.tuning(msm.group, n, tables=True)
    whole = msm.shape(n, max_tables=EVERY_WINDOW)
    fewer = (
        msm_plan.shape(msm.curve, n, tuning, max_tables=-(-whole.windows // sets))
        for sets in range(2, min(MOST_SETS, msm_plan.most_sets(tuning)) + 1)
    )
    by_tables = {shape.tables: shape for shape in (msm.shape(n, max_tables=1), *fewer, whole)}
    return [by_tables[tables] for tables in sorted(by_tables, reverse=True)]


def _streamed(
    counts: Mapping[str, int], msms: Mapping[Group, Sizes], largest: int, resident_bytes: int
) -> Streamed:
    unit = min(msm.point_bytes for msm in msms.values())
    pieces = {q: _pieces(n, largest * unit // msms[QUERIES[q]].point_bytes) for q, n in counts.items()}
    piece_bytes = workspace = 0
    for query, stretches in pieces.items():
        msm = msms[QUERIES[query]]
        for count in {stretch.count for stretch in stretches}:
            shape = msm.shape(count, max_tables=1)
            piece_bytes = max(piece_bytes, msm.table_bytes(shape))
            workspace = max(workspace, msm.workspace_bytes(shape))
    nbytes = PIECES_ON_THE_GPU * piece_bytes + workspace
    return Streamed(pieces, piece_bytes, workspace, nbytes, resident_bytes)


def _pieces(n: int, wanted: int) -> tuple[Stretch, ...]:
    """n points in nearly equal pieces of about ``wanted``: at most half as many again."""
    count = max(1, (2 * n + wanted) // (2 * wanted))
    bounds = [n * k // count for k in range(count + 1)]
    return tuple(Stretch(a, b - a) for a, b in itertools.pairwise(bounds))
