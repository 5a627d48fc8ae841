"""Time several arms in turn under one gate, and keep nothing that was not fresh throughout.

    admit all -> (start -> compare what was loaded -> warm-ups -> samples in an order drawn by lot -> end)*
    -> admit again -> record's verdict

Processes are started anew for each launch, so that what a process has by luck (addresses, clocks, pages)
differs from launch to launch and shows as spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from orchestrator.bench import NOTHING_TIMED, Admit, Say, no_bytecode, not_fresh, sample_text
from orchestrator.compare.arms import Arm
from orchestrator.errors import ConfigurationError, FreshproofError
from orchestrator.identity import compare_again, compare_loaded, compare_sources
from orchestrator.launch import launch_variables, resolve_command
from orchestrator.model import Admission, State, Verdict
from orchestrator.others import Others
from orchestrator.protocol import Ready, artifacts_json
from orchestrator.run_record import RunRecord
from orchestrator.samples import Refusal, Sample
from orchestrator.sampling import Taken, ask, run_once
from orchestrator.stats import disturbs
from orchestrator.worker import Worker


@dataclass(frozen=True, slots=True)
class Launch:
    """Samples of one launch, in the order in which they were taken."""

    samples: tuple[tuple[int, Sample], ...]
    """Number of the arm, sample; without warm-ups."""
    others: float
    """How many processors other programs used meanwhile."""

    def of(self, arm: int) -> tuple[Sample, ...]:
        """The samples of one arm."""
        return tuple(sample for number, sample in self.samples if number == arm)

    @property
    def disturbed(self) -> bool:
        """Whether other programs used so much that its times say nothing."""
        return disturbs(self.others, psutil.cpu_count() or 1)


class Refused(Exception):
    """Inside this package: something was not fresh, and the run is void."""

    def __init__(self, when: str, verdicts: tuple[Verdict, ...]) -> None:
        super().__init__(when)
        self.when, self.verdicts = when, verdicts


@dataclass(slots=True)
class ArmRun:
    """An arm and what its processes said of themselves."""

    arm: Arm
    command: tuple[str, ...]
    env: Mapping[str, str]
    ready: Ready | None = None
    taken: int = 0
    samples: list[Sample] = field(default_factory=list)


class Measurement:
    """One run over several arms. Use as a context manager once all of them were admitted."""

    def __init__(
        self,
        root: Path,
        arms: Sequence[Arm],
        before: Admission,
        *,
        purpose: str,
        timeout: float,
        admit: Admit,
        say: Say,
    ) -> None:
        self._root, self._arms, self._before = root, tuple(arms), before
        self._timeout, self._admit, self._say = timeout, admit, say
        self.record = RunRecord(root, purpose)
        self.runs: list[ArmRun] = []
        self._stack = ExitStack()

    def __enter__(self) -> Measurement:
        with ExitStack() as stack:
            commands = [resolve_command(arm.workload) for arm in self._arms]
            stack.enter_context(self.record)
            folder = stack.enter_context(no_bytecode())
            stack.enter_context(self.record.broken_is_told())
            for arm, command in zip(self._arms, commands, strict=True):
                handed = artifacts_json(arm.handed(self._before.artifacts))
                self.runs.append(ArmRun(arm, command, launch_variables(self.record.nonce, handed, folder)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def begin(self, fields: Mapping[str, Any]) -> None:
        """Write the record's head."""
        arms = [
            {
                "arm": run.arm.name,
                "workload": run.arm.workload.name,
                "command": list(run.command),
                "uses": list(run.arm.uses),
            }
            for run in self.runs
        ]
        self.record.begin({**fields, "arms": arms}, self.runs[0].env, self._before)

    def launch(self, number: int, order: Sequence[int]) -> Launch:
        """Start each arm that the order names, warm it up, take the samples in that order, and end it.

        Raises `Refused`, or as `bench.measure` does.
        """
        others, samples = Others(), []
        with ExitStack() as stack:
            started = {arm: _Started(self, self.runs[arm], stack, number) for arm in dict.fromkeys(order)}
            try:
                for one in started.values():
                    one.warm_up()
                for arm in order:
                    samples.append((arm, started[arm].sample(warmup=False)))
                for one in started.values():
                    one.close()
            except FreshproofError:
                self._blame_sources()
                raise
        return Launch(tuple(samples), others.processors())

    def conclude(self, fields: Mapping[str, Any]) -> None:
        """Ask the gate again, and write the verdict. Raises `Refused`."""
        after = self._admit(self._root, used_by(self._arms))
        verdicts = after.verdicts
        if after.admitted:
            again = (
                compare_again(
                    self._root, run.arm.own(self._before.artifacts), run.arm.own(after.artifacts), run.ready
                )
                for run in self.runs
            )
            verdicts = (*verdicts, *again)
        if not after.admitted or any(verdict.state is not State.FRESH for verdict in verdicts):
            raise Refused("after the last sample; the samples are void", not_fresh(verdicts))
        self.record.verdict("fresh", verdicts, fields)

    def refusal(self, refused: Refused) -> Refusal:
        """What was refused, told in the record as well."""
        self.record.verdict("void", refused.verdicts, {"when": refused.when})
        return Refusal(titles(self._arms), refused.when, refused.verdicts, self.record.shown_path)

    def start(self, run: ArmRun, stack: ExitStack) -> Worker:
        """Start an arm's worker, and hold what it loaded against what was admitted. Raises `Refused`."""
        worker = stack.enter_context(
            Worker(run.command, env=run.env, cwd=self._root, log=self.record.log, timeout=self._timeout)
        )
        ready = worker.ready()
        self.record.drivers(ready, arm=run.arm.name)
        handed = run.arm.handed(self._before.artifacts)
        loaded = compare_loaded(self._root, self.record.nonce, handed, ready)
        if loaded.state is not State.FRESH:
            raise Refused("after a worker's start; the samples before it are void", (loaded,))
        run.ready = ready
        return worker

    def once(self, run: ArmRun, *, warmup: bool) -> Taken:
        """A sample of an arm that is a process of its own."""
        return run_once(
            run.command,
            run.taken,
            warmup=warmup,
            env=run.env,
            cwd=self._root,
            log=self.record.log,
            timeout=self._timeout,
        )

    def keep(self, run: ArmRun, taken: Taken, launch: int) -> Sample:
        """Take note of a sample."""
        run.taken += 1
        if not taken.sample.warmup:
            run.samples.append(taken.sample)
        self.record.sample(taken, arm=run.arm.name, launch=launch)
        self._say(f"{run.arm.name}: {sample_text(taken.sample)}")
        return taken.sample

    def _blame_sources(self) -> None:
        """Whatever a worker stumbled over, an edit comes first: it ran what is no longer there."""
        for run in self.runs:
            if run.ready is not None:
                sources = compare_sources(self._root, run.ready)
                if sources.state is not State.FRESH:
                    raise Refused("while samples were taken; they are void", (sources,))


class _Started:
    """An arm within one launch."""

    def __init__(self, measurement: Measurement, run: ArmRun, stack: ExitStack, launch: int) -> None:
        self._measurement, self._run, self._launch = measurement, run, launch
        self._worker = measurement.start(run, stack) if run.arm.workload.worker else None
        self._index = 0

    def warm_up(self) -> None:
        for _ in range(self._run.arm.workload.warmups):
            self.sample(warmup=True)

    def sample(self, *, warmup: bool) -> Sample:
        try:
            if self._worker is None:
                taken = self._measurement.once(self._run, warmup=warmup)
            else:
                taken = ask(self._worker, self._index, warmup=warmup)
                self._index += 1
        except FreshproofError as error:
            arm, log = self._run.arm, f"what it wrote is in {self._measurement.record.log}"
            what = f"{arm.name} ({arm.title}): {error.what}"
            raise type(error)(what, details=error.details, remedy=error.remedy or log) from None
        return self._measurement.keep(self._run, taken, self._launch)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()


def admit_arms(root: Path, arms: Sequence[Arm], admit: Admit) -> Admission | Refusal:
    """Ask the gate for all of them at once. Raises `ConfigurationError` for an arm that uses no target."""
    for arm in arms:
        if not arm.uses:
            raise ConfigurationError(
                f"workload {arm.workload.name} uses no target, so nothing about it could be proven",
                remedy="name its targets in `uses`",
            )
    before = admit(root, used_by(arms))
    if before.admitted:
        return before
    return Refusal(titles(arms), NOTHING_TIMED, not_fresh(before.verdicts), None)


def used_by(arms: Sequence[Arm]) -> tuple[str, ...]:
    """The targets of all arms, each once."""
    return tuple(dict.fromkeys(name for arm in arms for name in arm.uses))


def titles(arms: Sequence[Arm]) -> str:
    """All arms on one line."""
    return ", ".join(arm.title for arm in arms)


def same_code(arms: Sequence[Arm], artifacts: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Pairs of arms that run equal bytes by equal commands: they can differ by noise alone."""
    seen: dict[tuple[Any, ...], str] = {}
    for arm in arms:
        digests = tuple(sorted((a.target, a.digest) for a in arm.handed(artifacts)))
        key = (arm.workload.command, digests)
        if key in seen:
            yield seen[key], arm.name
        seen.setdefault(key, arm.name)
