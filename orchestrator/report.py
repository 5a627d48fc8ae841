"""A run as a person or a program reads it: lines of text, or JSON fields. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.samples import Measured, Refusal, Sample
from orchestrator.stats import Summary, summarize
from orchestrator.verdict_report import verdict_fields, verdict_lines

UNACCOUNTED_WARNING = 0.05
"""Share of the total beyond which the phases no longer explain the time."""
_NUMBERS = ("median", "MAD", "min", "max")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the phase table."""

    name: str
    clock: str
    summary: Summary


def rows_of(samples: Sequence[Sample]) -> tuple[Row, ...]:
    """Phases in order of appearance, overlap (where there is any), unaccounted (beside phases), total."""
    names: dict[tuple[str, str], None] = {}
    for sample in samples:
        names.update(dict.fromkeys((phase.name, phase.clock) for phase in sample.breakdown.phases))
    ordered = sorted(names, key=lambda name: name[1] == "cuda")  # stable: the host's first
    rows = [
        Row(name, clock, summarize([_phase_ns(s, name, clock) for s in samples])) for name, clock in ordered
    ]
    if any(sample.breakdown.overlap_ns for sample in samples):
        rows.append(Row("overlap", "host", summarize([-s.breakdown.overlap_ns for s in samples])))
    if rows:  # a command without phases has nothing to account for
        rows.append(Row("unaccounted", "host", summarize([s.breakdown.unaccounted_ns for s in samples])))
    rows.append(Row("total", "host", summarize([s.breakdown.total_ns for s in samples])))
    return tuple(rows)


def heading(run: Measured) -> str:
    """What was timed, on one line."""
    if run.ready is None:
        return run.workload.name
    work = (f"{name} {value}" for name, value in run.ready.work.items() if "digest" not in name)
    return f"{run.workload.name}: {', '.join(work)}"


def table_cells(rows: Sequence[Row]) -> list[list[str]]:
    """The phase table, its header first, in one unit, which is chosen by the total (the last row)."""
    total = rows[-1].summary.median
    scale, unit = (1e9, "s") if total >= 10e9 else (1e6, "ms")
    gpu = any(row.clock == "cuda" for row in rows)
    cells = [["phase", *(["clock"] if gpu else []), *(f"{name} {unit}" for name in _NUMBERS), "share"]]
    for row in rows:
        numbers = (row.summary.median, row.summary.mad, row.summary.low, row.summary.high)
        share = f"{row.summary.median / total:.1%}" if total else "-"
        texts = [f"{number / scale:.3f}" for number in numbers]
        cells.append([row.name, *([row.clock] if gpu else []), *texts, share])
    return cells


def closing_lines(run: Measured, rows: Sequence[Row]) -> list[str]:
    """What must be said beside the numbers: how they came about, warnings, and whose they are."""
    return [*_notes(run, rows), *_identity(run)]


def refusal_lines(refusal: Refusal) -> list[str]:
    """Why the gate refused: every finding, with both values and the remedy."""
    lines = verdict_lines(refusal.verdicts)
    return [f"{refusal.subject}: refused {refusal.when}", *(f"  {line}" for line in lines)]


def run_fields(run: Measured) -> dict[str, Any]:
    """A run that counts, for ``--json``; times in ns."""
    rows = rows_of(run.counted)
    return {
        "workload": run.workload.name,
        "state": "fresh",
        "level": run.level,
        "run_id": run.run_id,
        "record": run.record,
        "samples": len(run.counted),
        "warmups": len(run.samples) - len(run.counted),
        "disturbances": list(run.disturbances),
        "checked_by": sorted({s.check.by for s in run.samples if s.check is not None}),
        "work": None if run.ready is None else dict(run.ready.work),
        "artifacts": [asdict(artifact) for artifact in run.artifacts],
        "phases": [{"name": row.name, "clock": row.clock, **asdict(row.summary)} for row in rows],
        "outer": asdict(summarize([s.outer_ns for s in run.counted])),
    }


def refusal_fields(refusal: Refusal) -> dict[str, Any]:
    """A refusal, for ``--json``."""
    return {
        "workload": refusal.subject,
        "state": "refused",
        "when": refusal.when,
        "record": refusal.record,
        "verdicts": [verdict_fields(verdict) for verdict in refusal.verdicts],
    }


def _notes(run: Measured, rows: Sequence[Row]) -> list[str]:
    counted = run.counted
    warmups = len(run.samples) - len(counted)
    lines = [
        f"{_counted(len(counted), 'sample')} after {_counted(warmups, 'warm-up')}; "
        "medians of phases need not add up to the total"
    ]
    checks = [sample.check for sample in run.samples if sample.check is not None]
    if checks:
        lines.append(_outer_text(counted))
        lines.append(
            f"checked by {', '.join(sorted({c.by for c in checks}))}: {len(checks)} of {len(checks)} pass"
        )
    else:
        lines.append("outer clock, spawn to end; the command's exit code is the only check")
    total, before = rows[-1].summary.median, rows[-2:][0]
    if before.name == "unaccounted" and total and before.summary.median / total > UNACCOUNTED_WARNING:
        lines.append(f"warning: no phase accounts for {before.summary.median / total:.1%} of the total")
    lines += [f"warning: {text}" for text in run.disturbances]
    faults = sum(s.usage.major_faults for s in counted if s.usage is not None)
    if faults:
        lines.append(f"warning: {faults} major page faults during the samples: the disk was waited for")
    return lines


def _outer_text(samples: Sequence[Sample]) -> str:
    """The orchestrator's own clock beside the worker's: what the region and the check leave over is small."""
    outer = summarize([sample.outer_ns for sample in samples]).median
    checks = [round(sample.check.seconds * 1e9) if sample.check else 0 for sample in samples]
    around = [s.outer_ns - s.breakdown.total_ns - c for s, c in zip(samples, checks, strict=True)]
    return (
        f"outer clock, request to reply: {outer / 1e9:.3f} s, of which beside the total above "
        f"{summarize(checks).median / 1e9:.3f} s the check and "
        f"{summarize(around).median / 1e9:.3f} s the rest"
    )


def _identity(run: Measured) -> list[str]:
    lines = [f"{run.level}; admitted before the first sample, and again after the last:"]
    for artifact in run.artifacts:
        lines.append(f"  {artifact.target}  {artifact.digest}")
    lines.append(f"record {run.record}")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _phase_ns(sample: Sample, name: str, clock: str) -> int:
    return sum(p.ns for p in sample.breakdown.phases if (p.name, p.clock) == (name, clock))
