"""Two records of earlier runs beside each other. Pure.

They were taken one after the other, so that a machine that changed in between cannot be told from code that
did: the rank-sum test sees only the spread within each run. What lies side by side is `side_by_side`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.compare.paired import Answer, decide, signed
from orchestrator.compare.rank_sum import Delta, compare_times
from orchestrator.errors import BrokenRun, Incomparable
from orchestrator.stats import Summary, summarize


@dataclass(frozen=True, slots=True)
class Stored:
    """One recorded run that counts."""

    run_id: str
    workload: str
    started_at: str
    machine: Mapping[str, Any]
    """The line of kind ``env``."""
    work: Mapping[str, Any]
    code: Mapping[str, str]
    """Target to the digest of its artifact."""
    times_ns: tuple[int, ...]
    commit: str | None
    dirty: bool


def stored_run(lines: Sequence[Mapping[str, Any]], name: str) -> Stored:
    """From the lines of a record. Raises `BrokenRun` if its times do not count; ``name`` is for messages."""
    head, last = lines[0], lines[-1]
    if head.get("purpose") != "bench":
        raise BrokenRun(f"{name} holds a run of another kind: {head.get('purpose')}")
    if last.get("state") != "fresh":
        raise BrokenRun(f"{name}: the run's verdict is {last.get('state')}, so its times do not count")
    try:
        return _read(lines)
    except (KeyError, TypeError, AttributeError) as error:
        raise BrokenRun(
            f"{name} lacks a field: {error}", remedy="it was written by another version"
        ) from None


def measured_ns(lines: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """The totals of a record's samples without warm-ups."""
    return tuple(
        line["t1_ns"] - line["t0_ns"]
        for line in lines
        if line["kind"] == "sample" and line["phase"] == "measured"
    )


def _read(lines: Sequence[Mapping[str, Any]]) -> Stored:
    head = lines[0]
    times = measured_ns(lines)
    if not times or min(times) <= 0:
        raise KeyError("samples")
    return Stored(
        run_id=head["run_id"],
        workload=head["workload"],
        started_at=head["started_at"],
        machine=next(line for line in lines if line["kind"] == "env"),
        work=next((line["work"] for line in lines if line["kind"] == "drivers"), {}),
        code={line["target"]: line["digest"] for line in lines if line["kind"] == "artifact"},
        times_ns=times,
        commit=head["source"]["commit"],
        dirty=head["source"]["dirty"] is not None,
    )


@dataclass(frozen=True, slots=True)
class RecordsCompared:
    """Two runs, and what their times say."""

    runs: tuple[Stored, Stored]
    totals: tuple[Summary, Summary]
    delta: Delta
    answer: Answer
    threshold: float


def compare_records(first: Stored, second: Stored, threshold: float) -> RecordsCompared:
    """Compare the totals. Raises `Incomparable`, naming all that differs and must not."""
    if differing := incomparable(first, second):
        raise Incomparable(
            f"{first.run_id} and {second.run_id} cannot be compared",
            details="\n".join(f"  {text}" for text in differing),
            remedy="time both on one machine with one input",
        )
    delta = compare_times(first.times_ns, second.times_ns)
    answer = Answer.INCONCLUSIVE
    if delta.low is not None and delta.high is not None:
        interval = (delta.low, delta.high)
        answer = decide(delta.shift, delta.low, delta.high, threshold, interval)
    totals = (summarize(first.times_ns), summarize(second.times_ns))
    return RecordsCompared((first, second), totals, delta, answer, threshold)


def incomparable(first: Stored, second: Stored) -> list[str]:
    """What differs of machine and input, in words."""
    found = []
    if first.machine.get("machine_key") != second.machine.get("machine_key"):
        a, b = _machine(first.machine), _machine(second.machine)
        differing = [name for name in a if a[name] != b[name]]
        found += [f"{name}: {a[name]} and {b[name]}" for name in differing] or ["the machines differ"]
    return found + different_inputs(first.work, second.work)


def different_inputs(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The digests of inputs that both workers told and that differ."""
    return [
        f"{name}: {first[name]} and {second[name]}"
        for name in first
        if name.endswith("digest") and name in second and first[name] != second[name]
    ]


def _machine(fields: Mapping[str, Any]) -> dict[str, Any]:
    gpu = fields.get("gpu") or {}
    cpu = fields.get("cpu") or {}
    return {
        "GPUs": [device.get("uuid") for device in gpu.get("devices", ())],
        "driver": gpu.get("driver"),
        "CPU": cpu.get("model"),
        "processors": cpu.get("usable_threads"),
        "memory, bytes": fields.get("memory_bytes"),
        "kernel": fields.get("kernel"),
    }


def records_lines(compared: RecordsCompared) -> list[str]:
    """All there is to say, the answer last but one."""
    lines = []
    for name, run, total in zip("AB", compared.runs, compared.totals, strict=True):
        lines.append(
            f"{name} {run.workload}  {run.run_id}  {run.started_at}  {_source(run)}: "
            f"median {total.median / 1e6:.3f} ms of {total.n} samples, MAD {total.mad / 1e6:.3f} ms"
        )
    lines += _code_lines(*compared.runs)
    lines.append(_answer(compared))
    lines.append(
        "one was timed after the other: a machine that changed in between looks the same as a change of code"
    )
    return lines


def _source(run: Stored) -> str:
    if run.commit is None:
        return "no commit"
    return f"commit {run.commit[:12]}" + (" and changes" if run.dirty else "")


def _code_lines(first: Stored, second: Stored) -> list[str]:
    names = dict.fromkeys((*first.code, *second.code))
    changed = [name for name in names if first.code.get(name) != second.code.get(name)]
    if not changed:
        return [f"both ran the same code ({', '.join(names)})"]
    return [
        f"{name}: {first.code.get(name, 'not used')} became {second.code.get(name, 'not used')}"
        for name in changed
    ]


def _answer(compared: RecordsCompared) -> str:
    delta, matters = compared.delta, f"{compared.threshold * 100:g} %"
    if delta.low is None or delta.high is None:
        return f"inconclusive: {delta.counts[0]} and {delta.counts[1]} samples allow no interval of 95 %"
    interval = f"95 % interval {signed(delta.low)} to {signed(delta.high)}"
    match compared.answer:
        case Answer.REGRESSED | Answer.IMPROVED:
            return f"{compared.answer}: {signed(delta.shift)} ({interval})"
        case Answer.SAME:
            return f"the same within {matters} ({interval})"
        case _:
            return f"inconclusive: {interval}, and {matters} is what matters"


def records_fields(compared: RecordsCompared) -> dict[str, Any]:
    """For ``--json``; times in ns, changes less one."""
    delta = asdict(compared.delta)
    return {
        "state": "fresh",
        "answer": compared.answer,
        "threshold": compared.threshold,
        **{name: delta[name] for name in ("shift", "low", "high")},
        "sides": [
            {
                "title": run.workload,
                "run_id": run.run_id,
                "started_at": run.started_at,
                "commit": run.commit,
                "work": dict(run.work),
                "code": dict(run.code),
                "total": asdict(total),
            }
            for run, total in zip(compared.runs, compared.totals, strict=True)
        ],
    }
