"""How the time of one sample divides: phases, their overlap, and what no phase accounts for.

    sum of host phases - overlap + unaccounted = total

CUDA spans run beside the host and are never added to it. They stand in for the host's only where a worker
reports no host phase at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.protocol import Clock, Span


@dataclass(frozen=True, slots=True)
class Phase:
    """All spans of one name on one clock, added up, in ns."""

    name: str
    clock: Clock
    ns: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One timed region divided; all in ns."""

    total_ns: int
    phases: tuple[Phase, ...]
    """In order of first appearance, the host's before the GPU's."""
    overlap_ns: int
    """Time that more than one accounting phase claims."""
    unaccounted_ns: int
    """Time of the region that no accounting phase claims."""
    gpu_busy_ns: int | None
    """Time covered by at least one CUDA span; ``None`` without any."""


def divide(t0_ns: int, t1_ns: int, spans: Sequence[Span]) -> Breakdown:
    """Divide the region [t0, t1) by its spans."""
    host = [span for span in spans if span.clock == "host"]
    cuda = [span for span in spans if span.clock == "cuda"]
    accounting = host or cuda
    covered = covered_ns((max(s.t0_ns, t0_ns), min(s.t1_ns, t1_ns)) for s in accounting)
    claimed = sum(s.t1_ns - s.t0_ns for s in accounting)
    return Breakdown(
        total_ns=t1_ns - t0_ns,
        phases=(*_phases(host), *_phases(cuda)),
        overlap_ns=claimed - covered_ns((s.t0_ns, s.t1_ns) for s in accounting),
        unaccounted_ns=t1_ns - t0_ns - covered,
        gpu_busy_ns=covered_ns((s.t0_ns, s.t1_ns) for s in cuda) if cuda else None,
    )


def covered_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """The length of the union of half-open intervals; empty and reversed ones count nothing."""
    total, end = 0, None
    for start, stop in sorted(pair for pair in intervals if pair[1] > pair[0]):
        if end is None or start > end:
            total += stop - start
            end = stop
        elif stop > end:
            total += stop - end
            end = stop
    return total


def _phases(spans: Sequence[Span]) -> tuple[Phase, ...]:
    totals: dict[str, int] = {}
    for span in sorted(spans, key=lambda s: s.t0_ns):
        totals[span.name] = totals.get(span.name, 0) + span.t1_ns - span.t0_ns
    return tuple(Phase(name, spans[0].clock, ns) for name, ns in totals.items())
