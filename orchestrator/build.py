"""Builds what is not fresh: runs each action, takes in its closure, stamps the product and records it.

A target is recorded only when its command succeeded, left a usable dependency list, and none of the files
that it read changed meanwhile. Whatever happens in between, kill -9 included, leaves the earlier record and
artifact or none; the verdict of the next build is about files as they are, so it is right either way.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from orchestrator import manifest as records
from orchestrator import stamp
from orchestrator.canonical import digest_bytes, digest_document, encode
from orchestrator.closure import ChangedMeanwhile, ClosureReader
from orchestrator.digests import Digests
from orchestrator.errors import BuildFailed, FreshproofError
from orchestrator.evidence import Folders, digest_components, gather, paths_of
from orchestrator.freshness import judge
from orchestrator.model import (
    Action,
    Closure,
    Component,
    Finding,
    Link,
    Manifest,
    Observation,
    Product,
    State,
    Target,
    Verdict,
)
from orchestrator.objects.window import Malformed
from orchestrator.plan import output, work_folder
from orchestrator.process import Ended, run
from orchestrator.situation import Situation, survey
from orchestrator.targets import unit_of
from orchestrator.verify import observe_contents
from orchestrator.workspace import (
    Workspace,
    exclusive,
    fresh_folder,
    link_atomically,
    write_atomically,
)

_NO_REBUILD = frozenset({"input-unfollowed"})
"""Findings that another build of the same sources would leave as they are."""


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
    message: str = ""
    """Of a failure: the tool's own words, whole."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """The answer of `build`."""

    situation: Situation
    outcomes: tuple[Outcome, ...]
    manifests: Mapping[str, Manifest]

    def count(self, result: Result) -> int:
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
) -> Built:
    """Bring the targets named (all if none is) up to date.

    A failed step is an outcome; raises only what ends the whole build: `ConfigurationError`,
    `Missing`, `BuildFailed` from a toolchain that does not answer.
    """
    progress = progress or Progress()
    with exclusive(workspace, progress.note) as lock:
        situation = survey(workspace, names, environ, install=install, remember=True)
        progress.situated(situation)
        builder = _Builder(workspace, situation, progress, lock)
        outcomes = builder.bring_up_to_date(jobs or os.cpu_count() or 1, force)
        builder.save()
    return Built(situation, outcomes, builder.manifests)


def examine(
    workspace: Workspace, names: Sequence[str], environ: Mapping[str, str]
) -> tuple[Situation, list[Verdict]]:
    """The verdicts on which `build` would act; runs and writes nothing."""
    situation = survey(workspace, names, environ, remember=True)
    builder = _Builder(workspace, situation, Progress(), -1)
    return situation, builder.verdicts()


def read_manifest(workspace: Workspace, target: str) -> tuple[Manifest | None, str]:
    """A target's manifest, or why there is none to go by."""
    path = workspace.manifest(target)
    try:
        manifest = records.from_bytes(path.read_bytes())
    except FileNotFoundError:
        return None, "never built here"
    except (OSError, ValueError) as error:
        return None, f"{workspace.relative(path)} cannot be read: {error}"
    if manifest.target != target:
        return None, f"{workspace.relative(path)} is the manifest of {manifest.target}"
    return manifest, ""


@dataclass(slots=True)
class _Builder:
    workspace: Workspace
    situation: Situation
    progress: Progress
    lock: int
    manifests: dict[str, Manifest] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)
    _components: dict[str, tuple[Component, ...]] = field(default_factory=dict)
    _digests: Digests = field(init=False)
    _folders: Folders = field(init=False)
    _closures: ClosureReader = field(init=False)
    _passed: ContentsMemory = field(init=False)

    def __post_init__(self) -> None:
        root = self.workspace.root
        self._digests = Digests(root, self.workspace.cache("digests.json"))
        self._folders = Folders(str(root))
        self._closures = ClosureReader(root, self._digests)
        self._passed = ContentsMemory(self.workspace)
        for action in self.situation.actions:
            name = action.target.name
            found, problem = read_manifest(self.workspace, name)
            if found is not None:
                self.manifests[name] = found
            self._problems[name] = problem
        for name, toolchain in self.situation.toolchains.items():
            self._components[name] = digest_components(toolchain.components, self._digests)
        self._digests.load(paths_of(self.manifests))

    def save(self) -> None:
        self._digests.save()
        self._passed.save()

    def verdicts(self) -> list[Verdict]:
        return [self._verdict(action) for action in self.situation.actions]

    def bring_up_to_date(self, jobs: int, force: bool) -> tuple[Outcome, ...]:
        """Build what must be built, the longest first; outcomes in the order of the plan."""
        outcomes: dict[str, Outcome] = {}
        due: list[tuple[Action, Verdict]] = []
        for action in self.situation.actions:
            verdict = self._verdict(action)
            codes = {finding.code for finding in verdict.findings}
            if force or (verdict.state is not State.FRESH and not codes <= _NO_REBUILD):
                due.append((action, verdict))
            else:
                outcomes[action.target.name] = self._left(action, verdict)
        due.sort(key=lambda item: -self._expected_seconds(item[0]))
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            for outcome in pool.map(lambda item: self._make(*item), due):
                outcomes[outcome.target] = outcome
        return tuple(outcomes[action.target.name] for action in self.situation.actions)

    def _expected_seconds(self, action: Action) -> float:
        """What the target took last time; an unknown one goes first."""
        manifest = self.manifests.get(action.target.name)
        return manifest.seconds if manifest else float("inf")

    def _verdict(self, action: Action) -> Verdict:
        name = action.target.name
        evidence = gather(
            self.manifests.get(name),
            self._problems[name],
            action,
            self._components[name],
            self._digests,
            self._folders,
            self._passed.check,
        )
        return judge(evidence)

    def _left(self, action: Action, verdict: Verdict) -> Outcome:
        """The outcome of a target that is not built again."""
        name = action.target.name
        manifest = self.manifests[name]
        self._point_to(action, manifest.product.path)
        fresh = verdict.state is State.FRESH
        outcome = Outcome(
            target=name,
            result=Result.FRESH if fresh else Result.UNPROVEN,
            reason="" if fresh else reason_of(verdict),
            verdict=verdict,
            manifest=self.workspace.relative(self.workspace.manifest(name)),
            artifact=manifest.product.path,
        )
        self.progress.ended(outcome)
        return outcome

    def _point_to(self, action: Action, product: str) -> None:
        """The stable link, set right if it is not."""
        link, to = self.workspace.link(action.product_name), self.workspace.root / product
        if not link.is_symlink() or Path(os.path.normpath(link.parent / link.readlink())) != to:
            link_atomically(link, to)

    def _make(self, action: Action, verdict: Verdict) -> Outcome:
        name = action.target.name
        reason = reason_of(verdict) if verdict.findings else "asked for"
        self.progress.started(name, reason)
        began = time.monotonic()
        before = self.manifests.get(name)
        try:
            manifest = self._run_and_record(action)
            outcome = self._made(action, verdict, reason, before, manifest, time.monotonic() - began)
        except FreshproofError as error:
            outcome = Outcome(
                name,
                Result.FAILED,
                reason,
                verdict,
                time.monotonic() - began,
                message=error.what,
                remedy=error.remedy,
            )
        self.progress.ended(outcome)
        return outcome

    def _made(
        self,
        action: Action,
        verdict: Verdict,
        reason: str,
        before: Manifest | None,
        manifest: Manifest,
        seconds: float,
    ) -> Outcome:
        """The outcome of a recorded action; its product may still not be what targets.toml demands."""
        name = action.target.name
        self.manifests[name] = manifest
        self._digests.current(manifest.product.path)
        after = self._verdict(action)
        demands = [f for f in after.findings if f.link is Link.CONTENTS]
        result = Result.FAILED if demands else Result.BUILT if after.state is State.FRESH else Result.UNPROVEN
        return Outcome(
            target=name,
            result=result,
            reason=reason if result is not Result.UNPROVEN else reason_of(after),
            verdict=verdict,
            seconds=seconds,
            manifest=self.workspace.relative(self.workspace.manifest(name)),
            artifact=manifest.product.path,
            same_code=before is not None
            and before.product.unstamped_digest == manifest.product.unstamped_digest,
            message="\n".join(f.message for f in demands),
            remedy=demands[0].remedy if demands else "",
        )

    def _run_and_record(self, action: Action) -> Manifest:
        """Run the command, once more if its inputs changed meanwhile, and record it."""
        for attempt in (1, 2):
            started_ns = self._prepare(action)
            ended = self._run(action)
            try:
                closure = self._closures.read(
                    action, self.situation.toolchains[action.target.name], started_ns
                )
                return self._record(action, closure, ended)
            except ChangedMeanwhile as change:
                if attempt == 2:
                    raise BuildFailed(
                        f"{action.target.name}: not recorded, since its inputs keep changing:\n{change}",
                        remedy="build again when the files are at rest",
                    ) from None
                self.progress.note(f"{action.target.name}: {change}; building it again")
        raise AssertionError("unreachable")

    def _prepare(self, action: Action) -> int:
        """Empty private folder with the generated files; returns the file system's time now, in nanoseconds.

        Waits for the next tick of its clock if a source was written in this one: an edit before the command
        and one after its start could not be told apart.
        """
        root = self.workspace.root
        work = root / work_folder(action.target)
        fresh_folder(work)
        (work / "keep").mkdir()
        (work / "tmp").mkdir()
        for generated in action.generated:
            (root / generated.path).write_text(generated.text, encoding="utf-8")
        recent = max((_change_time(root / s) for s in action.target.sources), default=0)
        mark = work / "started"
        while True:
            mark.write_bytes(b"")
            started = mark.stat().st_ctime_ns
            if started > recent or recent > time.time_ns():
                return started
            time.sleep(0.002)

    def _run(self, action: Action) -> Ended:
        name = action.target.name
        ended = run(action.argv, dict(action.environment), self.workspace.root, (self.lock,))
        log = self.workspace.log(name)
        command = " ".join(action.argv).encode("utf-8", "surrogateescape")
        write_atomically(log, command + b"\n\n" + ended.said)
        if ended.code != 0:
            said = ended.said.decode("utf-8", "replace").rstrip() or "it printed nothing"
            how = f"exit status {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
            raise BuildFailed(
                f"{name}: nvcc ended with {how}:\n{said}",
                remedy=f"the whole log: {self.workspace.relative(log)}",
            )
        return ended

    def _record(self, action: Action, closure: Closure, ended: Ended) -> Manifest:
        """Stamp the product, put it at its own path, and write the manifest."""
        workspace, name = self.workspace, action.target.name
        components = self._current_components(name)
        recipe = records.recipe_digest(action, closure, components)
        product = self._put(action, recipe)
        manifest = Manifest(
            target=name,
            kind=action.target.kind,
            arch=action.arch,
            argv=action.argv,
            environment=action.environment,
            generated=tuple(sorted((g.path, digest_bytes(g.text.encode())) for g in action.generated)),
            closure=closure,
            toolchain=components,
            toolkit_version=self.situation.toolchains[name].version,
            action_digest=records.action_digest(action, closure, components),
            recipe_digest=recipe,
            product=product,
            seconds=ended.seconds,
            log=workspace.relative(workspace.log(name)),
        )
        write_atomically(workspace.manifest(name), records.to_bytes(manifest))
        self._point_to(action, product.path)
        return manifest

    def _current_components(self, name: str) -> tuple[Component, ...]:
        """The toolchain after the command: one that changed while it ran made nobody knows what."""
        components = self._components[name]
        for component in components:
            if self._digests.current(component.path) != component.digest:
                raise BuildFailed(
                    f"{component.path} changed while it was in use",
                    remedy="build again when the installation is done",
                )
        return components

    def _put(self, action: Action, recipe: str) -> Product:
        name = action.target.name
        try:
            data = (self.workspace.root / output(action.target)).read_bytes()
            stamped = stamp.write_stamp(data, unit_of(name), recipe)
        except OSError as error:
            raise BuildFailed(f"{name}: nvcc succeeded and wrote no product: {error.strerror}") from None
        except (ValueError, Malformed) as error:
            raise BuildFailed(f"{name}: the product cannot be stamped: {error}") from None
        digest = digest_bytes(stamped)
        path = self.workspace.artifact(digest, action.product_name)
        write_atomically(path, stamped, mode=0o444)
        return Product(self.workspace.relative(path), digest, digest_bytes(data), len(stamped))


class ContentsMemory:
    """Which artifacts were read and found to be as demanded: by digest, so an answer does not age."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.cache("contents.json")
        try:
            self._passed = set(map(str, json.loads(self._file.read_bytes())))
        except (OSError, ValueError, TypeError):
            self._passed = set()
        self._new = False

    def check(self, manifest: Manifest, target: Target) -> tuple[Observation, ...]:
        """The observations about an artifact whose digest was found to be the recorded one."""
        product = manifest.product
        key = digest_document(
            [
                product.digest,
                repr(target.expect),
                target.kind,
                target.name,
                manifest.recipe_digest,
                manifest.arch,
            ]
        )
        if key in self._passed:
            return (Observation(Link.CONTENTS, "contents", product.path, "as demanded", "as demanded"),)
        observations = check_contents(self._workspace, manifest, target)
        if observations and all(o.recorded is not None and o.recorded == o.observed for o in observations):
            self._passed.add(key)
            self._new = True
        return observations

    def save(self) -> None:
        if self._new:
            write_atomically(self._file, encode(sorted(self._passed)))


def check_contents(workspace: Workspace, manifest: Manifest, target: Target) -> tuple[Observation, ...]:
    """Read an artifact and compare what it holds with what its target demands."""
    path = workspace.root / manifest.product.path
    try:
        data = path.read_bytes()
    except OSError as error:
        return (Observation(Link.CONTENTS, "artifact-unreadable", str(path), "readable", None, str(error)),)
    return observe_contents(data, target, manifest.recipe_digest, manifest.arch)


def reason_of(verdict: Verdict) -> str:
    """The first finding in a few words, and how many more there are."""
    if not verdict.findings:
        return ""
    first = verdict.findings[0]
    more = f" (+{len(verdict.findings) - 1} more)" if len(verdict.findings) > 1 else ""
    return f"{_in_few_words(first)}{more}"


def _in_few_words(finding: Finding) -> str:
    if finding.code == "no-manifest":
        return finding.message
    if finding.link is Link.PLAN:
        return f"{finding.subject}: {finding.recorded} -> {finding.observed}"
    return f"{finding.code.replace('-', ' ')}: {finding.subject}"


def _change_time(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0
