"""Cubins: the machine code of one GPU architecture, as ELF (e_machine 190).

NVIDIA documents no part of the format. The offsets and codes were measured with nvcc 13.0.88; the tests
compare them with cuobjdump, with pyelftools and with what ptxas prints.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.objects.elf import EM_CUDA, ET_REL, SHT_NOBITS, SHT_NOTE, Elf, Symbol, read_elf
from orchestrator.objects.function import SM_SHIFT_SINCE_ABI, Function, read_functions
from orchestrator.objects.stamp import Stamp, read_stamps
from orchestrator.objects.window import Bytes, Malformed, inside, printable

_TOOL_NOTE, _CUDA_NOTE = 2000, 1000
_TOOL_WORDS = struct.Struct("<6I")
_CONSTANT = ".nv.constant3"
_GLOBAL = (".nv.global", ".nv.global.init")


@dataclass(frozen=True, slots=True)
class Tool:
    """One program that wrote a note into the object: name, versions, and the options it ran with."""

    name: str
    version: str
    build: str
    options: str


@dataclass(frozen=True, slots=True)
class Cubin:
    """One cubin. ``toolkit`` is 130 for CUDA 13.0, ``None`` when no note says so."""

    elf: Elf = field(repr=False)
    arch: str
    abi: int
    toolkit: int | None
    tools: tuple[Tool, ...]
    functions: tuple[Function, ...]
    symbols: tuple[Symbol, ...] = field(repr=False)
    stamps: tuple[Stamp, ...]

    @property
    def kernels(self) -> tuple[Function, ...]:
        """The functions that can be launched."""
        return tuple(function for function in self.functions if function.kernel)

    @property
    def code_bytes(self) -> int:
        """Bytes of machine code in all functions."""
        return sum(function.code_bytes for function in self.functions)

    @property
    def constant_bytes(self) -> int:
        """Of ``__constant__`` variables."""
        return self._bytes_of(_CONSTANT)

    @property
    def global_bytes(self) -> int:
        """Of ``__device__`` variables and of strings."""
        return self._bytes_of(*_GLOBAL)

    def _bytes_of(self, *names: str) -> int:
        return sum(section.size for section in self.elf.sections if section.name in names)

    @property
    def relocatable(self) -> bool:
        """Whether a device link is still to come (``-rdc=true``)."""
        return self.elf.type == ET_REL


def is_cubin(data: Bytes) -> bool:
    """Whether the bytes begin as a cubin does."""
    return bytes(data[:4]) == b"\x7fELF" and len(data) >= 20 and bytes(data[18:20]) == b"\xbe\x00"


def cubin_size(data: Bytes) -> int:
    """Bytes of the cubin that ``data`` begins with: to the end of its last table or section."""
    elf = read_elf(data)
    ends = [section.offset + section.size for section in elf.sections if section.type != SHT_NOBITS]
    return max([elf.tables_end, *ends])


def read_cubin(data: Bytes, told_arch: str | None = None) -> Cubin:
    """Everything that a cubin says about its code; `Malformed` when it is damaged or no cubin.

    ``told_arch`` is what the container says: cubins without a note of their own do not tell sm_90a from
    sm_90.
    """
    elf = read_elf(data)
    if elf.machine != EM_CUDA:
        raise Malformed(f"not a cubin: e_machine is {elf.machine}, CUDA's is {EM_CUDA}", 18)
    tools = tuple(_tools(elf))
    toolkit = _toolkit(elf)
    symbols = elf.symbols()
    return Cubin(
        elf=elf,
        arch=_arch(elf, tools, told_arch),
        abi=elf.abi_version,
        toolkit=toolkit,
        tools=tools,
        functions=tuple(read_functions(elf, symbols, toolkit)),
        symbols=symbols,
        stamps=read_stamps(elf),
    )


def _arch(elf: Elf, tools: tuple[Tool, ...], told_arch: str | None) -> str:
    """``sm_NN``, with the letter of an architecture-specific (a) or family-specific (f) build where noted."""
    number = elf.flags >> 8 & 0xFF if elf.abi_version >= SM_SHIFT_SINCE_ABI else elf.flags & 0xFF
    for tool in tools:
        told = re.search(rf"-arch[ =](sm_{number}[af]?)\b", tool.options)
        if told:
            return told.group(1)
    if told_arch and told_arch.rstrip("af") == f"sm_{number}":
        return told_arch
    return f"sm_{number}"


def _tools(elf: Elf) -> Iterator[Tool]:
    """`.note.nv.tkinfo`: six words (the last four are offsets into the text after them), then the text."""
    for section in elf.sections:
        if section.type != SHT_NOTE:
            continue
        with inside(f"section {section.name}", section.offset):
            for note in elf.notes(section):
                if note.type == _TOOL_NOTE and len(note.body) > _TOOL_WORDS.size:
                    texts = bytes(note.body[_TOOL_WORDS.size :])
                    yield Tool(*(_text_at(texts, start) for start in _TOOL_WORDS.unpack_from(note.body)[2:]))


def _text_at(texts: bytes, start: int) -> str:
    end = texts.find(b"\0", start)
    return printable(texts[start : end if end >= 0 else len(texts)]).strip()


def _toolkit(elf: Elf) -> int | None:
    """`.note.nv.cuinfo`: u16 note version, u16 virtual architecture, u16 toolkit (130 is CUDA 13.0)."""
    section = elf.section(".note.nv.cuinfo")
    if section is None:
        return None
    with inside("section .note.nv.cuinfo", section.offset):
        for note in elf.notes(section):
            if note.type == _CUDA_NOTE and len(note.body) >= 6:
                toolkit: int = struct.unpack_from("<H", note.body, 4)[0]
                return toolkit
    return None
