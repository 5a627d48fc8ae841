"""Time a workload whose code the gate has admitted, and keep nothing that was not fresh throughout.

    admit -> start -> compare what was loaded -> warm-ups -> samples -> admit again -> record's verdict

A refusal is a value (`Refusal`); a run that cannot count raises `BrokenRun`. Either way the record says so.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ConfigurationError, FreshproofError, Undecided
from orchestrator.identity import compare_again, compare_loaded, compare_sources
from orchestrator.launch import launch_variables, resolve_command
from orchestrator.model import Admission, State, Verdict, Workload
from orchestrator.protocol import Ready, artifacts_json
from orchestrator.run_record import RunRecord
from orchestrator.samples import Measured, Refusal, Sample
from orchestrator.sampling import Taken, ask, run_once
from orchestrator.worker import Worker
from orchestrator.workspace import Workspace, explained, undisturbed

LOADED_PROVEN = "loaded-proven"
FILE_PROVEN = "file-proven"
NOTHING_TIMED = "before the first sample; nothing was timed"


Admit = Callable[[Path, Sequence[str]], Admission]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How many samples to take, and how long to wait for each."""

    samples: int
    warmups: int
    timeout: float
    """Seconds that one sample, or the workload's start, may take."""


@contextmanager
def alone(root: Path, waiting: Say) -> Iterator[None]:
    """Hold this tree's benchmark lock, and keep builds of it out; a build at work is waited for.

    Raises `Undecided` if another benchmark runs, `Missing` if the tree cannot be written.
    """
    path = root / "build" / "bench.lock"
    with explained(path):
        path.parent.mkdir(exist_ok=True)
        opened = path.open("w")
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another benchmark is running in {root}; each would slow the other"
            raise Undecided(what, remedy="wait for it to end") from None
        with undisturbed(Workspace(root), waiting):
            yield


def admit_all(root: Path, workloads: Sequence[Workload], admit: Admit) -> Refusal | None:
    """Ask for the targets of several workloads at once, so that a stale last one stops the first as well.

    One workload alone is left to `measure`, which asks anyway.
    """
    if len(workloads) < 2:
        return None
    names = tuple(dict.fromkeys(name for workload in workloads for name in workload.uses))
    admission = admit(root, names)
    if admission.admitted:
        return None
    subject = ", ".join(workload.name for workload in workloads)
    return Refusal(subject, NOTHING_TIMED, not_fresh(admission.verdicts), None)


def measure(
    root: Path, workload: Workload, options: Options, *, admit: Admit, say: Say
) -> Measured | Refusal:
    """Run one workload under the gate. Raises `BrokenRun`, `Missing`, or the worker's own failure."""
    if not workload.uses:
        raise ConfigurationError(
            f"workload {workload.name} uses no target, so nothing about it could be proven",
            remedy="name its targets in `uses`",
        )
    before = admit(root, workload.uses)
    if not before.admitted:
        return Refusal(workload.name, NOTHING_TIMED, not_fresh(before.verdicts), None)
    for artifact in before.artifacts:
        say(f"gate: admitted {artifact.target} {artifact.digest}")
    return _Run(root, workload, options, before, admit, say).measure()


class _Run:
    """One run in progress: what all of its steps share."""

    def __init__(
        self, root: Path, workload: Workload, options: Options, before: Admission, admit: Admit, say: Say
    ) -> None:
        self.root, self.workload, self.options = root, workload, options
        self.before, self.admit, self.say = before, admit, say
        self.record = RunRecord(root, "bench")
        self.samples: list[Sample] = []

    def measure(self) -> Measured | Refusal:
        argv = resolve_command(self.workload)
        with self.record, no_bytecode() as folder:
            env = launch_variables(self.record.nonce, artifacts_json(self.before.artifacts), folder)
            fields = {
                "workload": self.workload.name,
                "command": list(argv),
                "uses": list(self.workload.uses),
                "warmups": self.options.warmups,
                "samples": self.options.samples,
            }
            self.record.begin(fields, env, self.before)
            with self.record.broken_is_told():
                if self.workload.worker:
                    return self._with_worker(argv, env)
                return self._with_processes(argv, env)

    def _with_worker(self, argv: Sequence[str], env: Mapping[str, str]) -> Measured | Refusal:
        log, timeout = self.record.log, self.options.timeout
        with Worker(argv, env=env, cwd=self.root, log=log, timeout=timeout) as worker:
            self.say(f"{self.workload.name}: starting the worker")
            ready = worker.ready()
            self.record.drivers(ready)
            loaded = compare_loaded(self.root, self.record.nonce, self.before.artifacts, ready)
            if loaded.state is not State.FRESH:
                return self._refuse("after the worker's start; nothing was timed", (loaded,))
            self.say(f"{self.workload.name}: loaded code is the admitted code")
            try:
                for index, warmup in self._schedule():
                    self._keep(ask(worker, index, warmup=warmup))
                worker.close()
            except FreshproofError:
                sources = compare_sources(self.root, ready)
                if sources.state is State.FRESH:
                    raise
                # Whatever the worker stumbled over, the edit comes first: it ran what is no longer there.
                return self._refuse("while samples were taken; they are void", (sources,))
        return self._conclude(ready, LOADED_PROVEN)

    def _with_processes(self, argv: Sequence[str], env: Mapping[str, str]) -> Measured | Refusal:
        log, timeout = self.record.log, self.options.timeout
        for index, warmup in self._schedule():
            self._keep(run_once(argv, index, warmup=warmup, env=env, cwd=self.root, log=log, timeout=timeout))
        return self._conclude(None, FILE_PROVEN)

    def _schedule(self) -> Iterator[tuple[int, bool]]:
        for index in range(self.options.warmups + self.options.samples):
            yield index, index < self.options.warmups

    def _keep(self, taken: Taken) -> None:
        self.samples.append(taken.sample)
        self.record.sample(taken)
        self.say(f"{self.workload.name}: {sample_text(taken.sample)}")

    def _conclude(self, ready: Ready | None, level: str) -> Measured | Refusal:
        after = self.admit(self.root, self.workload.uses)
        verdicts = after.verdicts
        if after.admitted:
            again = compare_again(self.root, self.before.artifacts, after.artifacts, ready)
            verdicts = (*verdicts, again)
        if not after.admitted or any(verdict.state is not State.FRESH for verdict in verdicts):
            return self._refuse("after the last sample; the samples are void", verdicts)
        counted = sum(not sample.warmup for sample in self.samples)
        self.record.verdict("fresh", verdicts, {"level": level, "samples": counted})
        return Measured(
            self.workload,
            self.record.run_id,
            self.record.shown_path,
            self.before.artifacts,
            ready,
            tuple(self.samples),
            level,
            self.record.disturbances,
        )

    def _refuse(self, when: str, verdicts: tuple[Verdict, ...]) -> Refusal:
        self.record.verdict("void", verdicts, {"when": when})
        return Refusal(self.workload.name, when, not_fresh(verdicts), self.record.shown_path)


def sample_text(sample: Sample) -> str:
    """A sample as it is told while a run goes on."""
    what = "warm-up" if sample.warmup else "sample"
    checked = "" if sample.check is None else f", checked by {sample.check.by}"
    return f"{what} {sample.index}: {sample.breakdown.total_ns / 1e9:.4f} s{checked}"


@contextmanager
def no_bytecode() -> Iterator[Path]:
    """A folder for the run alone, in which Python finds no compiled modules."""
    with explained(Path(tempfile.gettempdir())):
        made = tempfile.TemporaryDirectory()
    with made as path:
        yield Path(path)


def not_fresh(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Those that refuse."""
    return tuple(verdict for verdict in verdicts if verdict.state is not State.FRESH)
