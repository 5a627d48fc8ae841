"""The files that a process maps (proc(5)), and their bytes, also of those that were deleted since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import ConfigurationError
from orchestrator.object_files import open_object
from orchestrator.objects.window import Bytes

_LINE = re.compile(r"([0-9a-f]+-[0-9a-f]+) (\S+) [0-9a-f]+ (\S+) (\d+) +(/.*)")
_DELETED = " (deleted)"
_OCTAL = re.compile(r"\\012")


class Mapping(NamedTuple):
    """One file in a process, however many stretches of it are mapped."""

    path: str
    device: str
    inode: int
    deleted: bool
    executable: bool
    """Whether any stretch of it may run."""
    stretch: str
    """Addresses of the first one, as the kernel names it."""


def mappings_of(pid: int) -> tuple[Mapping, ...] | None:
    """Each file that a process maps, once; ``None`` if it cannot be looked into."""
    try:
        text = Path(f"/proc/{pid}/maps").read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    found: dict[tuple[str, str, int], Mapping] = {}
    for line in text.split("\n"):
        told = _LINE.fullmatch(line)
        if told is None:
            continue
        stretch, permissions, device, inode, shown = told.groups()
        path = _OCTAL.sub("\n", shown)
        deleted = path.endswith(_DELETED)
        key = (path, device, int(inode))
        executable = "x" in permissions or (key in found and found[key].executable)
        first = found[key].stretch if key in found else stretch
        path = path.removesuffix(_DELETED) if deleted else path
        found[key] = Mapping(path, device, int(inode), deleted, executable, first)
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
    yield Path(f"/proc/{pid}/map_files/{mapping.stretch}")
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
