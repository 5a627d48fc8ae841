"""One sample of a workload, taken: asked of its worker, or a whole process where it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.process_samples import time_process
from orchestrator.protocol import Span
from orchestrator.samples import Sample
from orchestrator.spans import divide
from orchestrator.worker import Worker


@dataclass(frozen=True, slots=True)
class Taken:
    """A sample with the region that it divides; in ns of CLOCK_MONOTONIC."""

    sample: Sample
    t0_ns: int
    t1_ns: int
    spans: tuple[Span, ...]


def ask(worker: Worker, index: int, *, warmup: bool) -> Taken:
    """A sample of a worker. Raises `BrokenRun`, or the worker's own failure."""
    taken = worker.sample(index, warmup=warmup)
    answer = taken.answer
    division = divide(answer.t0_ns, answer.t1_ns, answer.spans)
    outer_ns = taken.received_ns - taken.sent_ns
    sample = Sample(index, warmup, outer_ns, division, answer.check, taken.usage)
    return Taken(sample, answer.t0_ns, answer.t1_ns, answer.spans)


def run_once(
    argv: Sequence[str],
    index: int,
    *,
    warmup: bool,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    timeout: float,
) -> Taken:
    """A sample that is a process of its own. Raises `Missing` or `BrokenRun`."""
    run = time_process(argv, env=env, cwd=cwd, log=log, timeout=timeout)
    division = divide(run.started_ns, run.ended_ns, ())
    sample = Sample(index, warmup, run.ended_ns - run.started_ns, division, None, run.usage)
    return Taken(sample, run.started_ns, run.ended_ns, ())
