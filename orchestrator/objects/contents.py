"""What a file holds, kind by kind, as a stream of pieces: the one walk that all questions are asked of.

A piece is one stretch of bytes with a meaning of its own: the file itself, an archive's member, an entry of a
fat binary. Pieces come one at a time, so that a large library is never held decompressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.objects import fatbin
from orchestrator.objects.archive import is_archive, read_members
from orchestrator.objects.cubin import cubin_size, is_cubin
from orchestrator.objects.dynamic import read_dynamic
from orchestrator.objects.elf import (
    ET_DYN,
    ET_EXEC,
    ET_REL,
    SHT_NOBITS,
    SHT_NOTE,
    Elf,
    is_elf,
    read_elf,
)
from orchestrator.objects.ltoir import is_ltoir, ltoir_arch
from orchestrator.objects.ptx import is_ptx, read_ptx
from orchestrator.objects.window import Allowance, Bytes, Malformed, inside

FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin", ".nv_relfatbin")
"""Where nvcc puts containers: whole-program code, and relocatable code that still needs a device link."""

_EMBEDDED = re.compile(re.escape(fatbin.MAGIC_AND_VERSION) + rb"|\x7fELF\x02\x01\x01.{11}\xbe\x00", re.DOTALL)
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4
_DEEPEST = 4


class Form(StrEnum):
    """What the bytes of a piece are."""

    CUBIN = "cubin"
    PTX = "ptx"
    LTO_IR = "lto-ir"
    FATBIN = "fatbin"
    ARCHIVE = "archive"
    OBJECT = "object"
    SHARED_LIBRARY = "shared library"
    EXECUTABLE = "executable"
    OTHER = "other"


HOST_FORMS = frozenset({Form.OBJECT, Form.SHARED_LIBRARY, Form.EXECUTABLE})
DEVICE_FORMS = frozenset({Form.CUBIN, Form.PTX, Form.LTO_IR})

OpenMember = Callable[[str], Bytes]
"""Reads the file behind a member of a thin archive, given its name there. Only the shell can."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of bytes.

    ``place`` says for people where in the file it lies (empty: it is the file). ``offset`` is where its
    bytes begin in the file, ``None`` when they had to be decompressed or come from another file. ``sealed``
    says why nothing inside can be read (obfuscated, of unknown kind, not at hand); empty if it can.
    """

    form: Form
    data: Bytes = field(repr=False)
    place: str = ""
    offset: int | None = 0
    arch: str | None = None
    compression: str = "raw"
    stored: int = 0
    """Bytes that the piece takes in the file, compressed."""
    options: str = ""
    sealed: str = ""

    def located(self) -> AbstractContextManager[None]:
        """A block in which faults found in the piece say where in the file it lies."""
        return inside(self.place, self.offset or 0) if self.place else nullcontext()


def walk(data: Bytes, open_member: OpenMember | None = None) -> Iterator[Piece]:
    """The file itself, then everything inside of it, in order.

    Raises `Malformed` when a part is damaged, or when the file is of no kind that holds CUDA code. Without
    ``open_member`` the members of thin archives come out sealed.
    """
    form = form_of(data)
    arch = _arch_of(form, data)
    sealed = "its body is obfuscated" if form is Form.LTO_IR else ""
    yield Piece(form, data, arch=arch, stored=len(data), sealed=sealed)
    yield from _Walk(Allowance(len(data)), open_member).inside_of(form, data, "", 0, 0)


def form_of(data: Bytes) -> Form:
    """The form of a whole file, by its first bytes; `Malformed` when it is none that is known here."""
    if is_cubin(data):
        return Form.CUBIN
    if is_elf(data):
        return _host_form(read_elf(data))
    if is_archive(data):
        return Form.ARCHIVE
    if bytes(data[:4]) == fatbin.MAGIC:
        return Form.FATBIN
    if is_ltoir(data):
        return Form.LTO_IR
    if is_ptx(data):
        return Form.PTX
    raise Malformed("none of the kinds of file that hold CUDA code", 0)


def _host_form(elf: Elf) -> Form:
    if elf.type == ET_DYN:
        dynamic = read_dynamic(elf)
        return Form.EXECUTABLE if dynamic and dynamic.is_program else Form.SHARED_LIBRARY
    forms = {ET_REL: Form.OBJECT, ET_EXEC: Form.EXECUTABLE}
    if elf.type not in forms:
        raise Malformed(f"an ELF file of type {elf.type} holds no code", 16)
    return forms[elf.type]


def _arch_of(form: Form, data: Bytes) -> str | None:
    if form is Form.PTX:
        return read_ptx(data).target.partition(",")[0].strip().replace("sm_", "compute_")
    return ltoir_arch(data) if form is Form.LTO_IR else None


class _Walk:
    """One walk over one file: what it may still unfold, and how it reaches members elsewhere."""

    def __init__(self, allowance: Allowance, open_member: OpenMember | None) -> None:
        self._allowance = allowance
        self._open_member = open_member

    def inside_of(self, form: Form, data: Bytes, place: str, base: int | None, depth: int) -> Iterator[Piece]:
        """Everything inside of a piece; ``base`` is where it begins in the file, if it lies there raw."""
        if depth > _DEEPEST:
            raise Malformed(f"archives nested more than {_DEEPEST} deep", 0)
        if form is Form.FATBIN:
            yield from self._fatbin(data, place, base)
        elif form is Form.ARCHIVE:
            yield from self._archive(data, place, base, depth)
        elif form in HOST_FORMS:
            yield from self._host(data, place, base)

    def _archive(self, data: Bytes, place: str, base: int | None, depth: int) -> Iterator[Piece]:
        for member in read_members(data):
            at = f"{place}({member.name})"
            body: Bytes | None = member.data
            offset = _shifted(base, member.offset)
            if body is None:
                body, offset = self._thin_member(member.name, member.offset, depth), None
            if body is None:
                yield Piece(Form.OTHER, b"", at, None, sealed="member of a thin archive that is not at hand")
                continue
            with inside(f"member {member.name}", member.offset):
                yield from self._member(body, at, offset, depth)

    def _member(self, body: Bytes, place: str, offset: int | None, depth: int) -> Iterator[Piece]:
        try:
            form = form_of(body)
        except Malformed:
            if is_elf(body):
                raise
            form = Form.OTHER
        yield Piece(form, body, place, offset, stored=len(body))
        yield from self.inside_of(form, body, place, offset, depth + 1)

    def _thin_member(self, name: str, offset: int, depth: int) -> Bytes | None:
        if self._open_member is None or depth:
            return None
        body = self._open_member(name)
        self._allowance.take(len(body), offset, f"member {name}")
        return body

    def _host(self, data: Bytes, place: str, base: int | None) -> Iterator[Piece]:
        elf = read_elf(data)
        for section in elf.sections:
            if section.type == SHT_NOBITS or not section.size:
                continue
            body = elf.body(section)
            where = f"{place} {section.name}".lstrip()
            with inside(f"section {section.name}", section.offset):
                if section.name in FATBIN_SECTIONS:
                    yield from self._fatbin(body, where, _shifted(base, section.offset))
                elif section.type != SHT_NOTE and section.flags & (_SHF_ALLOC | _SHF_EXECINSTR) == _SHF_ALLOC:
                    yield from self._embedded(body, where, _shifted(base, section.offset))

    def _fatbin(self, data: Bytes, place: str, base: int | None) -> Iterator[Piece]:
        for number, entry in enumerate(fatbin.read_entries(data), 1):
            where = f"{place} entry {number} ({entry.arch})".lstrip()
            yield self._entry_piece(entry, where, base)

    def _entry_piece(self, entry: fatbin.Entry, place: str, base: int | None) -> Piece:
        body: Bytes = entry.payload
        sealed = ""
        if entry.scrambled:
            sealed = "its body is obfuscated"
        elif entry.kind not in (fatbin.EntryKind.PTX, fatbin.EntryKind.CUBIN, fatbin.EntryKind.LTO_IR):
            sealed = f"of unknown kind {entry.kind}"
        else:
            body = fatbin.unpack(entry, self._allowance)
        form = {1: Form.PTX, 2: Form.CUBIN, 8: Form.LTO_IR}.get(entry.kind, Form.OTHER)
        if form is Form.CUBIN and not is_cubin(body):
            raise Malformed("an entry said to be a cubin is none", entry.offset)
        return Piece(
            form,
            body,
            place,
            _shifted(base, entry.offset) if body is entry.payload else None,
            entry.arch,
            entry.compression,
            len(entry.payload),
            entry.options,
            sealed,
        )

    def _embedded(self, data: memoryview, place: str, base: int | None) -> Iterator[Piece]:
        """Containers and cubins that a program carries as plain data (bin2c, ``xxd -i``) and loads itself."""
        end = 0
        for found in _EMBEDDED.finditer(data):
            at = found.start()
            if at < end:
                continue
            where = f"{place}+0x{at:x}"
            try:
                if found.group().startswith(fatbin.MAGIC):
                    size = fatbin.container_size(data, at)
                    pieces = list(self._fatbin(data[at : at + size], where, _shifted(base, at)))
                else:
                    size = cubin_size(data[at:])
                    pieces = [Piece(Form.CUBIN, data[at : at + size], where, _shifted(base, at), stored=size)]
            except Malformed as fault:
                pieces = [
                    Piece(Form.OTHER, b"", where, None, sealed=f"looks like CUDA code, but {fault.fault}")
                ]
                size = 1
            yield from pieces
            end = at + size


def _shifted(base: int | None, offset: int) -> int | None:
    return None if base is None else base + offset
