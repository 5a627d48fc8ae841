"""Time a workload whose code the gate has admitted, and keep nothing that was not fresh throughout.

    admit -> start -> compare what was loaded -> warm-ups -> samples -> admit again -> record's verdict

A refusal is a value (`Refusal`); a run that cannot count raises `BrokenRun`. Either way the record says so.
"""

from __future__ import annotations

import fcntl
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator import __version__, environment
from orchestrator.errors import ConfigurationError, FreshproofError, Missing, Undecided
from orchestrator.identity import compare_again, compare_loaded, compare_sources
from orchestrator.launch import launch_variables, resolve_command
from orchestrator.model import Admission, State, Verdict, Workload
from orchestrator.process_samples import time_process
from orchestrator.protocol import Ready, Span, artifacts_json
from orchestrator.records import SCHEMA, RecordWriter, new_run_id
from orchestrator.samples import Measured, Refusal, Sample
from orchestrator.spans import divide
from orchestrator.verdict_report import verdict_fields
from orchestrator.worker import Worker
from orchestrator.workspace import Workspace, explained, undisturbed

LOADED_PROVEN = "loaded-proven"
FILE_PROVEN = "file-proven"
_NOTHING_TIMED = "before the first sample; nothing was timed"


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
    return Refusal(subject, _NOTHING_TIMED, _not_fresh(admission.verdicts), None)


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
        return Refusal(workload.name, _NOTHING_TIMED, _not_fresh(before.verdicts), None)
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
        self.nonce = secrets.token_hex(16)
        self.run_id = new_run_id(time.time_ns() // 1_000_000)
        self.path = root / "build" / "records" / f"{self.run_id}.jsonl"
        self.shown_path = str(self.path.relative_to(root))
        self.log = self.path.with_suffix(".log")
        self.samples: list[Sample] = []
        self.disturbances: tuple[str, ...] = ()

    def measure(self) -> Measured | Refusal:
        argv = resolve_command(self.workload)
        with RecordWriter(self.path) as self.record, _empty_folder() as no_bytecode:
            env = launch_variables(self.nonce, artifacts_json(self.before.artifacts), no_bytecode)
            self._write_head(argv, env)
            with self._broken_is_recorded():
                if self.workload.worker:
                    return self._with_worker(argv, env)
                return self._with_processes(argv, env)

    def _with_worker(self, argv: Sequence[str], env: Mapping[str, str]) -> Measured | Refusal:
        with Worker(argv, env=env, cwd=self.root, log=self.log, timeout=self.options.timeout) as worker:
            self.say(f"{self.workload.name}: starting the worker")
            ready = worker.ready()
            self.record.write("drivers", _drivers_fields(ready))
            loaded = compare_loaded(self.root, self.nonce, self.before.artifacts, ready)
            if loaded.state is not State.FRESH:
                return self._refuse("after the worker's start; nothing was timed", (loaded,))
            self.say(f"{self.workload.name}: loaded code is the admitted code")
            try:
                self._ask(worker)
            except FreshproofError:
                sources = compare_sources(self.root, ready)
                if sources.state is State.FRESH:
                    raise
                # Whatever the worker stumbled over, the edit comes first: it ran what is no longer there.
                return self._refuse("while samples were taken; they are void", (sources,))
        return self._conclude(ready, LOADED_PROVEN)

    def _ask(self, worker: Worker) -> None:
        """Take all samples, then let the worker end."""
        for index, warmup in self._schedule():
            taken = worker.sample(index, warmup=warmup)
            answer = taken.answer
            self._keep(
                Sample(
                    index,
                    warmup,
                    taken.received_ns - taken.sent_ns,
                    divide(answer.t0_ns, answer.t1_ns, answer.spans),
                    answer.check,
                    taken.usage,
                ),
                (answer.t0_ns, answer.t1_ns, answer.spans),
            )
        worker.close()

    def _with_processes(self, argv: Sequence[str], env: Mapping[str, str]) -> Measured | Refusal:
        for index, warmup in self._schedule():
            run = time_process(argv, env=env, cwd=self.root, log=self.log, timeout=self.options.timeout)
            self._keep(
                Sample(
                    index,
                    warmup,
                    run.ended_ns - run.started_ns,
                    divide(run.started_ns, run.ended_ns, ()),
                    None,
                    run.usage,
                ),
                (run.started_ns, run.ended_ns, ()),
            )
        return self._conclude(None, FILE_PROVEN)

    def _schedule(self) -> Iterator[tuple[int, bool]]:
        for index in range(self.options.warmups + self.options.samples):
            yield index, index < self.options.warmups

    def _keep(self, sample: Sample, region: tuple[int, int, tuple[Span, ...]]) -> None:
        self.samples.append(sample)
        division = sample.breakdown
        fields = {
            "index": sample.index,
            "phase": "warmup" if sample.warmup else "measured",
            "outer_ns": sample.outer_ns,
            "t0_ns": region[0],
            "t1_ns": region[1],
            "spans": [asdict(span) for span in region[2]],
            "overlap_ns": division.overlap_ns,
            "unaccounted_ns": division.unaccounted_ns,
            "check": None if sample.check is None else asdict(sample.check),
            "usage": None if sample.usage is None else asdict(sample.usage),
        }
        self.record.write("sample", fields)
        what = "warm-up" if sample.warmup else "sample"
        checked = "" if sample.check is None else f", checked by {sample.check.by}"
        self.say(f"{self.workload.name}: {what} {sample.index}: {division.total_ns / 1e9:.4f} s{checked}")

    def _conclude(self, ready: Ready | None, level: str) -> Measured | Refusal:
        after = self.admit(self.root, self.workload.uses)
        verdicts = after.verdicts
        if after.admitted:
            again = compare_again(self.root, self.before.artifacts, after.artifacts, ready)
            verdicts = (*verdicts, again)
        if not after.admitted or any(verdict.state is not State.FRESH for verdict in verdicts):
            return self._refuse("after the last sample; the samples are void", verdicts)
        counted = sum(not sample.warmup for sample in self.samples)
        self._write_verdict("fresh", verdicts, {"level": level, "samples": counted})
        return Measured(
            self.workload,
            self.run_id,
            self.shown_path,
            self.before.artifacts,
            ready,
            tuple(self.samples),
            level,
            self.disturbances,
        )

    def _refuse(self, when: str, verdicts: tuple[Verdict, ...]) -> Refusal:
        self._write_verdict("void", verdicts, {"when": when})
        return Refusal(self.workload.name, when, _not_fresh(verdicts), self.shown_path)

    @contextmanager
    def _broken_is_recorded(self) -> Iterator[None]:
        try:
            yield
        except FreshproofError as error:
            with suppress(Missing):  # a record that cannot be written has no verdict, and so cannot count
                self._write_verdict("broken", (), {"error": error.what, "exit_code": error.exit_code})
            raise
        except KeyboardInterrupt:
            with suppress(Missing):
                self._write_verdict("interrupted", (), {})
            raise

    def _write_head(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        fields = {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "nonce": self.nonce,
            "tool": f"freshproof {__version__}",
            "python": sys.version.split()[0],
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "purpose": "bench",
            "workload": self.workload.name,
            "command": list(argv),
            "uses": list(self.workload.uses),
            "warmups": self.options.warmups,
            "samples": self.options.samples,
            "source": environment.describe_commit(self.root),
        }
        self.record.write("run", fields)
        machine = environment.capture(env)
        self.disturbances = environment.disturbances(machine)
        self.record.write("env", machine)
        states = {verdict.target: verdict for verdict in self.before.verdicts}
        for artifact in self.before.artifacts:
            fields = asdict(artifact)
            fields["artifact_kind"] = fields.pop("kind")  # every line's own kind has that name
            fields["matches"] = dict(states[artifact.target].matches)
            self.record.write("artifact", fields)

    def _write_verdict(self, state: str, verdicts: Sequence[Verdict], fields: Mapping[str, Any]) -> None:
        listed = [verdict_fields(verdict) for verdict in verdicts]
        self.record.write("verdict", {"state": state, **fields, "verdicts": listed})


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """A folder for the run alone, in which Python finds no compiled modules."""
    with explained(Path(tempfile.gettempdir())):
        made = tempfile.TemporaryDirectory()
    with made as path:
        yield Path(path)


def _drivers_fields(ready: Ready) -> dict[str, Any]:
    return {
        "loaded": [asdict(entry) for entry in ready.loaded],
        "sources": [asdict(source) for source in ready.sources],
        "versions": dict(ready.versions),
        "device": ready.device,
        "work": dict(ready.work),
    }


def _not_fresh(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    return tuple(verdict for verdict in verdicts if verdict.state is not State.FRESH)
