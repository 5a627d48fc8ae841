"""Which libraries a program would really load: the search of ld.so(8), told step by step."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ConfigurationError
from orchestrator.object_files import open_object, reading
from orchestrator.objects.dynamic import Dynamic, read_dynamic
from orchestrator.objects.elf import read_elf
from orchestrator.regular_file import read_file

_HEAD = struct.Struct("<6s12xH")
_ELF_64 = b"\x7fELF\x02\x01"
_CACHE = Path("/etc/ld.so.cache")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEAD = struct.Struct("<II20x")
_CACHE_ENTRY = struct.Struct("<iIIIQ")
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}
_MOST_LIBRARIES = 2000


@dataclass(frozen=True, slots=True)
class Loaded:
    """One library that the loader would take: the name asked for, by whom, the file, and what led to it.

    ``path`` is ``None`` if it is found nowhere.
    """

    name: str
    asked_by: str
    path: str | None
    why: str


@dataclass(frozen=True, slots=True)
class _Object:
    """A program or library already loaded, and the chain of those that brought it in."""

    path: str
    dynamic: Dynamic
    parent: _Object | None


def libraries_of(program: Path, environ: Mapping[str, str]) -> tuple[Loaded, ...]:
    """All libraries of a program, in the order in which the loader takes them.

    Raises `ConfigurationError` when the program is no ELF file or cannot be read.
    """
    with reading(program):
        elf = read_elf(open_object(program))
        dynamic = read_dynamic(elf)
    return tuple(_Search(elf.machine, environ).run(_Object(str(program), dynamic or Dynamic(), None)))


class _Search:
    """One search, breadth first, as the loader does it: a name is looked for once."""

    def __init__(self, machine: int, environ: Mapping[str, str]) -> None:
        self._machine = machine
        text = environ.get("LD_LIBRARY_PATH", "").replace(";", ":")
        self._library_path = [folder or "." for folder in text.split(":")] if text else []
        self._preload = environ.get("LD_PRELOAD", "").replace(":", " ").split()
        self._cache = _read_cache()

    def run(self, program: _Object) -> list[Loaded]:
        """Every library, the program's own needs first."""
        found: list[Loaded] = []
        known: set[str] = set()
        todo = [program]
        wanted = [(name, program, "LD_PRELOAD") for name in self._preload]
        while todo or wanted:
            if not wanted:
                asking = todo.pop(0)
                wanted = [(name, asking, "") for name in asking.dynamic.needed]
                continue
            name, asking, reason = wanted.pop(0)
            if name in known or len(found) >= _MOST_LIBRARIES:
                continue
            known.add(name)
            path, why = self._find(name, asking)
            found.append(Loaded(name, asking.path, path, f"{reason}, {why}" if reason else why))
            dynamic = self._dynamic(path) if path else None
            if path and dynamic:
                known |= {dynamic.soname} - {""}
                todo.append(_Object(path, dynamic, asking))
        return found

    def _find(self, name: str, asking: _Object) -> tuple[str | None, str]:
        if "/" in name:
            path = _expand(name, asking.path)
            return (path, "a path") if self._fits(path) else (None, "a path where nothing fits")
        for folder, why in self._folders(asking):
            path = str(Path(folder, name))
            if self._fits(path):
                return path, why
        return None, "found nowhere"

    def _folders(self, asking: _Object) -> list[tuple[str, str]]:
        """Folders in the loader's order. RPATH counts only where the asking object has no RUNPATH."""
        folders: list[tuple[str, str]] = []
        link: _Object | None = asking
        while link is not None and not asking.dynamic.runpath:
            if not link.dynamic.runpath:
                folders += [(_expand(f, link.path), f"RPATH of {link.path}") for f in link.dynamic.rpath]
            link = link.parent
        folders += [(folder, "LD_LIBRARY_PATH") for folder in self._library_path]
        folders += [(_expand(f, asking.path), f"RUNPATH of {asking.path}") for f in asking.dynamic.runpath]
        folders += [(folder, "/etc/ld.so.cache") for folder in self._cache]
        triple = _MULTIARCH.get(self._machine)
        multiarch = [f"/lib/{triple}", f"/usr/lib/{triple}"] if triple else []
        return folders + [(folder, "the default folders") for folder in (*multiarch, *_DEFAULT_FOLDERS)]

    def _fits(self, path: str) -> bool:
        """The loader passes over files that are not there or are for another processor; it reads no more of
        them than their first bytes, so that a damaged one is taken.
        """
        try:
            head = read_file(path, _HEAD.size)
        except OSError:
            return False
        return len(head) == _HEAD.size and _HEAD.unpack(head) == (_ELF_64, self._machine)

    def _dynamic(self, path: str) -> Dynamic | None:
        try:
            return read_dynamic(read_elf(open_object(Path(path))))
        except ConfigurationError:
            return None


def _expand(text: str, origin: str) -> str:
    """$ORIGIN is the folder of the object that says it; $LIB is taken as lib64, as on most x86_64 systems."""
    folder = str(Path(origin).resolve().parent)
    for name in ("$ORIGIN", "${ORIGIN}"):
        text = text.replace(name, folder)
    for name in ("$LIB", "${LIB}"):
        text = text.replace(name, "lib64")
    return os.path.normpath(text)


def _read_cache() -> Sequence[str]:
    """The folders of ld.so.cache, in its order; none if there is no cache or it is of another format."""
    try:
        data = _CACHE.read_bytes()
    except OSError:
        return ()
    start = data.find(_CACHE_MAGIC)
    if start < 0 or start + len(_CACHE_MAGIC) + _CACHE_HEAD.size > len(data):
        return ()
    count, _strings = _CACHE_HEAD.unpack_from(data, start + len(_CACHE_MAGIC))
    first = start + len(_CACHE_MAGIC) + _CACHE_HEAD.size
    folders: dict[str, None] = {}
    for number in range(min(count, (len(data) - first) // _CACHE_ENTRY.size)):
        value = _CACHE_ENTRY.unpack_from(data, first + number * _CACHE_ENTRY.size)[2]
        end = data.find(b"\0", start + value)
        if end > 0:
            folders.setdefault(str(Path(os.fsdecode(data[start + value : end])).parent))
    return tuple(folders)
