"""What a function's machine code amounts to, so that two builds of it can be compared.

The digest of a function covers its text, its relocations, what `.nv.info` says of it, its constant banks,
and the same for every function that it calls, and the constant and global data that any of them refers to.
Stamps are left out. Names of data, offsets in the file and debug information do not count.

In finished cubins ptxas has resolved most references: data is reached through bank 3 (``__constant__``
variables) and through bank 4, a table of addresses. So the operands of instructions are read. What cannot
be told apart is taken in: a digest may cover more than a function refers to, never less.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orchestrator.objects import nvinfo
from orchestrator.objects.cubin import Cubin, Function
from orchestrator.objects.elf import (
    SHT_NOBITS,
    STT_CUDA_OBJECT,
    STT_FUNC,
    STT_OBJECT,
    STT_SECTION,
    Relocation,
    Section,
)
from orchestrator.objects.stamp import SYMBOL_PREFIX
from orchestrator.objects.window import Malformed

_PATH_HASH = re.compile(r"_INTERNAL_[0-9a-f]{8}_(\d+_\w+?)_[0-9a-f]{8}")
_CALL = struct.Struct("<II")
_CONSTANT_FORMS = (3, 5)  # bits 9-11 of an instruction whose operand lies in a constant bank, sm_70 and later
_FIRST_WIDE_ARCH = 70
_LDC, _LDCU = 0x182, 0x1AC  # bits 0-8 of the loads that add a register to the offset
_NO_INDEX = 0xFF
_VARIABLES, _ADDRESSES = 3, 4
_NO_CODE = {nvinfo.TOOLKIT_VERSION}
_BEGINS_WITH_SYMBOL = {
    nvinfo.PARAMETER_BANK,
    nvinfo.FRAME_SIZE,
    nvinfo.MIN_STACK_SIZE,
    nvinfo.MAX_STACK_SIZE,
    nvinfo.REGISTERS,
}
_DATA_SECTIONS = (".nv.global", ".nv.constant")
_OWN_SECTION = re.compile(r"\.nv\.(?:constant\d+|shared|local)\.")


@dataclass(frozen=True, slots=True)
class CodeDigest:
    """Digests of one function, as hex: of everything, and of the parts that explain a difference."""

    whole: str
    text: str
    """Machine code with relocations."""
    attributes: str
    """Resources, launch bounds and parameters as `.nv.info` and the parameter bank have them."""
    data: str
    """Constant and global data referred to, by the function or by what it calls."""
    calls: tuple[tuple[str, str], ...]
    """(name, digest of text and attributes) of each function called, directly or not."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of one cubin: the digests of its functions by symbol, and one of all data, stamps left out."""

    functions: dict[str, CodeDigest]
    data: str


def read_code(cubin: Cubin) -> Code:
    """The digests of a cubin's code; `Malformed` when a reference leads outside of it."""
    graph = _Graph(cubin)
    functions = {function.name: graph.digest(function) for function in cubin.functions}
    return Code(functions, graph.all_data())


def stable_name(name: str) -> str:
    """A symbol without the hashes of the source's path that internal linkage puts into it."""
    return _PATH_HASH.sub(r"_INTERNAL_\1", name)


def _hash(parts: Iterable[bytes]) -> str:
    """Digest of a list: each part is preceded by its length, so that no two lists run into one text."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


class _Graph:
    """The functions and data of one cubin, and what refers to what.

    A node is a symbol number, or ``-n`` for the whole of section n.
    """

    def __init__(self, cubin: Cubin) -> None:
        self._elf = cubin.elf
        self._symbols = cubin.symbols
        self._relocations = cubin.elf.relocations()
        self._sections = {section.name: section for section in cubin.elf.sections}
        self._numbers = {s.name: n for n, s in enumerate(cubin.symbols) if s.type == STT_FUNC and s.section}
        self._operands_known = int(re.sub(r"\D", "", cubin.arch)) >= _FIRST_WIDE_ARCH
        self._calls = self._call_graph()

    def digest(self, function: Function) -> CodeDigest:
        """All digests of one function."""
        start = self._numbers[function.name]
        reached = self._reachable(start)
        own = _hash(self._text(start)), _hash(self._attributes(start))
        calls = {
            stable_name(self._symbols[node].name): _hash((*self._text(node), *self._attributes(node)))
            for node in reached
            if node != start and self._is_function(node)
        }
        data = _hash(sorted(self._content(node) for node in reached if not self._is_function(node)))
        callees = tuple(sorted(calls.items()))
        whole = _hash(part.encode() for part in (*own, data, *(f"{n}={d}" for n, d in callees)))
        return CodeDigest(whole, *own, data, callees)

    def all_data(self) -> str:
        """Digest of all data symbols, in no order."""
        nodes = [n for n in range(1, len(self._symbols)) if self._is_data(n)]
        return _hash(sorted(self._content(node) for node in nodes))

    def _is_function(self, node: int) -> bool:
        return node > 0 and self._symbols[node].type == STT_FUNC

    def _is_data(self, node: int) -> bool:
        symbol = self._symbols[node]
        if symbol.type not in (STT_OBJECT, STT_CUDA_OBJECT) or symbol.name.startswith(SYMBOL_PREFIX):
            return False
        return self._elf.sections[symbol.section].name.startswith(_DATA_SECTIONS)

    def _call_graph(self) -> dict[int, list[int]]:
        """`.nv.callgraph`: pairs of symbol numbers, caller first; values from 0xfffffffb on are marks."""
        calls: dict[int, list[int]] = {}
        section = self._sections.get(".nv.callgraph")
        if section is not None:
            body = self._elf.body(section)
            for caller, callee in _CALL.iter_unpack(body[: len(body) - len(body) % _CALL.size]):
                if 0 < caller < len(self._symbols) and 0 < callee < len(self._symbols):
                    calls.setdefault(caller, []).append(callee)
        return calls

    def _reachable(self, start: int) -> set[int]:
        """Everything that the node refers to, itself included. Without recursion: graphs may be cyclic."""
        seen = {start}
        todo = [start]
        while todo:
            for node in self._references(todo.pop()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return seen

    def _references(self, node: int) -> Iterator[int]:
        for relocation in self._relocations_in(node):
            yield from self._targets(relocation)
        if self._is_function(node):
            yield from self._calls.get(node, ())
            yield from self._constant_references(node)

    def _relocations_in(self, node: int) -> list[Relocation]:
        """The relocations of a node's bytes, by offset."""
        number, start, end = self._extent(node)
        found = [r for r in self._relocations.get(number, ()) if start <= r.offset < end]
        return sorted(found)

    def _extent(self, node: int) -> tuple[int, int, int]:
        """Section number, first byte and end of a node."""
        if node < 0:
            return -node, 0, self._elf.sections[-node].size
        symbol = self._symbols[node]
        if self._is_function(node):
            return symbol.section, 0, self._elf.sections[symbol.section].size
        return symbol.section, symbol.value, symbol.value + symbol.size

    def _targets(self, relocation: Relocation) -> Iterator[int]:
        """The nodes that a relocation leads to: a symbol, or what lies at an offset of a section."""
        if relocation.symbol >= len(self._symbols):
            raise Malformed(f"relocation against symbol {relocation.symbol} of {len(self._symbols)}", 0)
        symbol = self._symbols[relocation.symbol]
        if symbol.type == STT_SECTION and symbol.section:
            name = self._elf.sections[symbol.section].name.removeprefix(".text.")
            yield self._numbers.get(name, -symbol.section)
        elif symbol.type == STT_FUNC or self._is_data(relocation.symbol):
            yield relocation.symbol

    def _constant_references(self, node: int) -> Iterator[int]:
        variables = self._sections.get(f".nv.constant{_VARIABLES}")
        addresses = self._sections.get(f".nv.constant{_ADDRESSES}")
        uses_variables, slots = self._constant_operands(node)
        if variables is not None and uses_variables:
            yield -variables.number
        if addresses is not None:
            for relocation in self._relocations.get(addresses.number, ()):
                if slots is None or relocation.offset & ~7 in slots:
                    yield from self._targets(relocation)

    def _constant_operands(self, node: int) -> tuple[bool, set[int] | None]:
        """Whether bank 3 is read, and which 8-byte slots of bank 4 are (``None``: any)."""
        section = self._elf.sections[self._symbols[node].section]
        if not self._operands_known or section.type == SHT_NOBITS:
            return True, None
        body = self._elf.body(section)
        low = np.frombuffer(body[: len(body) // 16 * 16], dtype="<u8")[::2]
        low = low[np.isin(low >> 9 & 7, _CONSTANT_FORMS)]
        bank, offset = low >> 54 & 31, low >> 38 & 0xFFFF
        uniform = (low & 0x1FF) == _LDCU
        offset[uniform] = low[uniform] >> 37 & 0x1FFFF
        indexed = np.isin(low & 0x1FF, (_LDC, _LDCU)) & ((low >> 24 & 0xFF) != _NO_INDEX)
        addresses = bank == _ADDRESSES
        slots = None if bool((addresses & indexed).any()) else {int(o) & ~7 for o in offset[addresses]}
        return bool((bank == _VARIABLES).any()), slots

    def _text(self, node: int) -> tuple[bytes, ...]:
        """Machine code, then its relocations with names instead of numbers."""
        symbol = self._symbols[node]
        if not symbol.section:
            return (b"external", symbol.name.encode())
        section = self._elf.sections[symbol.section]
        return (bytes(self._elf.body(section)), *map(self._told, self._relocations_in(node)))

    def _told(self, relocation: Relocation) -> bytes:
        """A relocation in words that do not change when other code comes or goes: data has no name here."""
        symbol = self._symbols[relocation.symbol] if relocation.symbol < len(self._symbols) else None
        named = symbol is not None and (symbol.type == STT_FUNC or not symbol.section)
        name = stable_name(symbol.name) if named and symbol else "data"
        return f"{relocation.offset} {relocation.type} {relocation.addend} {name}".encode()

    def _attributes(self, node: int) -> Iterator[bytes]:
        """Items of `.nv.info`, sizes of shared memory, and the constant banks that are the function's own."""
        name = self._symbols[node].name
        own = self._sections.get(f".nv.info.{name}")
        if own is not None:
            for item in nvinfo.read_items(self._elf.body(own)):
                if item.attribute not in _NO_CODE:
                    yield self._item(item)
        for item in self._shared_items.get(node, ()):
            yield self._item(item)
        for section in self._own_sections.get(name, ()):
            yield section.name.encode()
            yield b"%d" % section.size if section.type == SHT_NOBITS else bytes(self._elf.body(section))

    def _item(self, item: nvinfo.Item) -> bytes:
        """An item with the numbers of symbols taken out, since they change when other code comes or goes."""
        words = item.words()
        if item.attribute in _BEGINS_WITH_SYMBOL:
            words = words[1:]
        if item.attribute == nvinfo.EXTERNS:
            names = [self._symbols[word].name for word in words if word < len(self._symbols)]
            return b"externs " + " ".join(names).encode()
        if item.attribute in _BEGINS_WITH_SYMBOL:
            return f"{item.attribute} {words}".encode()
        return f"{item.attribute} {item.value} ".encode() + bytes(item.payload)

    @cached_property
    def _shared_items(self) -> dict[int, list[nvinfo.Item]]:
        """Items of the cubin's one `.nv.info` section, by the symbol that they are about."""
        found: dict[int, list[nvinfo.Item]] = {}
        section = self._sections.get(".nv.info")
        if section is not None:
            for item in nvinfo.read_items(self._elf.body(section)):
                if len(item.payload) >= 4 and item.attribute in _BEGINS_WITH_SYMBOL:
                    found.setdefault(item.words()[0], []).append(item)
        return {node: sorted(items, key=lambda item: item.attribute) for node, items in found.items()}

    @cached_property
    def _own_sections(self) -> dict[str, list[Section]]:
        """Constant banks and shared memory of each function."""
        found: dict[str, list[Section]] = {}
        for section in self._elf.sections:
            match = _OWN_SECTION.match(section.name)
            if match:
                found.setdefault(section.name[match.end() :], []).append(section)
        return {name: sorted(sections, key=lambda s: s.name) for name, sections in found.items()}

    def _content(self, node: int) -> bytes:
        """Bytes of data with its relocations; only the size of what starts as zeros."""
        number, start, end = self._extent(node)
        section = self._elf.sections[number]
        if end > section.size:
            raise Malformed(f"a symbol ends at byte {end} of {section.name}", section.offset)
        told = b"\n".join(map(self._told, self._relocations_in(node)))
        if section.type == SHT_NOBITS:
            return b"zeros %d " % (end - start) + told
        body = bytearray(self._elf.body(section)[start:end])
        for symbol in self._symbols if node < 0 else ():
            if symbol.section == number and symbol.name.startswith(SYMBOL_PREFIX):
                body[symbol.value : symbol.value + symbol.size] = bytes(symbol.size)
        return bytes(body) + told
