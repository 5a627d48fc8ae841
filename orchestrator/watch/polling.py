"""Looks at names again and again, where no events come. Slower than events, and as sure."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.digests import Signature, signature
from orchestrator.watch.gathering import Notice, Place, Sort

SHORTEST_SECONDS = 0.25
LONGEST_SECONDS = 10.0
SHARE = 0.008
"""Of one processor that looking may take while nothing changes."""
MOST_RECENT = 100
_TICK_NS = 2_000_000_000
"""File systems from other machines keep times in whole seconds."""


class Polling:
    """A thread that compares what is at each place with what was there before.

    A name that differs is being written until two looks one after the other find it the same. Names that
    changed lately are looked at in every turn, since a file is mostly saved again; all as `SHARE` allows.
    """

    def __init__(self, sink: Callable[[Notice], None]) -> None:
        self._sink = sink
        self._seen: dict[Place, Signature | None] = {}
        self._folders: dict[str, Signature | None] = {}
        self._unsettled: set[Place] = set()
        self._recent: dict[Place, None] = {}
        self._change = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="polling", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self._thread.join()

    def watch(self, folders: Mapping[str, Mapping[str, object]]) -> bool:
        """Look at just these names from now on; whether there are new ones."""
        wanted = {(folder, name) for folder, names in folders.items() for name in names}
        with self._change:
            new = wanted - self._seen.keys()
            for place in self._seen.keys() - wanted:
                del self._seen[place]
            for folder in self._folders.keys() - folders.keys():
                del self._folders[folder]
            self._unsettled &= wanted
            for place in new:
                self._seen[place] = look(place)
                self._folders[place[0]] = None
        return bool(new)

    def _run(self) -> None:
        all_due = 0.0
        while not self._stopped.wait(SHORTEST_SECONDS):
            began, used = time.monotonic(), time.thread_time()
            with self._change:
                notices = list(
                    self._look_at_all() if began >= all_due else self._look_at(tuple(self._recent))
                )
            if began >= all_due:
                used = time.thread_time() - used
                all_due = began + min(LONGEST_SECONDS, max(SHORTEST_SECONDS, used / SHARE))
            for notice in notices:
                self._sink(notice)

    def _look_at_all(self) -> Iterator[Notice]:
        same = {folder for folder in self._folders if self._is_same(folder)}
        # Where a folder did not change, no name appeared in it.
        return self._look_at(
            [place for place, seen in self._seen.items() if seen is not None or place[0] not in same]
        )

    def _look_at(self, places: Sequence[Place]) -> Iterator[Notice]:
        for place in places:
            now = look(place)
            if place in self._seen and now != self._seen[place]:
                self._seen[place] = now
                self._unsettled.add(place)
                self._remember(place)
                yield Notice(place, Sort.GONE if now is None else Sort.WRITING)
            elif place in self._unsettled:
                self._unsettled.discard(place)
                yield Notice(place, Sort.GONE if now is None else Sort.WRITTEN)

    def _remember(self, place: Place) -> None:
        """It changed; those that did not for longest are forgotten, unless they are still to be told of."""
        self._recent.pop(place, None)
        self._recent[place] = None
        for old in tuple(self._recent)[: max(0, len(self._recent) - MOST_RECENT)]:
            if old not in self._unsettled:
                del self._recent[old]

    def _is_same(self, folder: str) -> bool:
        """Whether a folder's own times are what they were, and old enough to tell."""
        try:
            status = os.stat(folder)
        except OSError:
            now = None
        else:
            recent = time.time_ns() - status.st_mtime_ns < _TICK_NS
            now = None if recent else signature(status)
        before, self._folders[folder] = self._folders[folder], now
        return now is not None and now == before


def look(place: Place) -> Signature | None:
    """What tells two states of a name apart; of a folder only which one it is. ``None`` if there is none."""
    path = os.path.join(*place)
    try:
        status = os.lstat(path)
    except OSError:
        return None
    found = signature(status)
    return (*found[:2], 0, 0, 0) if stat.S_ISDIR(status.st_mode) else found
