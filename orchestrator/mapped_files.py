"""The files that a process maps (proc(5)), and their bytes, also of those that were deleted since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import ConfigurationError
from orchestrator.object_files import open_object
from orchestrator.objects.window import Bytes

_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) (\S+) (\d+) +(/.*)")
_DELETED = " (deleted)"
_LINE_FEED = r"\012"
"""How the kernel writes one in a name; a name that holds these characters reads the same."""


class Stretch(NamedTuple):
    """Addresses at which a part of a file is mapped."""

    start: int
    end: int
    permissions: str
    offset: int
    device: str
    inode: int
    path: str
    deleted: bool


class Mapping(NamedTuple):
    """One file in a process, however many stretches of it are mapped."""

    path: str
    device: str
    inode: int
    deleted: bool
    executable: bool
    """Whether any stretch of it may run."""
    first: str
    """Addresses of the first one, as the kernel names it."""


def stretches_of(pid: int | str) -> tuple[Stretch, ...] | None:
    """What a process (a number, or ``self``) maps of files; ``None`` if it cannot be looked into."""
    try:
        text = Path(f"/proc/{pid}/maps").read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return tuple(_stretch(*told.groups()) for line in text.split("\n") if (told := _LINE.fullmatch(line)))


def _stretch(
    start: str, end: str, permissions: str, offset: str, device: str, inode: str, shown: str
) -> Stretch:
    return Stretch(
        int(start, 16),
        int(end, 16),
        permissions,
        int(offset, 16),
        device,
        int(inode),
        shown.removesuffix(_DELETED).replace(_LINE_FEED, "\n"),
        shown.endswith(_DELETED),
    )


def mappings_of(pid: int) -> tuple[Mapping, ...] | None:
    """Each file that a process maps, once; ``None`` if it cannot be looked into."""
    stretches = stretches_of(pid)
    if stretches is None:
        return None
    found: dict[tuple[str, str, int, bool], Mapping] = {}
    for one in stretches:
        key = (one.path, one.device, one.inode, one.deleted)
        before = found.get(key)
        runs = "x" in one.permissions or (before is not None and before.executable)
        found[key] = Mapping(*key, runs, before.first if before else f"{one.start:x}-{one.end:x}")
    return tuple(found.values())


def read_mapped(pid: int, mapping: Mapping) -> Bytes | None:
    """The bytes of a mapped file; ``None`` if this user cannot get at them.

    The kernel gives the file itself to those with privileges, and to everybody that of the program. Else what
    lies at the path is it, unless it was deleted or has another inode.
    """
    for place in _places(pid, mapping):
        try:
            return open_object(place)
        except ConfigurationError:
            continue
    return None


def _places(pid: int, mapping: Mapping) -> Iterator[Path]:
    yield Path(f"/proc/{pid}/map_files/{mapping.first}")
    for place in (Path(f"/proc/{pid}/exe"), *_paths(pid, mapping)):
        try:
            if place.stat().st_ino == mapping.inode:
                yield place
        except OSError:
            continue


def _paths(pid: int, mapping: Mapping) -> Iterator[Path]:
    """Where the file lies for the process, which may have another root, and for us."""
    if not mapping.deleted:
        yield Path(f"/proc/{pid}/root{mapping.path}")
        yield Path(mapping.path)
