"""What a benchmark yields: samples, a run that counts, or a refusal. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.model import Admitted, Verdict, Workload
from orchestrator.protocol import Check, Ready
from orchestrator.spans import Breakdown


@dataclass(frozen=True, slots=True)
class Usage:
    """What the kernel counted for a process: CPU time in ns (in steps of a clock tick) and page faults."""

    user_ns: int
    system_ns: int
    minor_faults: int
    major_faults: int

    def __sub__(self, earlier: Usage) -> Usage:
        """What was used since ``earlier``."""
        return Usage(
            self.user_ns - earlier.user_ns,
            self.system_ns - earlier.system_ns,
            self.minor_faults - earlier.minor_faults,
            self.major_faults - earlier.major_faults,
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One timing, warm-ups included (they are recorded, and counted nowhere)."""

    index: int
    warmup: bool
    outer_ns: int
    """On the orchestrator's clock: request to reply, or spawn to end."""
    breakdown: Breakdown
    """Of the worker's timed region; of the whole process where there is no worker."""
    check: Check | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A run that counts."""

    workload: Workload
    run_id: str
    record: str
    """Path of the record, relative to the project's root."""
    artifacts: tuple[Admitted, ...]
    ready: Ready | None
    samples: tuple[Sample, ...]
    level: str
    disturbances: tuple[str, ...] = ()
    """What made times longer than they need be, in words."""

    @property
    def counted(self) -> tuple[Sample, ...]:
        """The samples without the warm-ups."""
        return tuple(sample for sample in self.samples if not sample.warmup)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was timed, or why what was timed is void."""

    subject: str
    """The workload, or several of them."""
    when: str
    verdicts: tuple[Verdict, ...]
    record: str | None
