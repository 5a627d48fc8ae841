"""The five MSMs of a proof over points that stay on the host: pieces on their way through the GPU.

Each piece is an MSM of its own, without tables. While one is summed the host copies the next, so a call that
begins an MSM returns when its last piece has been copied. The pieces' sums are added up on the host.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from prover.backends.cuda_device import Event, Stream, checked
from prover.backends.cuda_queries import Pending, Results
from prover.backends.residence import PIECES_ON_THE_GPU, QUERIES
from prover.params import SCALAR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prover.backends.cuda_clock import SpanClock
    from prover.backends.cuda_device import Buffer, Memory
    from prover.backends.cuda_msm import Msm
    from prover.backends.cuda_staging import Staging
    from prover.backends.host_combine import HostCombine
    from prover.backends.msm_plan import Group
    from prover.backends.residence import Streamed, Stretch
    from prover.formats.zkey import ProvingKey


class _Slot:
    """Room for the points of one piece."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.filled = Event(disable_timing=True)
        self.emptied = Event(disable_timing=True)


class StreamedQueries:
    """`Queries` (`prover.backends.cuda_queries`) over points on the host."""

    def __init__(
        self,
        key: ProvingKey,
        plan: Streamed,
        msms: Mapping[Group, Msm],
        memory: Memory,
        staging: Staging,
        combine: HostCombine,
    ) -> None:
        """Reserve memory. The points are read from the key whenever they are needed."""
        self._key = key
        self._pieces = plan.pieces
        self._msms = msms
        self._staging = staging
        self._combine = combine
        self._copies, self._sums = Stream(non_blocking=True), Stream(non_blocking=True)
        self._workspace = memory.allocate(plan.workspace_bytes, "workspace of the MSMs")
        buffers = (memory.allocate(plan.piece_bytes, "a piece of points") for _ in range(PIECES_ON_THE_GPU))
        self._slots = itertools.cycle([_Slot(buffer) for buffer in buffers])
        pieces = [(query, index) for query, own in plan.pieces.items() for index in range(len(own))]
        self._places = {piece: place for place, piece in enumerate(pieces)}
        self._results = Results(key.curve, max(1, len(pieces)))
        self._out = memory.allocate(key.curve.g2_bytes, "result of an MSM")
        self._done = {query: Event(disable_timing=True) for query in plan.pieces}

    def wait(self) -> None:
        """Wait for all that was begun."""
        with checked("sums of pieces"):
            self._copies.synchronize()
            self._sums.synchronize()

    def points(self, query: str, stream: Stream) -> Iterator[tuple[int, Buffer, int]]:
        """Piece by piece, through the buffers."""
        for piece in self._pieces.get(query, ()):
            slot = self._copied(query, piece, stream)
            yield piece.start, slot.buffer, piece.count
            with checked(f"points of {query}"):
                slot.emptied.record(stream)

    def start(self, query: str, scalars: Buffer, ready: Event, clock: SpanClock) -> Pending:
        """Copy and sum, piece by piece."""
        pieces = self._pieces.get(query)
        if pieces is None:
            return Pending(query, None)
        with checked(f"msm {query}"):
            self._sums.wait_event(ready)
        for index, piece in enumerate(pieces):
            with clock.on_host("copy points"):
                slot = self._copied(query, piece, self._sums)
            with clock.on_host("launch"), clock.span(f"msm {query}", self._sums, "pieces"):
                self._sum(query, index, piece, slot, scalars)
        with checked(f"msm {query}"):
            self._done[query].record(self._sums)
        return Pending(query, self._done[query])

    def finish(self, pending: Pending) -> Any:
        """Wait for the pieces; their sum, in standard form."""
        if pending.done is None:
            return None
        with checked(f"msm {pending.query}"):
            pending.done.synchronize()
        query, group = pending.query, QUERIES[pending.query]
        places = [self._places[query, index] for index in range(len(self._pieces[query]))]
        sums = [self._results.point(place, group) for place in places]
        if len(sums) == 1:
            return sums[0]
        add = self._combine.combine_g1 if group == "g1" else self._combine.combine_g2
        return add([1] * len(sums), sums)

    def scrub(self) -> None:
        """Overwrite the workspace and the results."""
        self._workspace.fill(0, self._sums)
        self._out.fill(0, self._sums)
        self.wait()

    def _copied(self, query: str, piece: Stretch, reader: Stream) -> _Slot:
        """A slot that has the piece's points by the time that ``reader`` comes to use them."""
        slot = next(self._slots)
        points = getattr(self._key, query)[piece.start : piece.start + piece.count]
        with checked(f"points of {query}"):
            self._copies.wait_event(slot.emptied)
        self._staging.upload(points, slot.buffer, self._copies)
        with checked(f"points of {query}"):
            slot.filled.record(self._copies)
            reader.wait_event(slot.filled)
        return slot

    def _sum(self, query: str, index: int, piece: Stretch, slot: _Slot, scalars: Buffer) -> None:
        group = QUERIES[query]
        msm = self._msms[group]
        words = scalars.part(SCALAR_BYTES * piece.start, SCALAR_BYTES * piece.count)
        shape = msm.shape(piece.count, max_tables=1)
        bases = msm.build(shape, slot.buffer, self._workspace, self._sums)
        out = self._out.part(0, msm.point_bytes)
        msm.run(bases, words, self._workspace, out, self._sums)
        out.copy_to(self._results.place(self._places[query, index], group), self._sums)
        with checked(f"msm {query}"):
            slot.emptied.record(self._sums)
