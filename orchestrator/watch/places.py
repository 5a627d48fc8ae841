"""Where the names of a scope lie: the folders to watch, and in each the names that matter.

A path is followed component by component. Each link on the way counts, with the folder that holds it, so that
a link which is pointed elsewhere is noticed; so does each folder below the project's root, and the first
component that is not there, since what is missing may appear with its folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from orchestrator.watch.gathering import Place
from orchestrator.watch.scope import Names, Scope

_MOST_LINKS = 40
"""As the kernel has it."""


@dataclass(slots=True)
class Entry:
    """One name in a folder. Several paths may lead to it."""

    shown: str
    """The path by which it is known, for messages and for its recorded digest."""
    names: Names
    """Targets that it affects."""
    leaf: bool
    """It is itself a file of the scope; else only a way to some."""


@dataclass(slots=True)
class Places:
    """What to watch."""

    folders: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """Real path of each folder, and the names in it that matter."""
    ways: set[str] = field(default_factory=set)
    """Folders outside the project that matter only if they themselves are moved or deleted."""

    def at(self, place: Place) -> Entry | None:
        """What is known of a place."""
        return self.folders.get(place[0], {}).get(place[1])

    def count(self) -> int:
        """How many names are watched."""
        return sum(map(len, self.folders.values()))


def find_places(root: str, scope: Scope) -> Places:
    """Look up where everything of a scope lies now."""
    return _Finder(root, scope).find()


class _Finder:
    def __init__(self, root: str, scope: Scope) -> None:
        self._root = root
        self._inside = root + "/"
        self._scope = scope
        self._places = Places()
        self._known: dict[str, tuple[str | None, list[tuple[str, str]]]] = {}

    def find(self) -> Places:
        for path, names in self._scope.files.items():
            folder, name = os.path.split(path)
            real = self._folder(folder, names)
            if real is not None:
                self._file(real, name, path, names)
        for (folder, missing), names in self._scope.absent.items():
            real = self._folder(folder, names)
            if real is not None:
                for name in missing:
                    self._add(real, name, f"{folder}/{name}" if folder else name, names, leaf=True)
        return self._places

    def _file(self, folder: str, name: str, shown: str, names: Names) -> None:
        """A file, and what it is a link to."""
        self._add(folder, name, shown, names, leaf=True)
        full = f"{folder}/{name}"
        for _ in range(_MOST_LINKS):
            to = _link(full)
            if to is None:
                return
            target = os.path.join(os.path.dirname(full), to)
            real = self._folder(os.path.dirname(target), names)
            if real is None:
                return
            full = f"{real}/{os.path.basename(target)}"
            self._add(real, os.path.basename(target), shown, names, leaf=True)

    def _folder(self, folder: str, names: Names) -> str | None:
        """The real path of a folder, with all places on the way to it added; ``None`` if it is not there."""
        full = folder if folder.startswith("/") else f"{self._inside}{folder}".rstrip("/")
        if full not in self._known:
            self._known[full] = self._walk(full)
        real, way = self._known[full]
        for above, name in way:
            self._add(above, name, self._show(f"{above}/{name}"), names, leaf=False)
        return real

    def _walk(self, full: str) -> tuple[str | None, list[tuple[str, str]]]:
        """Follow a path. The real folder, or ``None``; and the places on the way that matter."""
        way: list[tuple[str, str]] = []
        here, links = "", 0
        left = list(reversed(full.split("/")))
        while left:
            name = left.pop()
            if name in ("", "."):
                continue
            if name == "..":
                here = os.path.dirname(here) if here else ""
                continue
            there = f"{here}/{name}"
            to = _link(there)
            if to is not None and links < _MOST_LINKS:
                way.append((here or "/", name))
                links += 1
                left += reversed(to.split("/"))
                here = "" if to.startswith("/") else here
                continue
            if to is not None or not os.path.isdir(there):
                return None, [*way, (here or "/", name)]
            if there.startswith(self._inside):
                way.append((here, name))
            else:
                self._places.ways.add(there)
            here = there
        return here or "/", way

    def _show(self, full: str) -> str:
        return full.removeprefix(self._inside)

    def _add(self, folder: str, name: str, shown: str, names: Names, *, leaf: bool) -> None:
        entries = self._places.folders.setdefault(folder, {})
        entry = entries.get(name)
        if entry is None:
            entries[name] = Entry(shown, names, leaf)
            return
        if not names <= entry.names:
            entry.names = entry.names | names
        if leaf and not entry.leaf:
            entry.leaf, entry.shown = True, shown


def _link(path: str) -> str | None:
    """Where a symbolic link leads; ``None`` for anything else."""
    try:
        return os.readlink(path)
    except OSError:
        return None
