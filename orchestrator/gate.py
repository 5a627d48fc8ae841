"""The gate: nothing is timed unless it is, at this moment, what building now would make.

`admit` plans again from targets.toml, the environment and the PATH as they are now, asks nvcc and the host
compiler again what they run, and reads every file in full. It trusts no time stamp and no cache.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator import manifest as records
from orchestrator.canonical import digest_bytes
from orchestrator.digests import Digests
from orchestrator.errors import BuildFailed, Missing
from orchestrator.evidence import Observer, Used, digest_tools, paths_of
from orchestrator.freshness import judge
from orchestrator.model import (
    Action,
    Admission,
    Admitted,
    Evidence,
    Link,
    Manifest,
    Observation,
    State,
    Target,
    Verdict,
)
from orchestrator.reach import observe_link, observe_loader
from orchestrator.recorded import Records, check_contents
from orchestrator.situation import Situation, read_project, survey
from orchestrator.targets import select
from orchestrator.workspace import Workspace, find_root


def admit(root: Path, names: Sequence[str], environ: Mapping[str, str] | None = None) -> Admission:
    """Check the targets named (all if none is) and those that they use.

    Raises `ConfigurationError` if targets.toml is wrong or a name is not defined in it.
    """
    environ = os.environ if environ is None else environ
    workspace = Workspace(find_root(root))
    try:
        situation = survey(workspace, names, environ)
    except (Missing, BuildFailed) as error:
        targets = select(read_project(workspace), names)
        return Admission(tuple(_unplanned(target, error.what) for target in targets), ())
    return _Check(workspace, situation, environ).admission()


class _Check:
    """One look at everything."""

    def __init__(self, workspace: Workspace, situation: Situation, environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._situation = situation
        self._environ = environ
        self._digests = Digests(workspace.root)
        self._observer = Observer(workspace.root, self._digests, self._contents)
        self._tools = {
            toolchain: digest_tools(toolchain.components, self._digests)
            for toolchain in dict.fromkeys(situation.toolchains.values())
        }
        recorded = Records(workspace)
        self._manifests: dict[str, Manifest] = {}
        self._problems: dict[str, str] = {}
        self._used: dict[str, Used] = {}
        for action in situation.actions:
            name = action.target.name
            found, self._problems[name] = recorded.read(name)
            if found is not None:
                self._manifests[name] = found
        self._digests.load(paths_of(self._manifests))

    def admission(self) -> Admission:
        verdicts = tuple(map(self._verdict, self._situation.actions))
        if not verdicts or any(v.state is not State.FRESH for v in verdicts):
            return Admission(verdicts, ())
        return Admission(verdicts, tuple(self._admitted(a.target) for a in self._situation.actions))

    def _verdict(self, action: Action) -> Verdict:
        name = action.target.name
        tools = self._tools[self._situation.toolchains[name]]
        evidence = self._observer.gather(
            self._manifests.get(name), self._problems[name], action, tools, self._used
        )
        manifest = self._manifests.get(name)
        extra = observe_loader(action.target, self._environ)
        if manifest is not None and judge(evidence).state is State.FRESH:
            extra += observe_link(manifest, action, self._digests)
        verdict = judge(Evidence(evidence.target, evidence.required, (*evidence.observations, *extra)))
        self._used[name] = verdict.state, manifest.product.digest if manifest else None
        return verdict

    def _contents(self, manifest: Manifest, target: Target) -> tuple[Observation, ...]:
        return check_contents(self._workspace, manifest, target)

    def _admitted(self, target: Target) -> Admitted:
        manifest = self._manifests[target.name]
        return Admitted(
            target=target.name,
            kind=target.kind,
            path=str(self._workspace.root / manifest.product.path),
            digest=manifest.product.digest,
            stamp=manifest.recipe_digest,
            manifest_digest=digest_bytes(records.to_bytes(manifest)),
            arch=manifest.arch,
        )


def _unplanned(target: Target, why: str) -> Verdict:
    """The verdict on a target that cannot be planned here at all."""
    observation = Observation(Link.PLAN, "cannot-plan", target.name, None, None, why, "freshproof build")
    return judge(Evidence(target.name, frozenset({Link.PLAN}), (observation,)))
