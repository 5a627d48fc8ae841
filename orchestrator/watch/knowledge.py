"""What the watch knows between two builds: plans, records, what fails, where everything lies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.build import Built, Outcome, Result
from orchestrator.digests import Unreadable, read_digest
from orchestrator.errors import FreshproofError
from orchestrator.model import Absent, Action, Manifest, Project
from orchestrator.recorded import Records
from orchestrator.situation import Situation, read_project
from orchestrator.targets import FILE
from orchestrator.toolchain import tools_that_may_appear
from orchestrator.watch.gathering import Place, Sort
from orchestrator.watch.observer import Observer
from orchestrator.watch.places import Entry, find_places
from orchestrator.watch.scope import EVERYTHING, NOTHING, Due, Names, Scope, Unbuilt, scope_of, with_users
from orchestrator.watch.unbuilt import follow_sources
from orchestrator.workspace import Workspace

_UNREADABLE, _UNKNOWN = "unreadable", "unknown"


@dataclass(frozen=True, slots=True)
class Changes:
    """What a burst of notices comes to."""

    due: Due
    files: tuple[tuple[str, str], ...]
    """Path, and ``changed``, ``gone``, ``appeared`` or ``replaced`` (a folder or link on the way)."""
    touched: tuple[str, ...]
    """Files whose content is what it was."""
    doubt: Due
    """What they affect."""


@dataclass(slots=True)
class Knowledge:
    """Of one project, and of the targets that are watched."""

    workspace: Workspace
    observer: Observer
    project: Project | None = None
    actions: dict[str, Action] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    failing: dict[str, Outcome] = field(default_factory=dict)
    """Targets whose last build failed."""
    unproven: dict[str, str] = field(default_factory=dict)
    """Targets that the gate will not admit although they are built, with the reason."""
    scope: Scope = field(default_factory=Scope)
    _components: dict[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    _tools_to_come: dict[str, Absent] = field(default_factory=dict)
    """Where a tool would take part if it appeared."""
    _unbuilt: dict[str, Unbuilt] = field(default_factory=dict)
    _seen: dict[Place, str | None] = field(default_factory=dict)
    """Digests of what changed since it was last recorded, as last seen."""

    def read_records(self) -> None:
        """Take in what earlier builds recorded of all targets, if targets.toml can be read."""
        try:
            self.project = read_project(self.workspace)
        except FreshproofError:
            return
        records = Records(self.workspace)
        for target in self.project.targets:
            manifest, _why = records.read(target.name)
            if manifest is not None:
                self.manifests[target.name] = manifest

    @property
    def names(self) -> Names:
        """The targets watched."""
        return frozenset(self.actions)

    def affected(self, names: Names) -> Names:
        """These targets and those that use them, as far as they are watched."""
        targets = self.project.targets if self.project else ()
        return with_users(names, targets, self.names)

    def expect(self, situation: Situation) -> None:
        """Take in the plan of the first build: what it will read is watched while it runs."""
        self.project = situation.project
        self.actions = {action.target.name: action for action in situation.actions}
        for name, action in self.actions.items():
            self._learn_tools(name, situation)
            if name not in self.manifests:
                self._unbuilt[name] = follow_sources(self.workspace.root, action)

    def learn(self, built: Built, *, everything: bool) -> None:
        """Take in a build's result."""
        situation = built.situation
        self.project = situation.project
        actions = {action.target.name: action for action in situation.actions}
        self.actions = actions if everything else {**self.actions, **actions}
        self.manifests.update(built.manifests)
        for outcome in built.outcomes:
            name = outcome.target
            for known in (self.failing, self.unproven, self._unbuilt):
                known.pop(name, None)
            if outcome.result is Result.FAILED:
                self.failing[name] = outcome
                self._unbuilt[name] = follow_sources(self.workspace.root, actions[name])
            elif outcome.result is Result.UNPROVEN:
                self.unproven[name] = outcome.reason
        for name in self.failing.keys() - self.actions.keys():
            del self.failing[name]
        for name in actions:
            self._learn_tools(name, situation)

    def _learn_tools(self, name: str, situation: Situation) -> None:
        toolchain = situation.toolchains[name]
        self._components[name] = toolchain.components
        self._tools_to_come[name] = tools_that_may_appear(toolchain, str(self.workspace.root))

    def look(self, *, broken: bool = False) -> bool:
        """Watch what is to be watched now; whether there is something that was not watched before.

        ``broken``: the targets could not be planned, perhaps since a source is not there; it is waited for.
        """
        self.scope = scope_of(self.actions.values(), self.manifests, self._components, self._unbuilt)
        for name in self.actions:
            self.scope.miss(self._tools_to_come.get(name, ()), frozenset({name}))
        everyone = self.names
        self.scope.read(FILE, everyone)
        for name, path in self._sources() if broken else ():
            self.scope.read(path, frozenset({name}))
        return self.look_again()

    def look_again(self) -> bool:
        """The same, when only the places of things changed."""
        return self.observer.set(find_places(str(self.workspace.root), self.scope))

    def _sources(self) -> list[tuple[str, str]]:
        """Target and path of every source that targets.toml names now."""
        try:
            project = read_project(self.workspace)
        except FreshproofError:
            return []
        return [(target.name, path) for target in project.targets for path in target.sources]

    def changes(self, burst: Mapping[Place, Sort]) -> Changes:
        """What really changed, by content."""
        due, doubt, moved = NOTHING, NOTHING, False
        files: dict[str, str] = {}
        touched: dict[str, None] = {}
        for place in burst:
            entry = self.observer.places.at(place)
            if entry is None:
                if not place[1]:  # a folder itself, or anything
                    due, moved = due | self._due_below(place[0]), True
                    self.observer.moved(place)
                    files.setdefault(self._show(place[0]) or "any file", _how_folder(place[0]))
                continue
            how = self._how(place, entry)
            if not entry.leaf:
                moved = True
                self.observer.moved(place)
            if how:
                due = due | self._due_of(entry)
                files[entry.shown] = how
            else:
                touched[entry.shown] = None
                doubt = doubt | self._due_of(entry)
                due = due | Due(self.affected(entry.names) & self.failing.keys())
        if moved:
            self.look_again()
        return Changes(due, tuple(files.items()), tuple(p for p in touched if p not in files), doubt)

    def _due_below(self, folder: str) -> Due:
        """What a folder that was moved or deleted affects: the targets that look into it or below it."""
        folders = self.observer.places.folders.items()
        within = [names for at, names in folders if folder and (at == folder or at.startswith(f"{folder}/"))]
        found = frozenset().union(*(entry.names for names in within for entry in names.values()))
        return Due(self.affected(found)) if found else EVERYTHING

    def _due_of(self, entry: Entry) -> Due:
        names = self.affected(entry.names)
        return EVERYTHING if entry.shown == FILE or not names else Due(names)

    def _how(self, place: Place, entry: Entry) -> str:
        """How a place differs from what is known of it; empty if it does not."""
        path = os.path.join(*place)
        if not entry.leaf:
            known_there = path in self.observer.places.folders or os.path.islink(path)
            return "gone" if not os.path.lexists(path) else "replaced" if known_there else "appeared"
        now = _digest(path)
        if entry.shown in self.scope.files:
            if place not in self._seen and self.scope.recorded.get(entry.shown) is None:
                known: str | None = _UNKNOWN
            else:
                known = self._seen.get(place, self.scope.recorded.get(entry.shown))
            how = "changed"
        else:
            known, how = self._seen.get(place), "appeared"
        self._seen[place] = now
        return "" if now == known else "gone" if now is None else "appeared" if known is None else how

    def rest(self) -> None:
        """Nothing is built now: of files whose targets are as they should be, the record tells from here."""
        failing = self.failing.keys()
        for place in tuple(self._seen):
            entry = self.observer.places.at(place)
            recorded = entry is None or self.scope.recorded.get(entry.shown) is not None
            if recorded and (entry is None or not entry.names & failing):
                del self._seen[place]

    def _show(self, path: str) -> str:
        return path.removeprefix(f"{self.workspace.root}/")


def _how_folder(folder: str) -> str:
    """What became of a folder that is not where it was; without a name it may be any."""
    if not folder:
        return "may be changed"
    return "moved" if os.path.lexists(folder) else "gone"


def _digest(path: str) -> str | None:
    """Of a file now; ``None`` if there is none. A folder is no file."""
    if os.path.isdir(path):
        return None
    try:
        found = read_digest(path)
    except Unreadable:
        return _UNREADABLE
    return found[0] if found else None
