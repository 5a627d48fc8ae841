"""One function of a cubin: what ptxas noted of its resources, launch bounds and parameters.

The codes were measured with nvcc 13.0.88; the tests compare them with cuobjdump and with what ptxas prints.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.objects import nvinfo
from orchestrator.objects.calls import Calls, Inner, inner_functions, recurses_inside, uses_stack
from orchestrator.objects.demangle import demangle
from orchestrator.objects.elf import STT_FUNC, Elf, Section, Symbol
from orchestrator.objects.window import Malformed, inside

_PARAMETER = struct.Struct("<IHHI")
_ENTRY_POINT = 0x10  # st_other of a kernel
_MARKS_SINCE = 130  # first toolkit (13.0) seen to mark every spill
_SPILL = 1
_WIDE_INSTRUCTIONS_SINCE = 70
SM_SHIFT_SINCE_ABI = 8
"""From this ABI version on, the SM number stands in bits 8-15 of e_flags."""
_TOLD = frozenset(
    {
        nvinfo.MAX_THREADS,
        nvinfo.REQUIRED_THREADS,
        nvinfo.MAX_REGISTERS,
        nvinfo.CLUSTER,
        nvinfo.MAX_CLUSTER,
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
    from sm_90 on), as cuobjdump counts it. ``max_registers`` is the limit that ptxas worked to: the launch
    bounds' least number of blocks goes into it, which a cubin does not hold by itself. ``cluster`` is the
    size of a cluster that the source fixes, ``max_cluster`` the largest that its bounds allow. ``frame`` is
    the function's own part of the stack; ``stack`` is that with all that it calls, known once linked, and no
    more than a beginning if the code is ``recursive``. ``spill_stores`` and ``spill_loads`` are what ptxas
    prints, with those of functions called inside; ``None`` when the object does not tell.
    """

    name: str
    kernel: bool
    code_bytes: int
    registers: int | None
    frame: int | None
    stack: int | None
    spill_stores: int | None
    spill_loads: int | None
    recursive: bool
    shared: int
    constant: int
    max_threads: tuple[int, int, int] | None
    required_threads: tuple[int, int, int] | None
    max_registers: int | None
    cluster: tuple[int, int, int] | None
    max_cluster: int | None
    barriers: int
    parameters: tuple[Parameter, ...]

    @property
    def demangled(self) -> str:
        """The name as written in the source."""
        return demangle(self.name)


def read_functions(elf: Elf, symbols: tuple[Symbol, ...], toolkit: int | None) -> Iterator[Function]:
    """One for each section ``.text.NAME`` that a function symbol NAME begins, in the order of the file.

    ``toolkit`` is 130 for CUDA 13.0. `Malformed` when a note leads outside of the cubin.
    """
    sections = {section.name: section for section in elf.sections}
    measures = _Measures(elf, symbols)
    called = _Called(elf, symbols)
    entries = {symbol.name: symbol for symbol in symbols if symbol.type == STT_FUNC and symbol.section}
    for section in elf.sections:
        name = section.name.removeprefix(".text.")
        symbol = entries.get(name)
        if name != section.name and symbol is not None and symbol.section == section.number:
            yield _function(elf, symbol, section, sections, measures, called, toolkit)


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


class _Called:
    """Code whose spills ptxas does not mark: functions inside of kernels, and device functions."""

    def __init__(self, elf: Elf, symbols: tuple[Symbol, ...]) -> None:
        number = elf.flags >> 8 & 0xFF if elf.abi_version >= SM_SHIFT_SINCE_ABI else elf.flags & 0xFF
        self.narrow = number < _WIDE_INSTRUCTIONS_SINCE
        """Older code has other instructions, which are not read here."""
        self._by_section = inner_functions(symbols)
        several = any(len(found) > 1 for found in self._by_section.values())
        kernels = sum(bool(one.other & _ENTRY_POINT) for one in symbols)
        if self.narrow or not (several or len(self._by_section) > kernels):
            self.recursive: frozenset[str] = frozenset()
            return
        calls = Calls(elf, symbols)
        circles = [
            symbol.name
            for symbol in symbols
            if symbol.type == STT_FUNC and symbol.section and self._is_circle(elf, symbol, calls)
        ]
        self.recursive = calls.endless(circles)

    def _is_circle(self, elf: Elf, symbol: Symbol, calls: Calls) -> bool:
        section = elf.sections[symbol.section]
        if section.name != f".text.{symbol.name}":
            return False
        sites = calls.sites.get(symbol.section, set())
        return recurses_inside(elf.body(section), self.inner(symbol, section), sites)

    def inner(self, symbol: Symbol, text: Section) -> list[Inner]:
        """Stretches of a section that are not a kernel's own."""
        if not symbol.other & _ENTRY_POINT:
            return [Inner(0, text.size)]
        found = self._by_section.get(symbol.section, ())
        return [stretch for name, stretch in found if name != symbol.name]


def _marked(items: list[nvinfo.Item]) -> frozenset[int]:
    """Offsets of the instructions that ptxas marks as spilling."""
    words = [word for item in items if item.attribute == nvinfo.ANNOTATIONS for word in item.words()]
    return frozenset(at for kind, at in zip(words[::2], words[1::2], strict=False) if kind == _SPILL)


def _function(
    elf: Elf,
    symbol: Symbol,
    text: Section,
    sections: Mapping[str, Section],
    measures: _Measures,
    called: _Called,
    toolkit: int | None,
) -> Function:
    name = symbol.name
    own = sections.get(f".nv.info.{name}")
    items: list[nvinfo.Item] = []
    if own is not None:
        with inside(f"section {own.name}", own.offset):
            items = list(nvinfo.read_items(elf.body(own), _TOLD))
    registers, frame = measures.registers.get(name), measures.frame.get(name)
    code = elf.body(text)
    spills = _spills(code, items, frame, toolkit)
    inner = called.inner(symbol, text)
    if inner and (called.narrow or uses_stack(code, inner, _marked(items))):
        spills = None, None
    values = {item.attribute: item for item in items}
    limit = values.get(nvinfo.MAX_REGISTERS)
    largest = values.get(nvinfo.MAX_CLUSTER)
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
        recursive=name in called.recursive,
        shared=_size(sections, f".nv.shared.{name}"),
        constant=_size(sections, f".nv.constant0.{name}"),
        max_threads=_triple(values.get(nvinfo.MAX_THREADS)),
        required_threads=_triple(values.get(nvinfo.REQUIRED_THREADS)),
        max_registers=limit.value if limit else None,
        cluster=_triple(values.get(nvinfo.CLUSTER)),
        max_cluster=next(iter(largest.words()), None) if largest else None,
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

    Those to shared memory (a pragma asks for them) count too, which ptxas leaves out of its line.
    ptxas 13.0 marks those instructions. Without marks a function that uses no stack spills nothing; of any
    other nothing is known, since local arrays look the same.
    """
    marked = [item for item in items if item.attribute == nvinfo.ANNOTATIONS]
    if not marked and (frame == 0 or (toolkit or 0) >= _MARKS_SINCE):
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
