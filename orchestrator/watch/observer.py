"""Which folders are watched by events and which by looking, and why."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from orchestrator.watch.gathering import Notice, Place
from orchestrator.watch.inotify import Inotify, LimitReached, Sink
from orchestrator.watch.mounts import Mount, is_silent, mount_of, parse_mounts
from orchestrator.watch.places import Entry, Places
from orchestrator.watch.polling import Polling

_PROBE_SECONDS = 0.5
_PROBE = "watch-probe"


class Observer:
    """Tells of everything that happens at the places set; they can change while it runs."""

    def __init__(
        self, root: Path, probe: Path, sink: Sink, note: Callable[[str], None], *, poll: bool
    ) -> None:
        """``probe`` is a folder of the project's in which a file may be written to see whether events come;
        ``poll`` makes it look in any case.
        """
        self.places = Places()
        self._sink, self._note = sink, note
        self._inotify = None if poll else self._start_inotify(root, probe)
        self._polling: Polling | None = None
        self._full = False
        self._noted: set[str] = set()
        self.polled = 0
        """How many folders are looked at, since no events come from them."""

    def close(self) -> None:
        """Stop watching."""
        for one in (self._inotify, self._polling):
            if one is not None:
                one.close()

    def set(self, places: Places) -> bool:
        """Watch these places from now on; whether some of them were not watched before."""
        before, self.places = self.places, places
        grew = any(
            entries.keys() - before.folders.get(folder, {}).keys()
            for folder, entries in places.folders.items()
        )
        mounts = _read_mounts()
        looked_at: dict[str, dict[str, Entry]] = {}
        for folder, entries in places.folders.items():
            if self._by_events(folder, mounts):
                grew = self._watch(folder, contents=True) or grew
            if self._inotify is None or folder not in self._inotify:
                looked_at[folder] = entries
        if self._inotify is not None:
            for way in places.ways - places.folders.keys():
                if self._by_events(way, mounts):
                    self._watch(way, contents=False)
            for folder in set(self._inotify.folders) - places.folders.keys() - places.ways:
                self._inotify.forget(folder)
        self.polled = len(looked_at)
        if looked_at or self._polling is not None:
            self._polling = self._polling or Polling(self._sink)
            grew = self._polling.watch(looked_at) or grew
        return grew

    def moved(self, place: Place) -> None:
        """A folder or link is no longer what it was: watches at or below it are of another place."""
        if self._inotify is not None:
            path = f"{place[0]}/{place[1]}".rstrip("/")
            for folder in self._inotify.below(path):
                self._inotify.forget(folder)

    def _by_events(self, folder: str, mounts: tuple[Mount, ...]) -> bool:
        if self._inotify is None:
            return False
        mount = mount_of(folder, mounts)
        if mount is None or not is_silent(mount.kind):
            return True
        self._say(f"{mount.point} is of type {mount.kind}, from which no events come: looking at it instead")
        return False

    def _watch(self, folder: str, *, contents: bool) -> bool:
        if self._inotify is None or self._full:
            return False
        try:
            return self._inotify.watch(folder, contents=contents)
        except LimitReached as limit:
            self._full = True
            self._say(f"{limit}; looking at the rest instead")
            return False

    def _start_inotify(self, root: Path, probe: Path) -> Inotify | None:
        try:
            mount = mount_of(str(root), _read_mounts())
            if (mount is None or not is_silent(mount.kind)) and not events_come(probe):
                self._note(f"no events come from {root}: looking at it instead")
                return None
            return Inotify(self._sink, lambda place: self.places.at(place) is not None)
        except LimitReached as limit:
            self._note(f"{limit}; looking at files instead")
            return None

    def _say(self, text: str) -> None:
        """Once."""
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def events_come(folder: Path) -> bool:
    """Whether a file written in a folder makes an event. Raises `LimitReached`."""
    came = threading.Event()

    def sink(_notice: Notice) -> None:
        came.set()

    inotify = Inotify(sink, lambda place: place[1] == _PROBE)
    try:
        inotify.watch(str(folder), contents=True)
        with contextlib.suppress(OSError):
            (folder / _PROBE).write_bytes(b"")
        return came.wait(_PROBE_SECONDS)
    finally:
        inotify.close()
        with contextlib.suppress(OSError):
            (folder / _PROBE).unlink()


def _read_mounts() -> tuple[Mount, ...]:
    try:
        return parse_mounts(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    except OSError:
        return ()
