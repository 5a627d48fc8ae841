"""Installed copies: the same program or library but for where it has its libraries looked for.

`cmake --install`, chrpath and patchelf write another RPATH or RUNPATH over the one in the file, or take it
out (System V gABI, "Dynamic Section"). Nothing else may differ, and no other name may share those bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import ConfigurationError
from orchestrator.object_files import open_object
from orchestrator.objects.elf import SHT_DYNAMIC, SHT_DYNSYM, Elf, Section, read_elf
from orchestrator.objects.window import Bytes, Malformed

_ENTRY = struct.Struct("<qQ")
_NULL, _RPATH, _RUNPATH = 0, 15, 29
_NAMES = frozenset({1, 14, 0x7FFFFFFD, 0x7FFFFFFF, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC})
"""DT_NEEDED, DT_SONAME, DT_AUXILIARY, DT_FILTER, DT_CONFIG, DT_DEPAUDIT, DT_AUDIT."""
_VERSIONS = frozenset({0x6FFFFFFD, 0x6FFFFFFE})
"""SHT_GNU_verdef, SHT_GNU_verneed."""


def differs_in_rpath_only(path: str, original: str) -> bool:
    """Whether a file is ``original`` but for its RPATH and RUNPATH. What cannot be read is not."""
    try:
        return same_but_for_rpath(open_object(Path(path)), open_object(Path(original)))
    except (Malformed, ConfigurationError):
        return False


def same_but_for_rpath(data: Bytes, original: Bytes) -> bool:
    """The same of two files' bytes. Raises `Malformed`."""
    if len(data) != len(original):
        return False
    one, other = read_elf(data), read_elf(original)
    tables = [[s for s in elf.sections if s.type == SHT_DYNAMIC] for elf in (one, other)]
    if len(tables[0]) != 1 or tables[0] != tables[1] or tables[0][0].link >= len(other.sections):
        return False
    table = tables[1][0]
    strings = other.sections[table.link]
    entries, before = list(_entries(one, table)), list(_entries(other, table))
    paths = {value for tag, value in before if tag in (_RPATH, _RUNPATH)}
    if not {value for tag, value in entries if tag in (_RPATH, _RUNPATH)} <= paths:
        return False
    if _others(entries) != _others(before):
        return False
    rooms = [(value, value + _length(other, strings, value)) for value in sorted(paths)]
    if any(start <= name < end for name in _names(other, before) for start, end in rooms):
        return False
    free = [(table.offset, table.offset + table.size)]
    free += [(strings.offset + start, strings.offset + end) for start, end in rooms]
    return _same_outside(memoryview(data), memoryview(original), sorted(free))


def _entries(elf: Elf, table: Section) -> Iterator[tuple[int, int]]:
    body = elf.body(table)
    for tag, value in _ENTRY.iter_unpack(body[: len(body) // _ENTRY.size * _ENTRY.size]):
        if tag == _NULL:
            return
        yield tag, value


def _others(entries: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [entry for entry in entries if entry[0] not in (_RPATH, _RUNPATH)]


def _length(elf: Elf, strings: Section, at: int) -> int:
    text = bytes(elf.body(strings)[at:])
    end = text.find(b"\0")
    if end < 0:
        raise Malformed("the RPATH does not end", strings.offset + at)
    return end


def _names(elf: Elf, entries: list[tuple[int, int]]) -> Iterator[int]:
    """Where in the table of strings other names begin; of versions every word that may be one."""
    yield from (value for tag, value in entries if tag in _NAMES)
    for section in elf.sections:
        if section.type == SHT_DYNSYM:
            body = elf.body(section)
            yield from (word[0] for word in struct.iter_unpack("<I20x", body[: len(body) // 24 * 24]))
        elif section.type in _VERSIONS:
            body = elf.body(section)
            yield from (word[0] for word in struct.iter_unpack("<I", body[: len(body) // 4 * 4]))


def _same_outside(data: memoryview, original: memoryview, free: list[tuple[int, int]]) -> bool:
    at = 0
    for start, end in free:
        if data[at : max(at, start)] != original[at : max(at, start)]:
            return False
        at = max(at, end)
    return data[at:] == original[at:]
