"""`.nvFatBinSegment`: the records by which a program registers its fat binaries with the CUDA runtime.

24 bytes each: ``magic u32, version u32, address of the container, address of further data``. Version 1
registers a container of `.nv_fatbin` or `__nv_relfatbin`; version 2 the result of a device link. In objects
the addresses are relocations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.objects.elf import ET_REL, Elf, Section
from orchestrator.objects.window import Malformed

SECTION = ".nvFatBinSegment"
MAGIC = 0x466243B1
_RECORD = struct.Struct("<IIQQ")
_CONTAINER_FIELD = 8


class Registration(NamedTuple):
    """One record; ``container`` is where its container begins in the file, ``None`` if only the loader
    knows.
    """

    version: int
    container: int | None


def read_registrations(elf: Elf) -> tuple[Registration, ...]:
    """The records of host code; `Malformed` when one has another magic number."""
    section = elf.section(SECTION)
    return tuple(_records(elf, section)) if section is not None else ()


def _records(elf: Elf, section: Section) -> Iterator[Registration]:
    body = elf.body(section)
    targets = _relocated(elf, section) if elf.type == ET_REL else {}
    for at in range(0, len(body) - _RECORD.size + 1, _RECORD.size):
        magic, version, address, _further = _RECORD.unpack_from(body, at)
        if magic != MAGIC:
            raise Malformed(f"a record of {SECTION} begins with {magic:08x}", section.offset + at)
        container = targets.get(at + _CONTAINER_FIELD) if elf.type == ET_REL else _offset_of(elf, address)
        yield Registration(version, container)


def _relocated(elf: Elf, section: Section) -> dict[int, int]:
    """File offsets that the section's relocations lead to, by the place of each."""
    symbols = elf.symbols()
    found = {}
    for relocation in elf.relocations().get(section.number, ()):
        if relocation.symbol < len(symbols):
            symbol = symbols[relocation.symbol]
            found[relocation.offset] = elf.sections[symbol.section].offset + symbol.value + relocation.addend
    return found


def _offset_of(elf: Elf, address: int) -> int | None:
    for section in elf.sections:
        if section.address and section.address <= address < section.address + section.size:
            return section.offset + address - section.address
    return None
