"""What each piece of a file is and holds, as values to be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import Any

from orchestrator.objects.contents import HOST_FORMS, Form, OpenMember, Piece, walk
from orchestrator.objects.cubin import Tool, read_cubin
from orchestrator.objects.elf import SHT_NOBITS, Elf, read_elf
from orchestrator.objects.function import Function
from orchestrator.objects.ptx import PtxEntry, ptx_strings, read_ptx
from orchestrator.objects.registration import Registration, read_registrations
from orchestrator.objects.stamp import Stamp, read_stamps
from orchestrator.objects.step_stamp import StepStamp, read_step_stamps
from orchestrator.objects.window import Bytes, printable

_TEXT = re.compile(rb"[\t\n\r -~]{4,}")
_TEXT_SECTIONS = (".rodata", ".data", ".nv.global.init", ".nv.constant3", ".nv.constant2")
_LONGEST_TEXT = 4096
_FUNCTION = tuple(one.name for one in dataclass_fields(Function))


@dataclass(frozen=True, slots=True)
class PieceSummary:
    """One piece, read. ``toolkit`` is such as ``13.0``; empty where the bytes do not tell."""

    form: Form
    place: str
    arch: str | None
    compression: str
    stored: int
    size: int
    options: str
    sealed: str
    relocatable: bool = False
    toolkit: str = ""
    tools: tuple[Tool, ...] = ()
    functions: tuple[Function, ...] = ()
    constant_bytes: int = 0
    global_bytes: int = 0
    ptx_entries: tuple[PtxEntry, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    step_stamps: tuple[StepStamp, ...] = ()
    """Of host code: the stamps of the compiles that went into it, where another build system ran them."""
    registrations: tuple[Registration, ...] = ()
    """Of host code: the fat binaries that it registers with the CUDA runtime."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, with demangled names added."""
        fields = {one.name: getattr(self, one.name) for one in dataclass_fields(self)}
        for name in ("tools", "ptx_entries", "stamps", "step_stamps"):
            fields[name] = [asdict(one) for one in fields[name]]
        fields["registrations"] = [one._asdict() for one in self.registrations]
        # by far the most: `asdict` would copy every part of each
        fields["functions"] = [
            {"demangled": one.demangled, **{name: getattr(one, name) for name in _FUNCTION}}
            for one in self.functions
        ]
        return fields


def summarize(data: Bytes, open_member: OpenMember | None = None) -> Iterator[PieceSummary]:
    """Read a file piece by piece; `orchestrator.objects.window.Malformed` when a part is damaged."""
    for piece in walk(data, open_member):
        yield summarize_piece(piece)


def summarize_piece(piece: Piece) -> PieceSummary:
    """Read one piece."""
    plain = PieceSummary(
        piece.form,
        piece.place,
        piece.arch,
        piece.compression,
        piece.stored,
        len(piece.data),
        piece.options,
        piece.sealed,
    )
    with piece.located():
        return plain if piece.sealed else _read(piece, plain)


def _read(piece: Piece, plain: PieceSummary) -> PieceSummary:
    if piece.form is Form.CUBIN:
        cubin = read_cubin(piece.data, piece.arch)
        toolkit = f"{cubin.toolkit // 10}.{cubin.toolkit % 10}" if cubin.toolkit else ""
        return replace(
            plain,
            arch=cubin.arch,
            relocatable=cubin.relocatable,
            toolkit=toolkit,
            tools=cubin.tools,
            functions=cubin.functions,
            constant_bytes=cubin.constant_bytes,
            global_bytes=cubin.global_bytes,
            stamps=cubin.stamps,
        )
    if piece.form is Form.PTX:
        return replace(plain, ptx_entries=read_ptx(piece.data).entries)
    if piece.form in HOST_FORMS:
        elf = read_elf(piece.data)
        return replace(
            plain,
            stamps=read_stamps(elf),
            step_stamps=read_step_stamps(elf),
            registrations=read_registrations(elf),
        )
    return plain


def texts_of(piece: Piece) -> Iterator[str]:
    """Printable texts of four characters or more in a piece's data: strings of host and device code, and of
    PTX.
    """
    if piece.sealed:
        return
    with piece.located():
        if piece.form is Form.PTX:
            for _name, text in ptx_strings(piece.data):
                yield from _texts(text)
        elif piece.form is Form.CUBIN or piece.form in HOST_FORMS:
            elf = read_elf(piece.data)
            for section in elf.sections:
                if section.type != SHT_NOBITS and section.name.startswith(_TEXT_SECTIONS):
                    yield from _texts(elf.body(section))


def _texts(data: Bytes) -> Iterator[str]:
    for found in _TEXT.finditer(data):
        yield printable(found.group()[:_LONGEST_TEXT])


def machine(elf: Elf) -> str:
    """The processor of host code."""
    return {62: "x86_64", 183: "aarch64"}.get(elf.machine, f"machine {elf.machine}")
