"""Builds in folders of temporary files: setuptools makes the objects of `pip install -e` there, links them,
copies the library into the project, and removes the rest.

The observer has linkers keep such files (observe.c). For as long as the build is recorded, objects that steps
of it made stand in their places again; a library whose bytes lie in the project was copied there.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.foreign.events import Event
from orchestrator.foreign.steps import read_steps

_PASSED_OVER = frozenset({".git", ".hg", ".freshproof", "node_modules"})


@dataclass(slots=True)
class Kept:
    """What of one build was put back."""

    root: str
    _files: list[str] = field(default_factory=list)
    _folders: list[str] = field(default_factory=list)

    def put_back(self, log: Path, events: Sequence[Event]) -> tuple[Event, ...]:
        """Put objects back; returns the events, with a copying for each library that was taken from there."""
        kept = {os.readlink(of): of.with_suffix("") for of in log.parent.glob(f"{log.name}.kept.*.of")}
        gone = {path: file for path, file in kept.items() if not os.path.lexists(path)}
        if not gone:
            return tuple(events)
        copies = []
        for step in read_steps(events, os.path.exists):
            for path in step.outputs:
                if path in gone and step.mode == "join":
                    copies += [(path, copy) for copy in _copies(gone[path], path, self.root)]
                elif path in gone and step.mode == "compile":
                    self._put(gone[path], path)
        return (*events, *(_copying(source, to) for source, to in dict.fromkeys(copies)))

    def remove(self) -> None:
        """Take away what was put back, and the folders that were made for it."""
        for path in self._files:
            with contextlib.suppress(OSError):
                os.unlink(path)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _put(self, file: Path, path: str) -> None:
        missing = []
        folder = os.path.dirname(path)
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        with contextlib.suppress(OSError):
            for folder in reversed(missing):
                os.mkdir(folder, 0o700)
                self._folders.append(folder)
            os.link(file, path)
            self._files.append(path)


def _copies(file: Path, path: str, root: str) -> Iterator[str]:
    """Where in the project a file of that name has the same bytes."""
    name = os.path.basename(path)
    for folder, folders, names in os.walk(root):
        folders[:] = [inner for inner in folders if inner not in _PASSED_OVER]
        if name in names and filecmp.cmp(file, os.path.join(folder, name), shallow=False):
            yield os.path.join(folder, name)


def _copying(source: str, to: str) -> Event:
    """As if a program had been seen to copy a file: the build did it by itself."""
    return Event(0, 0, 0, "/", "/bin/cp", ("cp", source, to), (), ended_ns=0, code=0)


@contextlib.contextmanager
def kept_for(root: str) -> Iterator[Kept]:
    """Files that were put back are gone again when the block is left."""
    kept = Kept(root)
    try:
        yield kept
    finally:
        kept.remove()
