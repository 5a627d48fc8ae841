"""Which files a process has open for writing (proc(5)): a save of them is not over, however long it takes."""

from __future__ import annotations

import os
from collections.abc import Collection


def open_for_writing(paths: Collection[str]) -> set[str]:
    """Those of ``paths`` (real ones) that a process of this user has open for writing now.

    Looks through all processes, which takes some milliseconds; those of other users are passed over.
    """
    found: set[str] = set()
    for process in os.listdir("/proc"):
        if process.isdigit() and process != str(os.getpid()):
            found.update(_written_by(process, paths))
    return found


def _written_by(process: str, paths: Collection[str]) -> set[str]:
    found: set[str] = set()
    try:
        for number in os.listdir(f"/proc/{process}/fd"):
            path = os.readlink(f"/proc/{process}/fd/{number}")
            if path in paths and _writes(f"/proc/{process}/fdinfo/{number}"):
                found.add(path)
    except OSError:  # it ended, or is another user's
        pass
    return found


def _writes(fdinfo: str) -> bool:
    with open(fdinfo) as file:
        for line in file:
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
