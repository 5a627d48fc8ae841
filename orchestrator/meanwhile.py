"""Whether anything that a command read changed while it ran: the change times of inodes tell.

They tell it also when the content was put back, since no ordinary program can set them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from orchestrator.digests import Digests


class ChangedMeanwhile(Exception):
    """A file of the closure changed while the command ran; the text names it."""


def check_files(digests: Digests, names: Iterable[str], started_ns: int) -> None:
    """No file, and no link that is one's name, changed since ``started_ns``. Raises `ChangedMeanwhile`."""
    for name in names:
        full = digests.locate(name)
        try:
            status = os.lstat(full)
            changed = status.st_ctime_ns
            if stat.S_ISLNK(status.st_mode):
                changed = max(changed, os.stat(full).st_ctime_ns)
        except OSError:
            raise ChangedMeanwhile(f"{name}: is gone since the compile") from None
        if changed >= started_ns:
            raise ChangedMeanwhile(f"{name}: was written, moved or touched while the command ran")


def check_ways(digests: Digests, names: Iterable[str], started_ns: int, *, shared: bool) -> None:
    """No folder or link on the way to ``names`` was moved since ``started_ns``. Raises `ChangedMeanwhile`.

    ``shared``: other commands put files into these folders at the same time.
    """
    for path in sorted(_ways(names)):
        if shared:
            _check_shared_way(digests, path, started_ns)
        else:
            _check_way(digests, path, started_ns)


def _check_way(digests: Digests, path: str, started_ns: int) -> None:
    """A folder that was moved away and back changed, and its parent too; one in which only some other file
    was saved did not move.
    """
    full = digests.locate(path)
    try:
        status, above = os.lstat(full), os.lstat(os.path.dirname(full))
    except OSError:
        raise ChangedMeanwhile(f"{path}: is gone since the compile") from None
    new = status.st_ctime_ns >= started_ns
    if new and (stat.S_ISLNK(status.st_mode) or above.st_mtime_ns >= started_ns):
        raise ChangedMeanwhile(f"{path}: was replaced or moved while the command ran")


def _check_shared_way(digests: Digests, path: str, started_ns: int) -> None:
    """The same where other commands may have put files into the folder, which gives it a new modification
    time. A folder that was moved keeps the old one.
    """
    try:
        status = os.lstat(digests.locate(path))
    except OSError:
        raise ChangedMeanwhile(f"{path}: is gone since the compile") from None
    moved = stat.S_ISLNK(status.st_mode) or status.st_mtime_ns < status.st_ctime_ns
    if status.st_ctime_ns >= started_ns and moved:
        raise ChangedMeanwhile(f"{path}: was replaced or moved while the command ran")


def _ways(names: Iterable[str]) -> set[str]:
    """All folders between the root and each of ``names``, and the names themselves, which may be links."""
    ways: set[str] = set()
    for name in names:
        ways.add(name)
        folder = os.path.dirname(name)
        while folder and folder not in ways:
            ways.add(folder)
            folder = os.path.dirname(folder)
    return ways
