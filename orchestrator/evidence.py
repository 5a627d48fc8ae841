"""Evidence about one target: what its manifest says beside what is there now. `freshness.judge` decides.

Everything here compares; nothing here runs a tool. The readers passed in say how thoroughly files are looked
at: the build trusts signatures of inodes, the gate reads every byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.canonical import digest_bytes
from orchestrator.digests import Digests, Unreadable
from orchestrator.model import Action, Component, Digest, Evidence, Link, Manifest, Observation, State, Target

FILES_AND_PLAN = frozenset({Link.PLAN, Link.INPUTS, Link.TOOLCHAIN, Link.ARTIFACT, Link.CONTENTS})
"""The links that a file on disk must have. ``LOADED`` and ``DRIVERS`` belong to a run."""

Used = tuple[State, Digest | None]
"""A used target: its state, and the digest of its product."""

ContentsCheck = Callable[[Manifest, Target], tuple[Observation, ...]]


@dataclass(slots=True)
class Folders:
    """Listings of folders, each read once."""

    root: str
    _names: dict[str, frozenset[str]] = field(default_factory=dict)

    def present(self, folder: str, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that are files in ``folder`` now. Raises `Unreadable`."""
        full = folder if folder.startswith("/") else os.path.join(self.root, folder)
        if full not in self._names:
            self._names[full] = self._list(full)
        there = self._names[full]
        return [name for name in names if name in there and not os.path.isdir(f"{full}/{name}")]

    @staticmethod
    def _list(folder: str) -> frozenset[str]:
        try:
            return frozenset(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError as error:
            raise Unreadable(f"{folder}: {error.strerror}") from None


def gather(
    manifest: Manifest | None,
    problem: str,
    action: Action,
    components: Sequence[Component],
    digests: Digests,
    folders: Folders,
    used: Mapping[str, Used],
    check_contents: ContentsCheck,
) -> Evidence:
    """Observe every link of one target.

    ``problem`` says why there is no manifest, if there is none; ``used`` tells of the targets used.
    """
    name = action.target.name
    if manifest is None:
        missing = Observation(Link.PLAN, "no-manifest", name, None, None, problem)
        return Evidence(name, frozenset({Link.PLAN}), (missing,))
    artifact = _artifact(manifest, digests)
    return Evidence(
        name,
        FILES_AND_PLAN | ({Link.MEMBERS} if action.target.uses else frozenset()),
        (
            *_plan(manifest, action),
            *_inputs(manifest, digests, folders),
            *_toolchain(manifest, components),
            *_members(manifest, action, used),
            *artifact,
            *(check_contents(manifest, action.target) if _all_match(artifact) else ()),
        ),
    )


def _plan(manifest: Manifest, action: Action) -> Iterable[Observation]:
    """The recorded action beside the one planned now."""
    name = action.target.name
    differences = [
        *_changed(Link.PLAN, "kind-changed", name, manifest.kind, action.target.kind),
        *_changed(Link.PLAN, "arch-changed", name, manifest.arch or "none", action.arch or "none"),
        *_changed(Link.PLAN, "nvcc-changed", "nvcc", manifest.argv[0], action.argv[0]),
        *_changed(
            Link.PLAN, "flags-changed", f"command of {name}", *_difference(manifest.argv[1:], action.argv[1:])
        ),
    ]
    before, now = dict(manifest.environment), dict(action.environment)
    for variable in sorted(before.keys() | now.keys()):
        differences += _changed(
            Link.PLAN,
            "environment-changed",
            variable,
            before.get(variable, "unset"),
            now.get(variable, "unset"),
        )
    generated = {g.path: digest_bytes(g.text.encode()) for g in action.generated}
    for path in sorted(generated.keys() | dict(manifest.generated).keys()):
        recorded = dict(manifest.generated).get(path, "none")
        differences += _changed(Link.PLAN, "generated-changed", path, recorded, generated.get(path, "none"))
    if differences:
        return differences
    command = f"{len(action.argv)} words, {len(action.environment)} variables"
    return [Observation(Link.PLAN, "plan", name, command, command)]


def _difference(recorded: Sequence[str], now: Sequence[str]) -> tuple[str, str]:
    """The parts of two commands that differ, unless they are equal."""
    if tuple(recorded) == tuple(now):
        return "", ""
    start = 0
    while start < min(len(recorded), len(now)) and recorded[start] == now[start]:
        start += 1
    end = 0
    while end < min(len(recorded), len(now)) - start and recorded[-1 - end] == now[-1 - end]:
        end += 1
    return _words(recorded[start : len(recorded) - end]), _words(now[start : len(now) - end])


def _words(words: Sequence[str]) -> str:
    """Command words so that two different sequences never read alike."""
    return (
        " ".join(w if w.isascii() and w.isprintable() and w and " " not in w else repr(w) for w in words)
        or "nothing"
    )


def _changed(link: Link, code: str, subject: str, recorded: str, observed: str) -> list[Observation]:
    if recorded == observed:
        return []
    return [Observation(link, code, subject, str(recorded), str(observed))]


def _inputs(manifest: Manifest, digests: Digests, folders: Folders) -> Iterable[Observation]:
    """Every file of the closure, and every name that was absent."""
    closure = manifest.closure
    observations: list[Observation] = []
    for material in closure.materials:
        try:
            now = digests.get(material.path)
        except Unreadable as error:
            observations.append(_unknown("input-unreadable", material.path, material.digest, str(error)))
            continue
        if now != material.digest:
            code = "input-changed" if now else "input-missing"
            note = f"{material.path}: {'its content changed' if now else 'is gone'}"
            observations.append(
                Observation(Link.INPUTS, code, material.path, material.digest, now or "missing", note)
            )
    for folder, names in closure.absent:
        try:
            appeared = folders.present(folder, names)
        except Unreadable as error:
            observations.append(_unknown("folder-unreadable", folder or ".", "absent", str(error)))
            continue
        for name in appeared:
            path = f"{folder}/{name}" if folder else name
            observations.append(
                Observation(
                    Link.INPUTS, "name-appeared", path, "absent", "present",
                    f"{path}: was looked for and not found when this was compiled, and is there now",
                )
            )  # fmt: skip
    observations += [
        _unknown("input-unfollowed", reason.split(":")[0], None, reason) for reason in closure.unknown
    ]
    if not observations and closure.materials:
        count = f"{len(closure.materials)} files, {sum(len(n) for _f, n in closure.absent)} absent names"
        observations.append(Observation(Link.INPUTS, "inputs", manifest.target, count, count))
    return observations


def _unknown(code: str, subject: str, recorded: str | None, note: str) -> Observation:
    return Observation(Link.INPUTS, code, subject, recorded, None, note)


def _toolchain(manifest: Manifest, components: Sequence[Component]) -> Iterable[Observation]:
    """Every component by its role; a tool that moved and kept its bytes is the same tool."""
    recorded = {c.role: c for c in manifest.toolchain}
    now = {c.role: c for c in components}
    observations = []
    for role in sorted(recorded.keys() | now.keys()):
        was, is_now = recorded.get(role), now.get(role)
        if was is None or is_now is None:
            subject = (was or is_now or components[0]).path
            observations.append(
                Observation(
                    Link.TOOLCHAIN, "tool-set-changed", f"{role} ({subject})",
                    was.digest if was else "none", is_now.digest if is_now else "none",
                )
            )  # fmt: skip
        elif not is_now.digest:
            observations.append(Observation(Link.TOOLCHAIN, "tool-unreadable", is_now.path, was.digest, None))
        elif was.digest != is_now.digest:
            observations.append(
                Observation(
                    Link.TOOLCHAIN,
                    "tool-changed",
                    is_now.path,
                    was.digest,
                    is_now.digest,
                    f"{is_now.path}: this tool's content changed",
                )
            )
    if not observations and recorded:
        count = f"{len(recorded)} components of toolkit {manifest.toolkit_version}"
        observations.append(Observation(Link.TOOLCHAIN, "toolchain", manifest.target, count, count))
    return observations


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
            yield Observation(Link.MEMBERS, "member-unproven", name, before, None, note)


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


def _all_match(observations: Iterable[Observation]) -> bool:
    return all(o.recorded is not None and o.recorded == o.observed for o in observations)


def digest_components(named: Sequence[tuple[str, str]], digests: Digests) -> tuple[Component, ...]:
    """Components with their digests now; an empty digest stands for one that cannot be read."""
    digests.load(path for _role, path in named)
    return tuple(Component(role, path, _digest_or_empty(path, digests)) for role, path in named)


def _digest_or_empty(path: str, digests: Digests) -> Digest:
    try:
        return digests.get(path) or ""
    except Unreadable:
        return ""


def paths_of(manifests: Mapping[str, Manifest]) -> list[str]:
    """Every file that the manifests' targets are checked against, once each."""
    names = {m.path: None for manifest in manifests.values() for m in manifest.closure.materials}
    return [*names, *(manifest.product.path for manifest in manifests.values())]
