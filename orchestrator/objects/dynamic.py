"""The dynamic section: what a library or program asks of the loader (gABI, chapter 5; ld.so(8))."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.objects.elf import SHT_DYNAMIC, Elf
from orchestrator.objects.window import NameTable

DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FLAGS_1 = 1, 14, 15, 29, 0x6FFFFFFB
DF_1_PIE = 0x08000000
_ENTRY = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Libraries needed, by name; own name; search paths as written, with ``$ORIGIN`` and the like."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    is_program: bool = False
    """A position-independent program, which is `ET_DYN` like a library."""


def read_dynamic(elf: Elf) -> Dynamic | None:
    """The dynamic section, ``None`` if there is none; `Malformed` when a name lies outside of its table."""
    for section in elf.sections:
        if section.type == SHT_DYNAMIC and section.link < len(elf.sections):
            body = elf.body(section)
            strings = elf.sections[section.link]
            names = NameTable(elf.body(strings), strings.name, strings.offset)
            return _dynamic(_ENTRY.iter_unpack(body[: len(body) - len(body) % _ENTRY.size]), names)
    return None


def _dynamic(entries: Iterator[tuple[int, ...]], names: NameTable) -> Dynamic:
    needed: list[str] = []
    texts = {DT_SONAME: "", DT_RPATH: "", DT_RUNPATH: ""}
    is_program = False
    for tag, value in entries:
        if tag == 0:
            break
        if tag == DT_NEEDED:
            needed.append(names[value])
        elif tag in texts:
            texts[tag] = names[value]
        elif tag == DT_FLAGS_1:
            is_program = bool(value & DF_1_PIE)
    return Dynamic(
        tuple(needed), texts[DT_SONAME], _paths(texts[DT_RPATH]), _paths(texts[DT_RUNPATH]), is_program
    )


def _paths(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(":") if part)
