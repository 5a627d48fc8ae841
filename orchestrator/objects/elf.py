"""ELF, 64-bit little-endian: sections, symbols, relocations, notes (System V gABI, chapter 4).

Read with `struct`, not with pyelftools: see benchmarks/NOTES.md for the measurement. pyelftools is the oracle
of the tests. Hostile files are bounded: sections may share bytes only a few times over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.objects.window import Bytes, Malformed, NameTable, part, printable, record

MAGIC = b"\x7fELF"

# e_machine
EM_X86_64, EM_AARCH64, EM_CUDA = 62, 183, 190
# e_type
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
# sh_type
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 2, 3, 4, 7, 8, 9, 11
SHT_SYMTAB_SHNDX, SHT_DYNAMIC = 18, 6
# st_info, low and high half
STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_CUDA_OBJECT = 1, 2, 3, 4, 13
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
# section indexes with a meaning
SHN_UNDEF, SHN_LORESERVE, SHN_XINDEX = 0, 0xFF00, 0xFFFF

_MOST_SHARED = 4
"""How often sections may have the same bytes. From sm_100 on, ptxas lets two sections share their data."""

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_REL = struct.Struct("<QQ")
_NOTE = struct.Struct("<III")


class Section(NamedTuple):
    """One section header; ``offset`` and ``size`` in bytes of the file."""

    number: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int


class Symbol(NamedTuple):
    """One symbol; ``value`` counts from the start of ``section`` in relocatable files and cubins.

    ``section`` is 0 for what is defined elsewhere or lies in no section.
    """

    name: str
    value: int
    size: int
    type: int
    binding: int
    other: int
    section: int


class Relocation(NamedTuple):
    """One relocation of a section's bytes: ``symbol`` is an index into the symbol table."""

    offset: int
    type: int
    symbol: int
    addend: int


class Note(NamedTuple):
    """One entry of a note section."""

    owner: str
    type: int
    body: memoryview


@dataclass(frozen=True, slots=True)
class Elf:
    """The frame of an ELF file. Nothing of ``data`` is copied."""

    data: memoryview = field(repr=False)
    type: int
    machine: int
    os_abi: int
    abi_version: int
    version: int
    flags: int
    sections: tuple[Section, ...]
    tables_end: int
    """Where the later one of the two header tables ends, in bytes of the file."""

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def body(self, section: Section) -> memoryview:
        """The bytes of a section; empty when it takes no room in the file."""
        if section.type == SHT_NOBITS:
            return self.data[:0]
        return part(self.data, section.offset, section.size, f"section {section.name}")

    def symbols(self, table_type: int = SHT_SYMTAB) -> tuple[Symbol, ...]:
        """All symbols of the table of that type, in its order; none when there is no such table."""
        for table in self.sections:
            if table.type == table_type:
                return tuple(self._symbols_of(table))
        return ()

    def _symbols_of(self, table: Section) -> Iterator[Symbol]:
        names = self._names_of(table)
        body = self.body(table)
        wide = self._wide_indexes(table)
        usable = len(body) - len(body) % _SYMBOL.size
        for number, (name, info, other, index, value, size) in enumerate(_SYMBOL.iter_unpack(body[:usable])):
            if index == SHN_XINDEX and number < len(wide):
                index = wide[number]
            elif index >= SHN_LORESERVE:  # absolute, common: in no section
                index = SHN_UNDEF
            if index >= len(self.sections):
                at = table.offset + number * _SYMBOL.size
                raise Malformed(f"{names[name]} lies in section {index} of {len(self.sections)}", at)
            yield Symbol(names[name], value, size, info & 15, info >> 4, other, index)

    def _names_of(self, table: Section) -> NameTable:
        if table.link >= len(self.sections):
            raise Malformed(f"{table.name} names section {table.link} of {len(self.sections)}", table.offset)
        strings = self.sections[table.link]
        return NameTable(self.body(strings), strings.name or "the string table", strings.offset)

    def _wide_indexes(self, table: Section) -> tuple[int, ...]:
        """Section numbers of symbols that do not fit into 16 bits (more than 65,279 sections)."""
        for section in self.sections:
            if section.type == SHT_SYMTAB_SHNDX and section.link == table.number:
                body = self.body(section)
                return struct.unpack(f"<{len(body) // 4}I", body[: len(body) // 4 * 4])
        return ()

    def relocations(self) -> dict[int, list[Relocation]]:
        """The relocations of every section, by the section's number."""
        found: dict[int, list[Relocation]] = {}
        for section in self.sections:
            if section.type in (SHT_RELA, SHT_REL):
                found.setdefault(section.info & 0xFFFFFFFF, []).extend(self._relocations_of(section))
        return found

    def _relocations_of(self, section: Section) -> Iterator[Relocation]:
        layout = _RELA if section.type == SHT_RELA else _REL
        body = self.body(section)
        for offset, info, *addend in layout.iter_unpack(body[: len(body) - len(body) % layout.size]):
            yield Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend[0] if addend else 0)

    def notes(self, section: Section) -> Iterator[Note]:
        """The notes of a section; every length is checked (gABI, note section: 4-byte alignment)."""
        body = self.body(section)
        at = 0
        while at + _NOTE.size <= len(body):
            name_size, body_size, kind = record(_NOTE, body, at, "note header")
            at += _NOTE.size
            owner = part(body, at, name_size, f"owner of a note in {section.name}")
            at += _aligned(name_size)
            yield Note(
                printable(owner).rstrip("\0"), kind, part(body, at, body_size, f"note in {section.name}")
            )
            at += _aligned(body_size)


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def is_elf(data: Bytes) -> bool:
    """Whether the bytes begin as an ELF file does."""
    return bytes(data[:4]) == MAGIC


def read_elf(data: Bytes) -> Elf:
    """The frame of an ELF file; `Malformed` when a header, table or section does not fit into the bytes."""
    view = memoryview(data)
    if not is_elf(view):
        raise Malformed("not an ELF file: it does not begin with 7f 45 4c 46", 0)
    if len(view) < 64:
        raise Malformed(f"an ELF header has 64 bytes, the file has {len(view)}", len(view))
    if view[4] != 2 or view[5] != 1:
        raise Malformed("only 64-bit little-endian ELF is read", 4)
    header = record(_HEADER, view, 0, "ELF header")
    kind, machine, version, _entry, phoff, shoff, flags, _size, phsize, phnum, entry, count, names = header
    headers = _section_headers(view, shoff, entry, count)
    if headers and names == SHN_XINDEX:
        names = headers[0][6]
    sections = _named_sections(view, headers, names, shoff)
    if phnum:
        part(view, phoff, phsize * phnum, f"table of {phnum} program headers")
    ends = (64, phoff + phsize * phnum, shoff + entry * len(headers))
    return Elf(view, kind, machine, view[7], view[8], version, flags, sections, max(ends))


def _section_headers(view: memoryview, shoff: int, entry: int, count: int) -> list[tuple[int, ...]]:
    if shoff == 0:
        return []
    if entry != _SECTION.size:
        raise Malformed(f"section headers of {entry} bytes instead of {_SECTION.size}", 0x3A)
    if count == 0:  # gABI: with 0xff00 sections or more, the number stands in the first header
        count = record(_SECTION, view, shoff, "first section header")[5]
    table = part(view, shoff, count * _SECTION.size, f"table of {count} section headers")
    return list(_SECTION.iter_unpack(table))


def _named_sections(
    view: memoryview, headers: list[tuple[int, ...]], names: int, shoff: int
) -> tuple[Section, ...]:
    if not headers:
        return ()
    if names >= len(headers):
        raise Malformed(f"section names are in section {names} of {len(headers)}", 0x3E)
    total = sum(header[5] for header in headers[1:] if header[1] != SHT_NOBITS)
    if total > _MOST_SHARED * len(view):
        raise Malformed(f"sections add up to {total} bytes in a file of {len(view)}: they overlap", shoff)
    for index, header in enumerate(headers[1:], 1):
        if header[1] != SHT_NOBITS and header[4] + header[5] > len(view):
            raise Malformed(
                f"section {index} ends at byte {header[4] + header[5]} of {len(view)}", shoff + 64 * index
            )
    home = headers[names]
    table = NameTable(part(view, home[4], home[5], "section names"), "the section names", home[4])
    return tuple(
        Section(index, table[name], kind, flags, address, offset, size, link, info, width)
        for index, (name, kind, flags, address, offset, size, link, info, _align, width) in enumerate(headers)
    )
