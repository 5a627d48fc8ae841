"""Rebuilds and checks what a saved file affects, for as long as it runs.

Events of the file system only wake it up: what is stale, the build decides by content, so a lost or doubled
event costs a moment and never an answer.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from orchestrator.errors import Missing
from orchestrator.model import Manifest, Project
from orchestrator.targets import FILE

SETTLE_SECONDS = 0.1
"""Editors write a file in several steps; a round begins when nothing has happened for this long."""

_EVENTS = frozenset({"created", "modified", "moved", "deleted", "closed"})


class Changes(FileSystemEventHandler):
    """Collects the names of files that something happened to, below one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: queue.SimpleQueue[str] = queue.SimpleQueue()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called in watchdog's thread."""
        if event.event_type not in _EVENTS:
            return
        for path in (event.src_path, event.dest_path):
            name = self._relative(str(path)) if path else ""
            if name and name.split("/", 1)[0] not in (".", "build", ".git"):
                self._names.put(name)

    def wait(self) -> list[str]:
        """Block until something happens, then until it is quiet; the names, sorted."""
        names = {self._next(None)}
        while name := self._next(SETTLE_SECONDS):
            names.add(name)
        return sorted(names)

    def _next(self, timeout: float | None) -> str:
        """The next name, or an empty one after ``timeout`` seconds without any."""
        # Waiting in short turns lets an interruption through at once.
        end = None if timeout is None else time.monotonic() + timeout
        while end is None or time.monotonic() < end:
            turn = 0.5 if end is None else max(0.0, min(0.5, end - time.monotonic()))
            try:
                return self._names.get(timeout=turn)
            except queue.Empty:
                continue
        return ""

    def _relative(self, path: str) -> str:
        try:
            return str(Path(path).relative_to(self._root))
        except ValueError:
            return ""


def folders_to_watch(root: Path, project: Project, manifests: Iterable[Manifest]) -> list[tuple[Path, bool]]:
    """The folders where a change can matter, each with whether its subfolders count.

    The top folders of all sources and of every name that must stay absent; of the root only its own entries,
    since a folder that does not exist yet would appear there.
    """
    tops = {Path(FILE).parts[0], *(Path(r).parts[0] for r in project.source_roots if Path(r).parts)}
    for manifest in manifests:
        closure = manifest.closure
        names = [material.path for material in closure.materials]
        names += [f"{folder}/" for folder, _ in (*closure.absent, *closure.common.absent)]
        tops |= {name.split("/", 1)[0] for name in names if not name.startswith("/") and "/" in name}
    tops -= {"build", "..", ""}
    existing = sorted(top for top in tops if (root / top).is_dir())
    return [(root, False), *((root / top, True) for top in existing)]


class Watcher:
    """The folders under watch; they can grow while it runs."""

    def __init__(self, root: Path) -> None:
        self.changes = Changes(root)
        self._observer = Observer()
        self._watched: set[tuple[Path, bool]] = set()

    def __enter__(self) -> Watcher:
        self._observer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._observer.stop()
        self._observer.join()

    def extend(self, folders: Iterable[tuple[Path, bool]]) -> bool:
        """Watch these as well; whether there were new ones, in which a change may have gone unseen."""
        new = {folder for folder in sorted(set(folders) - self._watched) if self._schedule(*folder)}
        self._watched |= new
        return bool(new)

    def _schedule(self, folder: Path, deep: bool) -> bool:
        """Whether the folder is under watch now; it may be gone since it was listed."""
        try:
            self._observer.schedule(self.changes, str(folder), recursive=deep)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Missing(
                f"cannot watch {folder}: {error.strerror}",
                remedy="raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl)",
            ) from error
        return True


def watch(
    root: Path,
    round_of: Callable[[list[str]], Iterable[tuple[Path, bool]]],
    rounds: int | None = None,
) -> None:
    """Call ``round_of`` with the names that changed (none at the start); it builds and says what to watch.

    Ends after ``rounds`` rounds, or never.
    """
    with Watcher(root) as watcher:
        names: list[str] = []
        while rounds is None or rounds > 0:
            while watcher.extend(round_of(names)):
                names = []
            rounds = None if rounds is None else rounds - 1
            if rounds != 0:
                names = watcher.changes.wait()
