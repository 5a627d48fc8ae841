"""Cubins: the machine code of one GPU architecture, as ELF (e_machine 190).

NVIDIA documents no part of the format. The offsets and codes were measured with nvcc 13.0.88; the tests
compare them with cuobjdump, with pyelftools and with what ptxas prints.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from orchestrator.objects import nvinfo
from orchestrator.objects.demangle import demangle
from orchestrator.objects.elf import (
    EM_CUDA,
    ET_REL,
    SHT_NOBITS,
    SHT_NOTE,
    STT_FUNC,
    Elf,
    Section,
    Symbol,
    read_elf,
)
from orchestrator.objects.stamp import Stamp, read_stamps
from orchestrator.objects.window import Bytes, Malformed, inside, printable

_TOOL_NOTE, _CUDA_NOTE = 2000, 1000
_TOOL_WORDS = struct.Struct("<6I")
_PARAMETER = struct.Struct("<IHHI")
_ENTRY_POINT = 0x10  # st_other of a kernel
_SM_SHIFT_SINCE_ABI = 8  # from this ABI version on, the SM number stands in bits 8-15 of e_flags
_ANNOTATIONS_SINCE = 130  # first toolkit (13.0) seen to mark every spill
_SPILL = 1
_TOLD = frozenset(
    {
        nvinfo.MAX_THREADS,
        nvinfo.REQUIRED_THREADS,
        nvinfo.MAX_REGISTERS,
        nvinfo.BARRIERS,
        nvinfo.PARAMETER,
        nvinfo.ANNOTATIONS,
    }
)
_ACCESS_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}  # bits 73-75 of STL and LDL, sm_70 and later
_STORES = (0x387, 0x388)  # STL, and STS when registers spill to shared memory; all other marks are loads


class Parameter(NamedTuple):
    """One parameter of a kernel: its place in the parameter bank and its size, in bytes."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel, or a device function that has code of its own.

    All sizes are in bytes. ``shared`` is static shared memory with what the architecture reserves (1024
    from sm_90 on), as cuobjdump counts it. ``frame`` is the function's own part of the stack; ``stack`` is
    that with all that it calls, known once linked. ``spill_stores`` and ``spill_loads`` are what ptxas
    prints; ``None`` when the object does not tell.
    """

    name: str
    kernel: bool
    code_bytes: int
    registers: int | None
    frame: int | None
    stack: int | None
    spill_stores: int | None
    spill_loads: int | None
    shared: int
    constant: int
    max_threads: tuple[int, int, int] | None
    required_threads: tuple[int, int, int] | None
    max_registers: int | None
    barriers: int
    parameters: tuple[Parameter, ...]

    @property
    def demangled(self) -> str:
        """The name as written in the source."""
        return demangle(self.name)


@dataclass(frozen=True, slots=True)
class Tool:
    """One program that wrote a note into the object: name, versions, and the options it ran with."""

    name: str
    version: str
    build: str
    options: str


@dataclass(frozen=True)
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

    @cached_property
    def code_bytes(self) -> int:
        """Bytes of machine code in all functions."""
        return sum(function.code_bytes for function in self.functions)

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
        functions=tuple(_functions(elf, symbols, toolkit)),
        symbols=symbols,
        stamps=read_stamps(elf),
    )


def _arch(elf: Elf, tools: tuple[Tool, ...], told_arch: str | None) -> str:
    """``sm_NN``, with the letter of an architecture-specific (a) or family-specific (f) build where noted."""
    number = elf.flags >> 8 & 0xFF if elf.abi_version >= _SM_SHIFT_SINCE_ABI else elf.flags & 0xFF
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


class _Measures:
    """What the `.nv.info` sections say, by function name."""

    def __init__(self, elf: Elf, symbols: tuple[Symbol, ...]) -> None:
        self.registers: dict[str, int] = {}
        self.frame: dict[str, int] = {}
        self.stack: dict[str, int] = {}
        by_attribute = {
            nvinfo.REGISTERS: self.registers,
            nvinfo.FRAME_SIZE: self.frame,
            nvinfo.MIN_STACK_SIZE: self.stack,
        }
        for section in elf.sections:
            if section.name != ".nv.info":
                continue
            with inside("section .nv.info", section.offset):
                for item in nvinfo.read_items(elf.body(section), frozenset(by_attribute)):
                    index, value = item.pair()
                    if index >= len(symbols):
                        raise Malformed(f"symbol {index} of {len(symbols)}", item.offset)
                    by_attribute[item.attribute][symbols[index].name] = value


def _functions(elf: Elf, symbols: tuple[Symbol, ...], toolkit: int | None) -> Iterator[Function]:
    """One for each section ``.text.NAME`` that a function symbol NAME begins, in the order of the file."""
    sections = {section.name: section for section in elf.sections}
    measures = _Measures(elf, symbols)
    entries = {symbol.name: symbol for symbol in symbols if symbol.type == STT_FUNC and symbol.section}
    for section in elf.sections:
        name = section.name.removeprefix(".text.")
        symbol = entries.get(name)
        if name != section.name and symbol is not None and symbol.section == section.number:
            yield _function(elf, symbol, section, sections, measures, toolkit)


def _function(
    elf: Elf,
    symbol: Symbol,
    text: Section,
    sections: Mapping[str, Section],
    measures: _Measures,
    toolkit: int | None,
) -> Function:
    name = symbol.name
    own = sections.get(f".nv.info.{name}")
    items: list[nvinfo.Item] = []
    if own is not None:
        with inside(f"section {own.name}", own.offset):
            items = list(nvinfo.read_items(elf.body(own), _TOLD))
    registers, frame = measures.registers.get(name), measures.frame.get(name)
    spills = _spills(elf.body(text), items, frame, toolkit)
    values = {item.attribute: item for item in items}
    limit = values.get(nvinfo.MAX_REGISTERS)
    barriers = values.get(nvinfo.BARRIERS)
    return Function(
        name=name,
        kernel=bool(symbol.other & _ENTRY_POINT),
        code_bytes=text.size,
        registers=registers if registers is not None else text.info >> 24 or None,
        frame=frame,
        stack=measures.stack.get(name),
        spill_stores=spills[0],
        spill_loads=spills[1],
        shared=_size(sections, f".nv.shared.{name}"),
        constant=_size(sections, f".nv.constant0.{name}"),
        max_threads=_triple(values.get(nvinfo.MAX_THREADS)),
        required_threads=_triple(values.get(nvinfo.REQUIRED_THREADS)),
        max_registers=limit.value if limit else None,
        barriers=barriers.value if barriers else 0,
        parameters=_parameters(items),
    )


def _size(sections: Mapping[str, Section], name: str) -> int:
    section = sections.get(name)
    return section.size if section else 0


def _triple(item: nvinfo.Item | None) -> tuple[int, int, int] | None:
    words = item.words() if item else ()
    return (words[0], words[1], words[2]) if len(words) >= 3 else None


def _parameters(items: list[nvinfo.Item]) -> tuple[Parameter, ...]:
    """u32 index, u16 ordinal, u16 offset, then a u32 whose upper 14 bits are the size."""
    found = []
    for item in items:
        if item.attribute == nvinfo.PARAMETER and len(item.payload) >= _PARAMETER.size:
            _index, ordinal, offset, packed = _PARAMETER.unpack_from(item.payload)
            found.append(Parameter(ordinal, offset, packed >> 18))
    found.sort()
    return tuple(found)


def _spills(
    text: memoryview, items: list[nvinfo.Item], frame: int | None, toolkit: int | None
) -> tuple[int | None, int | None]:
    """Bytes that spill instructions store and load, each instruction counted once, as ptxas counts them.

    ptxas 13.0 marks those instructions. Without marks a function that uses no stack spills nothing; of any
    other nothing is known, since local arrays look the same.
    """
    marked = [item for item in items if item.attribute == nvinfo.ANNOTATIONS]
    if not marked and (frame == 0 or (toolkit or 0) >= _ANNOTATIONS_SINCE):
        return 0, 0
    if not marked:
        return None, None
    stores = loads = 0
    for item in marked:
        words = item.words()
        for kind, offset in zip(words[::2], words[1::2], strict=False):
            if kind != _SPILL:
                continue
            if offset + 16 > len(text):
                raise Malformed(
                    f"a spill is marked at {offset}, outside of {len(text)} bytes of code", item.offset
                )
            low, high = struct.unpack_from("<QQ", text, offset)
            width = _ACCESS_BYTES.get(high >> 9 & 7, 16)
            if low & 0xFFF in _STORES:
                stores += width
            else:
                loads += width
    return stores, loads
