"""Brings targets up to date: asks for each whether it is fresh, makes those that are not, says what it did.

Whatever interrupted an earlier build, the next one is right: it compares records with files as they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from orchestrator.digests import Digests
from orchestrator.errors import ConfigurationError, FreshproofError
from orchestrator.evidence import Observer, Used, digest_tools, paths_of
from orchestrator.freshness import judge
from orchestrator.make import Maker, Means
from orchestrator.model import Action, Finding, Kind, Link, Manifest, Member, State, Tools, Verdict
from orchestrator.process import Runner
from orchestrator.reach import observe_link, observe_loader
from orchestrator.recorded import ContentsMemory, Records
from orchestrator.regular_file import special
from orchestrator.schedule import run_steps
from orchestrator.situation import Situation, survey
from orchestrator.targets import FILE
from orchestrator.variants import device_code
from orchestrator.workspace import Workspace, exclusive, manifest_name

_UNKNOWN_SECONDS = 60.0
_MOST_CHARACTERS = 60
_DEVICE_ONLY = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX})
_NO_REBUILD = frozenset({"input-unfollowed", "member-unproven"})
"""Findings that another build of the same sources would leave as they are; their remedies say what helps."""


class Result(StrEnum):
    """What a build did about a target."""

    BUILT = "built"
    FRESH = "fresh"
    UNPROVEN = "unproven"
    """Built and recorded, and the gate will not admit it; building again does not help."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One target's line of the summary."""

    target: str
    result: Result
    reason: str
    verdict: Verdict
    """Before anything was done."""
    seconds: float = 0.0
    manifest: str = ""
    artifact: str = ""
    same_code: bool = False
    """Rebuilt, and the machine code is what it was."""
    same_device_code: bool = False
    """Rebuilt, and the device code is what it was, whatever became of the host code."""
    message: str = ""
    """Of a failure: the tool's own words, whole; of an unproven target: what could not be established."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """The answer of `build`."""

    situation: Situation
    outcomes: tuple[Outcome, ...]
    manifests: Mapping[str, Manifest]

    def count(self, result: Result) -> int:
        """How many targets ended so."""
        return sum(outcome.result is result for outcome in self.outcomes)


@dataclass(slots=True)
class Progress:
    """Told what happens while it happens; the default says nothing."""

    note: Callable[[str], None] = lambda _text: None
    situated: Callable[[Situation], None] = lambda _situation: None
    started: Callable[[str, str], None] = lambda _target, _reason: None
    ended: Callable[[Outcome], None] = lambda _outcome: None


def build(
    workspace: Workspace,
    names: Sequence[str],
    environ: Mapping[str, str],
    *,
    jobs: int | None = None,
    force: bool = False,
    install: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    runner: Runner | None = None,
    digests: Digests | None = None,
) -> Built:
    """Bring the targets named (all if none is) and those that they use up to date.

    A failed step is an outcome; raises only what ends the whole build: `ConfigurationError`, `Missing`,
    `BuildFailed` from a toolchain that does not answer, or after ``runner.stop()`` in another thread.
    ``digests`` of an earlier build in this process save reading their memory again.
    """
    progress = progress or Progress()
    with exclusive(workspace, progress.note) as lock:
        situation = survey(workspace, names, environ, install=install, remember=True)
        _require_sources(situation)
        progress.situated(situation)
        digests = digests or build_digests(workspace)
        digests.look_again()
        builder = _Builder(workspace, situation, progress, lock, runner or Runner(), digests)
        outcomes = builder.bring_up_to_date(jobs or os.cpu_count() or 1, force)
        builder.save()
    return Built(situation, outcomes, builder.manifests)


def build_digests(workspace: Workspace) -> Digests:
    """Digests as builds take them: a file whose inode looks untouched since an earlier build is not read."""
    return Digests(workspace.root, workspace.cache("digests.json"))


def _require_sources(situation: Situation) -> None:
    """Raise `ConfigurationError`, with its line, for a source or a folder of sources that is not there."""
    root = situation.workspace.root
    for target in (action.target for action in situation.actions):
        for source in target.sources:
            if not (root / source).is_file():
                kind = special(root / source)
                what = f"{source} is {kind}, not a regular file" if kind else f"there is no file {source}"
                raise ConfigurationError(
                    f"{FILE}:{target.sources_line}: target {target.name}: {what}",
                    remedy="correct `sources` there, or add the file",
                )
    for folder in situation.project.source_roots:
        if not (root / folder).is_dir():
            raise ConfigurationError(
                f"{FILE}:{situation.project.source_roots_line}: source-roots: there is no folder {folder}",
                remedy="correct it there, or add the folder",
            )


def examine(
    workspace: Workspace, names: Sequence[str], environ: Mapping[str, str]
) -> tuple[Situation, list[Verdict]]:
    """The verdicts on which `build` would act, and what the gate asks beside; runs and writes nothing."""
    situation = survey(workspace, names, environ, remember=True)
    builder = _Builder(workspace, situation, Progress(), -1, Runner(), build_digests(workspace))
    return situation, [builder.verdict(action, environ) for action in situation.actions]


@dataclass(slots=True)
class _Builder:
    workspace: Workspace
    situation: Situation
    progress: Progress
    lock: int
    runner: Runner
    digests: Digests
    manifests: dict[str, Manifest] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)
    _tools: dict[str, Tools] = field(default_factory=dict)
    _used: dict[str, Used] = field(default_factory=dict)
    _passed: ContentsMemory = field(init=False)
    _observer: Observer = field(init=False)
    _maker: Maker = field(init=False)

    def __post_init__(self) -> None:
        root = self.workspace.root
        self._passed = ContentsMemory(self.workspace)
        self._observer = Observer(root, self.digests, self._passed.check)
        records = Records(self.workspace)
        self._maker = Maker(self.workspace, self.digests, records, self.lock, self.progress.note, self.runner)
        for action in self.situation.actions:
            name = action.target.name
            found, self._problems[name] = records.read(name)
            if found is not None:
                self.manifests[name] = found
        tools = {
            toolchain: digest_tools(toolchain.components, self.digests)
            for toolchain in dict.fromkeys(self.situation.toolchains.values())
        }
        self._tools = {name: tools[t] for name, t in self.situation.toolchains.items()}
        self.digests.load(paths_of(self.manifests))

    def save(self) -> None:
        """Keep what saves time next time."""
        self.digests.save()
        self._passed.save()
        self._maker.directives.save()

    def bring_up_to_date(self, jobs: int, force: bool) -> tuple[Outcome, ...]:
        """Make what must be made, the longest ways first; outcomes in the order of the plan."""
        actions = {action.target.name: action for action in self.situation.actions}
        due: dict[str, Verdict] = {}
        outcomes: dict[str, Outcome] = {}

        def decide(name: str) -> Outcome | None:
            verdict = self.verdict(actions[name])
            failed = [u for u in actions[name].target.uses if outcomes[u].result is Result.FAILED]
            if failed:
                outcomes[name] = self._not_begun(name, failed[0], verdict)
            elif force or self._must_be_made(verdict):
                due[name] = verdict
                return None
            else:
                outcomes[name] = self._left(actions[name], verdict)
            return outcomes[name]

        def work(name: str) -> Outcome:
            outcomes[name] = self._make(actions[name], due[name])
            return outcomes[name]

        needs = {name: action.target.uses for name, action in actions.items()}
        expected = {name: self._expected_seconds(name) for name in actions}
        try:
            run_steps(needs, expected, decide, work, jobs, self._maker.runner.stop)
        except KeyboardInterrupt:
            left = [name for name in actions if name not in outcomes]
            self.progress.note(f"interrupted; not done: {', '.join(left)}. What was done is kept")
            raise
        return tuple(outcomes[name] for name in actions)

    def verdict(self, action: Action, environ: Mapping[str, str] | None = None) -> Verdict:
        """Of one target, as things are now; those that it uses come before it.

        ``environ`` asks also how the product is reached: its stable name, which a build sets right by itself,
        and the variables of the driver, on which no build has an effect.
        """
        name = action.target.name
        manifest = self.manifests.get(name)
        evidence = self._observer.gather(
            manifest, self._problems[name], action, self._tools[name], self._used
        )
        verdict = judge(evidence)
        self._used[name] = verdict.state, manifest.product.digest if manifest else None
        if environ is None or manifest is None:
            return verdict
        reach = observe_loader(action.target, environ) + observe_link(manifest, action, self.digests)
        return judge(replace(evidence, observations=(*evidence.observations, *reach)))

    @staticmethod
    def _must_be_made(verdict: Verdict) -> bool:
        codes = {finding.code for finding in verdict.findings}
        return verdict.state is not State.FRESH and not codes <= _NO_REBUILD

    def _expected_seconds(self, name: str) -> float:
        """What the target took last time; an unknown one may take long."""
        manifest = self.manifests.get(name)
        return manifest.seconds if manifest else _UNKNOWN_SECONDS

    def _not_begun(self, name: str, failed: str, verdict: Verdict) -> Outcome:
        outcome = Outcome(name, Result.FAILED, f"not begun: it uses {failed}, which failed", verdict)
        self.progress.ended(outcome)
        return outcome

    def _left(self, action: Action, verdict: Verdict) -> Outcome:
        """The outcome of a target that is not made again."""
        name = action.target.name
        manifest = self.manifests[name]
        moved = self._maker.point_to(action, manifest.product.path)
        fresh = verdict.state is State.FRESH
        outcome = Outcome(
            target=name,
            result=Result.FRESH if fresh else Result.UNPROVEN,
            reason="its stable link was set right" if fresh and moved else reason_of(verdict),
            verdict=verdict,
            manifest=manifest_name(name),
            artifact=manifest.product.path,
            message=_told(verdict.findings),
            remedy=_remedies(verdict.findings),
        )
        self.progress.ended(outcome)
        return outcome

    def _make(self, action: Action, verdict: Verdict) -> Outcome:
        """Make a target; a failure is an outcome, unless an interruption of the build is behind it."""
        name = action.target.name
        reason = reason_of(verdict) if verdict.findings else "asked for"
        self.progress.started(name, reason)
        began = time.monotonic()
        used = (self.manifests[u] for u in action.target.uses)
        means = Means(
            self.situation.toolchains[name],
            self._tools[name],
            tuple(Member(m.target, m.product.digest, m.recipe_digest) for m in used),
        )
        try:
            manifest = self._maker.make(action, means)
            outcome = self._made(action, verdict, reason, manifest, time.monotonic() - began)
        except FreshproofError as error:
            if self._maker.runner.stopped:
                raise
            seconds = time.monotonic() - began
            outcome = Outcome(
                name, Result.FAILED, reason, verdict, seconds, message=str(error), remedy=error.remedy
            )
        self.progress.ended(outcome)
        return outcome

    def _made(
        self, action: Action, verdict: Verdict, reason: str, manifest: Manifest, seconds: float
    ) -> Outcome:
        """The outcome of a recorded action; its product may still not be what targets.toml demands."""
        name = action.target.name
        before = self.manifests.get(name)
        self.manifests[name] = manifest
        self.digests.current(manifest.product.path)
        after = self.verdict(action)
        demands = tuple(f for f in after.findings if f.link is Link.CONTENTS)
        fresh = after.state is State.FRESH
        return Outcome(
            target=name,
            result=Result.FAILED if demands else Result.BUILT if fresh else Result.UNPROVEN,
            reason=reason if fresh or demands else reason_of(after),
            verdict=verdict,
            seconds=seconds,
            manifest=manifest_name(name),
            artifact=manifest.product.path,
            same_code=before is not None
            and before.product.unstamped_digest == manifest.product.unstamped_digest,
            same_device_code=before is not None and self._same_device_code(before, manifest),
            message=_told(demands or after.findings),
            remedy=demands[0].remedy if demands else _remedies(after.findings),
        )

    def _same_device_code(self, before: Manifest, now: Manifest) -> bool:
        """Whether there is device code, and it did not change; the older artifact is still at its place."""
        if before.product.unstamped_digest == now.product.unstamped_digest and now.kind in _DEVICE_ONLY:
            return True
        codes = [device_code(self.workspace.root / m.product.path) for m in (before, now)]
        return codes[0] is not None and codes[0] == codes[1]


def _told(findings: Sequence[Finding]) -> str:
    return "\n".join(finding.message for finding in findings)


def _remedies(findings: Sequence[Finding]) -> str:
    return "; ".join(dict.fromkeys(finding.remedy for finding in findings))


def reason_of(verdict: Verdict) -> str:
    """The first finding in a few words, and how many more there are."""
    if not verdict.findings:
        return ""
    more = f" (+{len(verdict.findings) - 1} more)" if len(verdict.findings) > 1 else ""
    return f"{_in_few_words(verdict.findings[0])}{more}"


def _in_few_words(finding: Finding) -> str:
    if finding.code == "no-manifest":
        return finding.message
    if finding.link is Link.PLAN:
        return f"{finding.subject}: {_short(finding.recorded)} -> {_short(finding.observed)}"
    return f"{finding.code.replace('-', ' ')}: {finding.subject}"


def _short(text: str | None) -> str:
    """One side of a difference on the line of a summary; ``--explain`` shows all of it."""
    text = text or "unknown"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
