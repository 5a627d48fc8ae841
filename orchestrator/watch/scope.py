"""What a watch is about: files and absent names, each with the targets that they affect. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.model import Absent, Action, Digest, Manifest, Target

Names = frozenset[str]
"""Names of targets."""


@dataclass(frozen=True, slots=True)
class Due:
    """Targets to look at: some, or all that are watched."""

    names: Names = frozenset()
    everything: bool = False

    def __or__(self, other: Due) -> Due:
        return Due(self.names | other.names, self.everything or other.everything)

    def __bool__(self) -> bool:
        return self.everything or bool(self.names)


NOTHING = Due()
EVERYTHING = Due(everything=True)


@dataclass(slots=True)
class Scope:
    """Paths are as manifests write them: relative to the project's root, or full."""

    files: dict[str, Names] = field(default_factory=dict)
    absent: dict[tuple[str, tuple[str, ...]], Names] = field(default_factory=dict)
    """Folder and the names in it that were looked for and not found."""
    recorded: dict[str, Digest | None] = field(default_factory=dict)
    """Digest of each file as the targets that read it have it recorded; ``None`` if they disagree."""

    def read(self, path: str, names: Names, digest: Digest | None = None) -> None:
        """Add a file."""
        self.files[path] = self.files.get(path, frozenset()) | names
        if digest is not None:
            known = self.recorded.setdefault(path, digest)
            if known != digest:
                self.recorded[path] = None

    def miss(self, absent: Absent, names: Names) -> None:
        """Add names that must stay absent."""
        for group in absent:
            self.absent[group] = self.absent.get(group, frozenset()) | names


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """What a target that has no record of its present sources seems to read, and to look for in vain."""

    files: tuple[str, ...]
    absent: Absent


def scope_of(
    actions: Iterable[Action],
    manifests: Mapping[str, Manifest],
    components: Mapping[str, Sequence[tuple[str, str]]],
    unbuilt: Mapping[str, Unbuilt],
) -> Scope:
    """Everything that a change of can make one of the targets of ``actions`` stale.

    ``components`` are the files of each target's toolchain (role, path). Sets of names are shared between
    entries, since targets have most of what they read in common.
    """
    scope = Scope()
    tools: dict[str, set[str]] = {}
    commons: dict[Digest, set[str]] = {}
    for action in actions:
        name = action.target.name
        own = frozenset({name})
        for path in (*action.target.sources, *action.options_files):
            scope.read(path, own)
        for _role, path in components.get(name, ()):
            tools.setdefault(path, set()).add(name)
        if name in unbuilt:
            for path in unbuilt[name].files:
                scope.read(path, own)
            scope.miss(unbuilt[name].absent, own)
        manifest = manifests.get(name)
        if manifest is not None:
            commons.setdefault(manifest.closure.common.digest, set()).add(name)
            members = set(action.members)
            for material in manifest.closure.materials:
                if material.path not in members:
                    scope.read(material.path, own, material.digest)
            scope.miss(manifest.closure.absent, own)
    _add_shared(scope, tools, commons, manifests)
    return scope


def _add_shared(
    scope: Scope,
    tools: Mapping[str, set[str]],
    commons: Mapping[Digest, set[str]],
    manifests: Mapping[str, Manifest],
) -> None:
    """What the toolkit and the system contribute."""
    groups: dict[Names, Names] = {}
    for path, users in tools.items():
        names = frozenset(users)
        scope.read(path, groups.setdefault(names, names))
    for users in commons.values():
        names = frozenset(users)
        names = groups.setdefault(names, names)
        common = manifests[next(iter(users))].closure.common
        for material in common.materials:
            scope.read(material.path, names, material.digest)
        scope.miss(common.absent, names)


def with_users(names: Names, targets: Sequence[Target], watched: Names) -> Names:
    """The targets named and those watched that use them, directly or not."""
    found = set(names)
    grew = True
    while grew:
        users = {t.name for t in targets if t.name not in found and not found.isdisjoint(t.uses)}
        found |= users
        grew = bool(users)
    return frozenset(found) & watched
