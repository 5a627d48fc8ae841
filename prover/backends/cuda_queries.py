"""The five MSMs of a proof over points that are resident on the GPU, with their tables.

The lanes of a plan run beside each other, each on a stream of its own; in a lane the MSMs follow one another
in one workspace. An MSM begins when its scalars are ready, whatever else the host has asked for before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from prover.backends import residence
from prover.backends.cuda_device import Buffer, Event, Pinned, Stream, checked
from prover.backends.cuda_graph import Graphs
from prover.backends.cuda_msm import Launch, Msm
from prover.backends.residence import QUERIES
from prover.formats.points import decode_g1, decode_g2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from prover.backends.cuda_clock import SpanClock
    from prover.backends.cuda_device import Gpu, Memory
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.cuda_msm import Bases
    from prover.backends.cuda_staging import Staging
    from prover.backends.msm_plan import Group
    from prover.backends.residence import Resident
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve


@dataclass(frozen=True, slots=True)
class Pending:
    """An MSM under way. ``done`` is ``None`` when there was nothing to add up."""

    query: str
    done: Event | None


class Queries(Protocol):
    """The points of one key, and MSMs over them."""

    def start(self, query: str, scalars: Buffer, ready: Event, clock: SpanClock) -> Pending:
        """Begin an MSM once its scalars are ``ready``; the result goes to page-locked memory."""

    def finish(self, pending: Pending) -> Any:
        """Wait for an MSM; the point in standard form."""

    def points(self, query: str, stream: Stream) -> Iterator[tuple[int, Buffer, int]]:
        """Every point of a query as the key has it: index of the first, points, their number.

        Ordered on the stream; a buffer may be used again once the next is asked for.
        """

    def scrub(self) -> None:
        """Overwrite what held digits of the witness."""


def msms_of(gpu: Gpu, curve: Curve, modules: Mapping[Group, Sequence[LoadedModule]]) -> dict[Group, Msm]:
    """The MSM of each group, over its modules."""
    return {g: Msm(curve, g, _finder(modules[g]), gpu.multiprocessors) for g in modules}


def _finder(modules: Sequence[LoadedModule]) -> Any:
    def find(name: str) -> Launch:
        for module in modules[:-1]:
            kernel = module.find(name)
            if kernel is not None:
                return kernel
        return modules[-1].kernel(name)

    return find


class Results:
    """Page-locked places for points that MSMs leave: read without asking the GPU again."""

    def __init__(self, curve: Curve, places: int) -> None:
        self._curve = curve
        self._rows = Pinned(curve.g2_bytes * places, "results of the MSMs").array.reshape(places, -1)

    def place(self, index: int, group: Group) -> NDArray[np.uint8]:
        """Where a point of the group goes."""
        return self._rows[index, : self._curve.g1_bytes if group == "g1" else self._curve.g2_bytes]

    def point(self, index: int, group: Group) -> Any:
        """The point there, in standard form."""
        decode = decode_g1 if group == "g1" else decode_g2
        return decode(self._curve, self.place(index, group).tobytes())


class ResidentQueries:
    """`Queries` over resident points."""

    def __init__(
        self,
        key: ProvingKey,
        plan: Resident,
        msms: Mapping[Group, Msm],
        memory: Memory,
        staging: Staging,
    ) -> None:
        """Upload every query's points and begin to make their tables; `wait` says when they are ready."""
        self._msms = msms
        self._lanes = plan.lanes
        self._graphs = Graphs()
        sizes = residence.lane_bytes(plan.shapes, plan.lanes, msms)
        self._streams = {lane: Stream(non_blocking=True) for lane in sizes}
        self._workspaces = {
            lane: memory.allocate(size, f"workspace of lane {lane}") for lane, size in sizes.items()
        }
        self._places = {query: place for place, query in enumerate(QUERIES)}
        self._results = Results(key.curve, len(QUERIES))
        self._bases: dict[str, Bases] = {}
        self._outs: dict[str, Buffer] = {}
        self._done = {query: Event(disable_timing=True) for query in QUERIES}
        tables = {
            query: memory.allocate(msms[QUERIES[query]].table_bytes(shape), f"points and tables of {query}")
            for query, shape in plan.shapes.items()
        }
        copies = Stream(non_blocking=True)
        for query, shape in plan.shapes.items():
            msm, lane = msms[QUERIES[query]], plan.lanes[query]
            staging.upload(getattr(key, query), tables[query], copies)
            with checked(f"points of {query}"):
                self._done[query].record(copies)
                self._streams[lane].wait_event(self._done[query])
            self._bases[query] = msm.build(shape, tables[query], self._workspaces[lane], self._streams[lane])
            self._outs[query] = memory.allocate(msm.point_bytes, f"result of {query}")

    def wait(self) -> None:
        """Wait for all that was begun."""
        with checked("making the tables"):
            for stream in self._streams.values():
                stream.synchronize()

    def points(self, query: str, stream: Stream) -> Iterator[tuple[int, Buffer, int]]:
        """The points lie at the start of their tables."""
        bases = self._bases.get(query)
        if bases is not None:
            yield 0, bases.table, bases.shape.n

    def start(self, query: str, scalars: Buffer, ready: Event, clock: SpanClock) -> Pending:
        """Begin an MSM on its lane's stream."""
        if query not in self._bases:
            return Pending(query, None)
        group, lane = QUERIES[query], self._lanes[query]
        stream, out = self._streams[lane], self._outs[query]
        bases, workspace = self._bases[query], self._workspaces[lane]
        place = self._results.place(self._places[query], group)

        def work() -> None:
            self._msms[group].run(bases, scalars, workspace, out, stream)
            out.copy_to(place, stream)

        with clock.on_host("launch"), checked(f"msm {query}"):
            stream.wait_event(ready)
            with clock.span(f"msm {query}", stream, lane):
                self._graphs.play((query, scalars.ptr), work, stream)
            self._done[query].record(stream)
        return Pending(query, self._done[query])

    def finish(self, pending: Pending) -> Any:
        """Wait for an MSM; the point in standard form."""
        if pending.done is None:
            return None
        with checked(f"msm {pending.query}"):
            pending.done.synchronize()
        return self._results.point(self._places[pending.query], QUERIES[pending.query])

    def scrub(self) -> None:
        """Overwrite workspaces and results."""
        for lane, workspace in self._workspaces.items():
            workspace.fill(0, self._streams[lane])
        for query, out in self._outs.items():
            out.fill(0, self._streams[self._lanes[query]])
        self.wait()
