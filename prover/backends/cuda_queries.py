"""The five MSMs of a proof on the GPU: points and tables of each query resident, streams, workspaces.

Two streams, one a group: MSMs over G1 follow one another in one workspace; that over G2 runs beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import Missing
from prover.backends.cuda_clock import SpanClock
from prover.backends.cuda_device import Buffer, Event, Pinned, Stream, checked
from prover.backends.cuda_msm import Bases, Launch, Msm
from prover.formats.points import decode_g1, decode_g2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prover.backends.cuda_device import Gpu, Memory
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.cuda_staging import Staging
    from prover.backends.msm_plan import Group, Shape
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve

QUERIES: dict[str, Group] = {
    "a_query": "g1",
    "b_g1_query": "g1",
    "l_query": "g1",
    "h_query": "g1",
    "b_g2_query": "g2",
}
MANY_TABLES = 256
"""As many multiples of each point as the MSM likes to have."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An MSM under way. ``done`` is ``None`` when there was nothing to add up."""

    query: str
    done: Event | None


class Queries:
    """MSMs over the queries of one key."""

    def __init__(
        self, gpu: Gpu, curve: Curve, modules: Mapping[Group, Sequence[LoadedModule]], memory: Memory
    ) -> None:
        self._curve = curve
        self._memory = memory
        self._msms: dict[Group, Msm] = {
            group: Msm(curve, group, _finder(modules[group]), gpu.multiprocessors) for group in modules
        }
        self._streams: dict[Group, Stream] = {group: Stream(non_blocking=True) for group in modules}
        self._bases: dict[str, Bases] = {}
        self._workspaces: dict[Group, Buffer] = {}
        self._outs: dict[str, Buffer] = {}
        self._results: dict[str, np.ndarray[Any, np.dtype[np.uint8]]] = {}
        self._ready: dict[str, Event] = {}
        self._done: dict[str, Event] = {}

    def shapes(self, key: ProvingKey, max_tables: int) -> dict[str, Shape]:
        """The shape of each query that has points."""
        counts = {query: len(getattr(key, query)) for query in QUERIES}
        return {
            query: self._msms[group].shape(counts[query], max_tables=max_tables)
            for query, group in QUERIES.items()
            if counts[query]
        }

    def need(self, shapes: Mapping[str, Shape]) -> int:
        """Bytes that `prepare` takes at most, scratch included."""
        total = scratch = 0
        for query, shape in shapes.items():
            msm = self._msms[QUERIES[query]]
            total += msm.table_bytes(shape)
            scratch = max(scratch, msm.table_scratch_bytes(shape))
        return total + scratch + sum(self._workspace_sizes(shapes).values())

    def affordable_shapes(self, key: ProvingKey, budget: int) -> dict[str, Shape]:
        """The shapes with tables if they fit the budget, else without. Raises `Missing` if neither do."""
        for max_tables in (MANY_TABLES, 1):
            shapes = self.shapes(key, max_tables)
            if self.need(shapes) <= budget:
                return shapes
        raise Missing(
            f"the key's points need {self.need(shapes) / 2**30:.2f} GiB of GPU memory; "
            f"{budget / 2**30:.2f} GiB are left for them",
            remedy="free the GPU, or prove a smaller circuit",
        )

    def prepare(self, key: ProvingKey, shapes: Mapping[str, Shape], staging: Staging) -> None:
        """Upload every query's points and make their tables."""
        result_bytes = self._curve.g2_bytes
        pinned = Pinned(result_bytes * len(QUERIES), "results of the MSMs").array.reshape(-1, result_bytes)
        for place, (query, shape) in enumerate(shapes.items()):
            group = QUERIES[query]
            msm, stream = self._msms[group], self._streams[group]
            table = self._memory.allocate(msm.table_bytes(shape), f"points and tables of {query}")
            staging.upload(getattr(key, query), table, stream)
            scratch = self._memory.allocate(msm.table_scratch_bytes(shape), f"making tables of {query}")
            self._bases[query] = msm.build(shape, table, scratch, stream)
            with checked(f"tables of {query}"):
                stream.synchronize()
            self._memory.free(scratch)
            self._outs[query] = self._memory.allocate(msm.point_bytes, f"result of {query}")
            self._results[query] = pinned[place, : msm.point_bytes]
            self._ready[query] = Event(disable_timing=True)
            self._done[query] = Event(disable_timing=True)
        for group, size in self._workspace_sizes(shapes).items():
            self._workspaces[group] = self._memory.allocate(size, f"workspace of the {group} MSMs")

    def points(self, query: str) -> tuple[Buffer, int] | None:
        """The affine points of a query as the key has them, and their number; ``None`` when it has none."""
        bases = self._bases.get(query)
        return None if bases is None else (bases.table, bases.shape.n)

    def start(self, query: str, scalars: Buffer, after: Stream, clock: SpanClock) -> Pending:
        """Begin an MSM once ``after`` has come this far; the result goes to page-locked memory."""
        if query not in self._bases:
            return Pending(query, None)
        group = QUERIES[query]
        msm, stream, bases = self._msms[group], self._streams[group], self._bases[query]
        with checked(f"msm {query}"):
            self._ready[query].record(after)
            stream.wait_event(self._ready[query])
        with clock.span(f"msm {query}", stream, group):
            msm.run(bases, scalars, self._workspaces[group], self._outs[query], stream)
        self._outs[query].copy_to(self._results[query], stream)
        with checked(f"msm {query}"):
            self._done[query].record(stream)
        return Pending(query, self._done[query])

    def finish(self, pending: Pending) -> Any:
        """Wait for an MSM; the point in standard form."""
        if pending.done is None:
            return None
        with checked(f"msm {pending.query}"):
            pending.done.synchronize()
        data = self._results[pending.query].tobytes()
        decode = decode_g1 if QUERIES[pending.query] == "g1" else decode_g2
        return decode(self._curve, data)

    def scrub(self) -> None:
        """Overwrite the workspaces: they hold digits of the witness."""
        for group, workspace in self._workspaces.items():
            workspace.fill(0, self._streams[group])
        for out in self._outs.values():
            out.fill(0, self._streams["g1"])
        with checked("scrubbing the MSMs' workspaces"):
            for stream in self._streams.values():
                stream.synchronize()

    def _workspace_sizes(self, shapes: Mapping[str, Shape]) -> dict[Group, int]:
        sizes: dict[Group, int] = {}
        for query, shape in shapes.items():
            group = QUERIES[query]
            sizes[group] = max(sizes.get(group, 0), self._msms[group].workspace_bytes(shape))
        return sizes


def _finder(modules: Sequence[LoadedModule]) -> Any:
    def find(name: str) -> Launch:
        for module in modules[:-1]:
            kernel = module.find(name)
            if kernel is not None:
                return kernel
        return modules[-1].kernel(name)

    return find
