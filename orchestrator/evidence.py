"""Evidence about one target: what its manifest says beside what is there now. `freshness.judge` decides.

Everything here compares; nothing here runs a tool. The readers passed in say how thoroughly files are looked
at: the build trusts signatures of inodes, the gate reads every byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.digests import Digests, Unreadable
from orchestrator.manifest import make_tools, recipe_digest
from orchestrator.model import (
    Absent,
    Action,
    Common,
    Component,
    Digest,
    Evidence,
    Link,
    Manifest,
    Material,
    Observation,
    Origin,
    State,
    Target,
    Tools,
)
from orchestrator.plan_difference import compare_plans

FILES_AND_PLAN = frozenset({Link.PLAN, Link.INPUTS, Link.TOOLCHAIN, Link.ARTIFACT, Link.CONTENTS})
"""The links that a file on disk must have. ``LOADED`` and ``DRIVERS`` belong to a run."""

_BUILD = "freshproof build"

Used = tuple[State, Digest | None]
"""A used target: its state, and the digest of its product."""

ContentsCheck = Callable[[Manifest, Target], tuple[Observation, ...]]


class Observer:
    """Looks at the links of many targets; what they have in common is looked at once."""

    def __init__(self, root: Path, digests: Digests, check_contents: ContentsCheck) -> None:
        self._root = f"{root}/"
        self._digests = digests
        self._check_contents = check_contents
        self._listings: dict[str, frozenset[str]] = {}
        self._commons: dict[Digest, tuple[Observation, ...]] = {}

    def gather(
        self,
        manifest: Manifest | None,
        problem: str,
        action: Action,
        tools: Tools,
        used: Mapping[str, Used],
    ) -> Evidence:
        """Observe every link of one target.

        ``problem`` says why there is no manifest, if there is none; ``tools`` are the plan's as they are now,
        ``used`` the targets used.
        """
        name = action.target.name
        if manifest is None:
            missing = Observation(Link.PLAN, "no-manifest", name, None, None, problem)
            return Evidence(name, frozenset({Link.PLAN}), (missing,))
        artifact = _artifact(manifest, self._digests)
        observations = (
            *compare_plans(manifest, action),
            *self.inputs(manifest),
            *compare_tools(manifest, tools),
            *_members(manifest, action, used),
            *artifact,
            *(self._check_contents(manifest, action.target) if _all_match(artifact) else ()),
        )
        required = FILES_AND_PLAN | ({Link.MEMBERS} if action.target.uses else frozenset())
        if not _all_match(artifact):  # what is in other bytes than the recorded ones is no question
            required -= {Link.CONTENTS}
        return Evidence(
            name,
            required,
            (*observations, *(_recipe(manifest, action, tools) if _all_match(observations) else ())),
        )

    def inputs(self, manifest: Manifest) -> Iterable[Observation]:
        """Every file of the closure, and every name that was absent."""
        closure = manifest.closure
        common = closure.common
        if common.digest not in self._commons:
            self._commons[common.digest] = (*self._files(common.materials), *self._names(common.absent))
        observations = [
            *self._files(closure.materials),
            *self._names(closure.absent),
            *self._commons[common.digest],
            *map(_unfollowed, closure.unknown),
        ]
        if not observations and closure.materials:
            count = f"{closure.files} files, {closure.absent_names} absent names"
            observations.append(Observation(Link.INPUTS, "inputs", manifest.target, count, count))
        return observations

    def _files(self, materials: Iterable[Material]) -> Iterable[Observation]:
        """An observation for each file that is not as recorded."""
        for material in materials:
            if material.origin is Origin.MEMBER:  # the link `members` tells, so that it is told once
                continue
            path = material.path
            try:
                now = self._digests.get(path)
            except Unreadable as error:
                yield _unknown("input-unreadable", path, material.digest, str(error))
                continue
            if now != material.digest:
                code = "input-changed" if now else "input-missing"
                note = f"{path}: {'its content changed' if now else 'is gone'}"
                yield Observation(Link.INPUTS, code, path, material.digest, now or "missing", note)

    def _names(self, absent: Absent) -> Iterable[Observation]:
        """An observation for each name that is there now."""
        for folder, names in absent:
            try:
                appeared = self._present(folder, names)
            except Unreadable as error:
                yield _unknown("folder-unreadable", folder or ".", "absent", str(error))
                continue
            for name in appeared:
                path = f"{folder}/{name}" if folder else name
                note = f"{path}: was looked for and not found when this was compiled, and is there now"
                yield Observation(Link.INPUTS, "name-appeared", path, "absent", "present", note)

    def _present(self, folder: str, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that are files in ``folder`` now. Raises `Unreadable`."""
        full = folder if folder.startswith("/") else self._root + folder
        if full not in self._listings:
            self._listings[full] = _list(full)
        there = self._listings[full]
        return [n for n in names if n in there and not os.path.isdir(f"{full}/{n}")] if there else []


def _list(folder: str) -> frozenset[str]:
    """Names in a folder; none if there is no such folder. Raises `Unreadable`."""
    try:
        return frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        raise Unreadable(f"{folder}: {error.strerror}") from None


def _unknown(code: str, subject: str, recorded: str | None, note: str) -> Observation:
    return Observation(Link.INPUTS, code, subject, recorded, None, note, f"see to it, then {_BUILD}")


def _unfollowed(why: str) -> Observation:
    """Of what the closure says could not be followed; building the same again would not help."""
    note, _, remedy = why.partition(" -> ")
    remedy = f"{remedy or 'write it so that it can be followed'}, then {_BUILD}"
    return Observation(Link.INPUTS, "input-unfollowed", note.split(":")[0], None, None, note, remedy)


def compare_tools(manifest: Manifest, tools: Tools) -> list[Observation]:
    """Every component by its role; a tool that moved and kept its bytes is the same tool."""
    same = manifest.tools.digest == tools.digest and all(c.digest for c in tools.components)
    observations = [] if same else list(_tool_differences(manifest.tools, tools))
    if not observations and tools.components:
        count = f"{len(tools.components)} components of toolkit {manifest.toolkit_version}"
        observations.append(Observation(Link.TOOLCHAIN, "toolchain", manifest.target, count, count))
    return observations


def _tool_differences(recorded: Tools, tools: Tools) -> Iterable[Observation]:
    before = {c.role: c for c in recorded.components}
    now = {c.role: c for c in tools.components}
    for role in sorted(before.keys() | now.keys()):
        was, is_now = before.get(role), now.get(role)
        if was is None or is_now is None:
            tool = was or is_now
            subject = f"{role} ({tool.path if tool else 'unknown'})"
            sides = (was.digest if was else "none", is_now.digest if is_now else "none")
            yield Observation(Link.TOOLCHAIN, "tool-set-changed", subject, *sides)
        elif not is_now.digest:
            note = f"{is_now.path}: this tool cannot be read"
            remedy = f"see to it, then {_BUILD}"
            yield Observation(Link.TOOLCHAIN, "tool-unreadable", is_now.path, was.digest, None, note, remedy)
        elif was.digest != is_now.digest:
            note = f"{is_now.path}: this tool's content changed"
            yield Observation(Link.TOOLCHAIN, "tool-changed", is_now.path, was.digest, is_now.digest, note)


def _members(manifest: Manifest, action: Action, used: Mapping[str, Used]) -> Iterable[Observation]:
    """Every product that went in is what its own target has now, and that is fresh."""
    recorded = {member.target: member.digest for member in manifest.members}
    for name in action.target.uses:
        state, digest = used.get(name, (State.UNPROVEN, None))
        before = recorded.get(name, "not used")
        if state is State.FRESH:
            code = "member" if digest == before else "member-changed"
            note = f"{name}: was built anew since it went into {action.target.name}"
            yield Observation(Link.MEMBERS, code, name, before, digest, note)
        elif state is State.STALE:
            note = f"{name}: is stale, so what it went into is stale too"
            yield Observation(Link.MEMBERS, "member-stale", name, before, "stale", note)
        else:
            note = f"{name}: is unproven, so what it went into is unproven too"
            remedy = f"do what is said of {name}"
            yield Observation(Link.MEMBERS, "member-unproven", name, before, None, note, remedy)


def _artifact(manifest: Manifest, digests: Digests) -> tuple[Observation, ...]:
    product = manifest.product
    try:
        now = digests.get(product.path)
    except Unreadable as error:
        return (
            Observation(Link.ARTIFACT, "artifact-unreadable", product.path, product.digest, None, str(error)),
        )
    code = "artifact" if now == product.digest else "artifact-changed" if now else "artifact-missing"
    note = f"{product.path}: {'its bytes are not those that were built' if now else 'is gone'}"
    return (Observation(Link.ARTIFACT, code, product.path, product.digest, now or "missing", note),)


def _recipe(manifest: Manifest, action: Action, tools: Tools) -> tuple[Observation, ...]:
    """The recipe digest, computed again from what was found as recorded.

    It differs when the manifest was tampered with, or by a release with another idea of a recipe.
    """
    now = recipe_digest(action, manifest.closure, manifest.members, tools)
    name = action.target.name
    note = f"{name}: the stamp is not the digest of what it was made from, as this release computes it"
    return (Observation(Link.PLAN, "recipe-digest", name, manifest.recipe_digest, now, note),)


def _all_match(observations: Iterable[Observation]) -> bool:
    return all(o.recorded is not None and o.recorded == o.observed for o in observations)


def digest_tools(named: Sequence[tuple[str, str]], digests: Digests) -> Tools:
    """Tools with their digests now; an empty digest stands for one that cannot be read."""
    digests.load(path for _role, path in named)
    return make_tools(Component(role, path, _digest_or_empty(path, digests)) for role, path in named)


def _digest_or_empty(path: str, digests: Digests) -> Digest:
    try:
        return digests.get(path) or ""
    except Unreadable:
        return ""


def paths_of(manifests: Mapping[str, Manifest]) -> list[str]:
    """Every file that the manifests' targets are checked against, once each."""
    names: dict[str, None] = {}
    commons: dict[Digest, Common] = {}
    for manifest in manifests.values():
        commons[manifest.closure.common.digest] = manifest.closure.common
        names.update(dict.fromkeys(m.path for m in manifest.closure.materials))
        names[manifest.product.path] = None
    for common in commons.values():
        names.update(dict.fromkeys(m.path for m in common.materials))
    return list(names)
