"""A comparison as a person or a program reads it. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.compare.paired import (
    Answer,
    Interval,
    Paired,
    block_ratio,
    holm,
    signed,
    student_interval,
    student_p,
)
from orchestrator.model import Admitted
from orchestrator.protocol import Ready
from orchestrator.samples import Sample
from orchestrator.stats import Summary, summarize


@dataclass(frozen=True, slots=True)
class Timed:
    """One side: what was timed, and its times."""

    title: str
    artifacts: tuple[Admitted, ...]
    level: str
    work: Mapping[str, Any]
    total: Summary

    @classmethod
    def of(
        cls, title: str, samples: Sequence[Sample], artifacts: tuple[Admitted, ...], ready: Ready | None
    ) -> Timed:
        """From the counted samples; ``ready`` is missing where no worker spoke."""
        level = "file-proven" if ready is None else "loaded-proven"
        work = {} if ready is None else dict(ready.work)
        total = summarize([sample.breakdown.total_ns for sample in samples])
        return cls(title, artifacts, level, work, total)


@dataclass(frozen=True, slots=True)
class PhaseBeside:
    """One phase of both sides; ns, and the change less one with its 95 % interval."""

    name: str
    clock: str
    first: float
    second: float
    shift: float
    interval: Interval
    counts: bool
    """Whether the change stands when all phases together may err in 5 % of cases (Holm)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, and what was found."""

    sides: tuple[Timed, ...]
    paired: Paired
    threshold: float
    disturbed: int
    """Blocks left out."""
    phases: tuple[PhaseBeside, ...]
    same_code: bool
    run_id: str
    record: str
    disturbances: tuple[str, ...]


def phases_beside(blocks: Sequence[tuple[Sequence[Sample], Sequence[Sample]]]) -> tuple[PhaseBeside, ...]:
    """The phases that every sample of both sides has, from at least two blocks of (A's samples, B's)."""
    samples = [sample for block in blocks for side in block for sample in side]
    named = [{(p.name, p.clock): p.ns for p in sample.breakdown.phases} for sample in samples]
    names = [name for name in named[0] if all(phases.get(name, 0) > 0 for phases in named)]
    rows = []
    for name, clock in names:
        first, second = (
            [[_phase_ns(s, name, clock) for s in block[side]] for block in blocks] for side in (0, 1)
        )
        ratios = [block_ratio(a, b) for a, b in zip(first, second, strict=True)]
        rows.append((name, clock, first, second, ratios))
    counted = holm([student_p(ratios) for *_, ratios in rows])
    return tuple(
        PhaseBeside(
            name,
            clock,
            statistics.median(ns for block in first for ns in block),
            statistics.median(ns for block in second for ns in block),
            math.expm1(statistics.fmean(ratios)),
            _shares(student_interval(ratios, 0.05)),
            counts,
        )
        for (name, clock, first, second, ratios), counts in zip(rows, counted, strict=True)
    )


def table_cells(compared: Compared) -> list[list[str]]:
    """Header, phases, and as the last row the total."""
    a, b = (side.total.median for side in compared.sides)
    scale, unit = (1e9, "s") if max(a, b) >= 10e9 else (1e6, "ms")
    cells = [["phase", f"A {unit}", f"B {unit}", "change", f"{compared.paired.sure:.1%} interval"]]
    for row in compared.phases:
        mark = " *" if row.counts else ""
        name = row.name if row.clock == "host" else f"{row.name} (GPU)"
        numbers = [f"{row.first / scale:.3f}", f"{row.second / scale:.3f}"]
        cells.append([name, *numbers, f"{signed(row.shift)}{mark}", _interval(row.interval)])
    total = [f"{a / scale:.3f}", f"{b / scale:.3f}"]
    cells.append(["total", *total, signed(compared.paired.shift), _interval(_both(compared.paired))])
    return cells


def answer_line(compared: Compared) -> str:
    """The answer in one sentence."""
    paired = compared.paired
    percent = f"{compared.threshold * 100:g} %"
    match paired.answer:
        case Answer.REGRESSED:
            return f"regressed: B takes {signed(paired.shift)} beside A ({_interval(_both(paired))})"
        case Answer.IMPROVED:
            return f"improved: B takes {signed(paired.shift)} beside A ({_interval(_both(paired))})"
        case Answer.SAME:
            return f"the same within {percent} (two one-sided tests at 5 %)"
        case Answer.CONTAMINATED:
            return (
                f"contaminated: other programs were busy in {compared.disturbed} blocks; nothing is decided"
            )
        case _:
            more = f"; about {paired.wanted} blocks may decide" if paired.wanted else ""
            return f"inconclusive: {_interval(_both(paired))} fits, and {percent} is what matters{more}"


def closing_lines(compared: Compared) -> list[str]:
    """What must be said beside the numbers."""
    paired = compared.paired
    lines = [
        f"{paired.blocks} blocks of two samples each, in the order A B B A or B A A B by lot; "
        "the change is that of pairs within blocks, and need not be that of the medians"
    ]
    if compared.disturbed:
        lines.append(f"{compared.disturbed} blocks left out: other programs were busy")
    if any(row.counts for row in compared.phases):
        lines.append("* a change that stands when all phases together may err in 5 % of cases")
    lines += [f"warning: {text}" for text in compared.disturbances]
    for name, side in zip("AB", compared.sides, strict=True):
        lines.append(
            f"{name} {side.title}: {side.level}, admitted before the first sample and after the last"
        )
        lines += [f"  {artifact.target}  {artifact.digest}" for artifact in side.artifacts]
    return [*lines, f"record {compared.record}"]


def compared_fields(compared: Compared) -> dict[str, Any]:
    """For ``--json``; times in ns, changes less one."""
    return {
        "state": "fresh",
        **asdict(compared.paired),
        "threshold": compared.threshold,
        "disturbed": compared.disturbed,
        "same_code": compared.same_code,
        "sides": [
            {
                "title": side.title,
                "level": side.level,
                "work": dict(side.work),
                "total": asdict(side.total),
                "artifacts": [asdict(artifact) for artifact in side.artifacts],
            }
            for side in compared.sides
        ],
        "phases": [asdict(phase) for phase in compared.phases],
        "disturbances": list(compared.disturbances),
        "run_id": compared.run_id,
        "record": compared.record,
    }


def _both(paired: Paired) -> Interval:
    """The interval within which neither test excludes the change."""
    if paired.rank is None:
        return paired.mean
    return min(paired.rank[0], paired.mean[0]), max(paired.rank[1], paired.mean[1])


def _interval(interval: Interval) -> str:
    return f"{signed(interval[0])} to {signed(interval[1])}"


def _shares(interval: Interval) -> Interval:
    return math.expm1(interval[0]), math.expm1(interval[1])


def _phase_ns(sample: Sample, name: str, clock: str) -> int:
    return sum(p.ns for p in sample.breakdown.phases if (p.name, p.clock) == (name, clock))
