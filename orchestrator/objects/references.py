"""Who refers to whom inside of a cubin: functions to functions, functions to data, data to data.

In finished cubins ptxas has resolved most references: data is reached through bank 3 (``__constant__``
variables) and through bank 4, a table of addresses. So the operands of instructions are read. What cannot
be told apart is taken in: more may be reported than a function refers to, never less.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator

from orchestrator.objects.cubin import Cubin
from orchestrator.objects.elf import (
    SHT_NOBITS,
    STT_CUDA_OBJECT,
    STT_FUNC,
    STT_OBJECT,
    STT_SECTION,
    Relocation,
)
from orchestrator.objects.stamp import SYMBOL_PREFIX
from orchestrator.objects.window import Malformed

Node = int
"""A symbol's number; or ``-n`` for the whole of section n."""

_CALL = struct.Struct("<II")
_VARIABLES, _ADDRESSES = ".nv.constant3", ".nv.constant4"
_DATA_SECTIONS = (".nv.global", ".nv.constant")

# Instructions of sm_70 and later, 16 bytes each; these are bits of the first 8.
_FIRST_WIDE_ARCH = 70
_CONSTANT_FORMS = (3, 5)  # bits 9-11 where an operand lies in a constant bank: bits 54-58, offset from bit 38
_LDC, _LDCU = 0x182, 0x1AC  # bits 0-8 of the loads that add a register, bits 24-31, to the offset
_NO_REGISTER = 0xFF


class References:
    """The references of one cubin; `Malformed` when one leads outside of it."""

    def __init__(self, cubin: Cubin) -> None:
        self.elf = cubin.elf
        self.symbols = cubin.symbols
        self.sections = {section.name: section for section in cubin.elf.sections}
        self.functions = {s.name: n for n, s in enumerate(cubin.symbols) if s.type == STT_FUNC and s.section}
        self._operands_known = int(re.sub(r"\D", "", cubin.arch)) >= _FIRST_WIDE_ARCH
        self._relocations = {n: sorted(found) for n, found in cubin.elf.relocations().items()}
        self._calls = self._call_graph()
        self._direct: dict[Node, tuple[Node, ...]] = {}

    def is_function(self, node: Node) -> bool:
        """Whether a node is code; what is not is data."""
        return node > 0 and self.symbols[node].type == STT_FUNC

    def data(self) -> list[Node]:
        """All symbols that are constant or global data, but for stamps."""
        return [node for node in range(1, len(self.symbols)) if self._is_data(node)]

    def reachable(self, start: Node) -> set[Node]:
        """Everything that a node refers to, directly or not, itself included. The graph may have cycles."""
        seen = {start}
        todo = [start]
        while todo:
            for node in self._references(todo.pop()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return seen

    def extent(self, node: Node) -> tuple[int, int, int]:
        """Section number, first byte and end of a node."""
        if node < 0:
            return -node, 0, self.elf.sections[-node].size
        symbol = self.symbols[node]
        if self.is_function(node):
            return symbol.section, 0, self.elf.sections[symbol.section].size
        return symbol.section, symbol.value, symbol.value + symbol.size

    def relocations_in(self, node: Node) -> list[Relocation]:
        """The relocations of a node's bytes, by offset."""
        number, start, end = self.extent(node)
        found = self._relocations.get(number, [])
        return found[bisect_left(found, (start,)) : bisect_left(found, (end,))]

    def _is_data(self, node: Node) -> bool:
        symbol = self.symbols[node]
        if symbol.type not in (STT_OBJECT, STT_CUDA_OBJECT) or symbol.name.startswith(SYMBOL_PREFIX):
            return False
        return self.elf.sections[symbol.section].name.startswith(_DATA_SECTIONS)

    def _call_graph(self) -> dict[Node, list[Node]]:
        """`.nv.callgraph`: pairs of symbol numbers, caller first; values from 0xfffffffb on are marks."""
        calls: dict[Node, list[Node]] = {}
        section = self.sections.get(".nv.callgraph")
        if section is not None:
            body = self.elf.body(section)
            for caller, callee in _CALL.iter_unpack(body[: len(body) - len(body) % _CALL.size]):
                if 0 < caller < len(self.symbols) and 0 < callee < len(self.symbols):
                    calls.setdefault(caller, []).append(callee)
        return calls

    def _references(self, node: Node) -> tuple[Node, ...]:
        found = self._direct.get(node)
        if found is None:
            found = self._direct[node] = tuple(dict.fromkeys(self._read_references(node)))
        return found

    def _read_references(self, node: Node) -> Iterator[Node]:
        for relocation in self.relocations_in(node):
            yield from self._target(relocation)
        if self.is_function(node):
            yield from self._calls.get(node, ())
            yield from self._constant_references(node)

    def _target(self, relocation: Relocation) -> Iterator[Node]:
        """What a relocation leads to: a symbol, or the section or function that a section's symbol stands
        for.
        """
        if relocation.symbol >= len(self.symbols):
            raise Malformed(f"relocation against symbol {relocation.symbol} of {len(self.symbols)}", 0)
        symbol = self.symbols[relocation.symbol]
        if symbol.type == STT_SECTION and symbol.section:
            name = self.elf.sections[symbol.section].name.removeprefix(".text.")
            yield self.functions.get(name, -symbol.section)
        elif symbol.type == STT_FUNC or self._is_data(relocation.symbol):
            yield relocation.symbol

    def _constant_references(self, node: Node) -> Iterator[Node]:
        variables, addresses = self.sections.get(_VARIABLES), self.sections.get(_ADDRESSES)
        if variables is None and addresses is None:
            return
        uses_variables, slots = self._constant_operands(node)
        if variables is not None and uses_variables:
            yield -variables.number
        if addresses is not None and slots != set():
            for relocation in self._relocations.get(addresses.number, ()):
                if slots is None or relocation.offset & ~7 in slots:
                    yield from self._target(relocation)

    def _constant_operands(self, node: Node) -> tuple[bool, set[int] | None]:
        """Whether bank 3 is read, and which 8-byte slots of bank 4 are (``None``: any)."""
        section = self.elf.sections[self.symbols[node].section]
        if not self._operands_known or section.type == SHT_NOBITS:
            return True, None
        import numpy as np  # takes 70 ms, and most questions about a cubin do not come here

        body = self.elf.body(section)
        low = np.frombuffer(body[: len(body) // 16 * 16], dtype="<u8")[::2]
        low = low[np.isin(low >> 9 & 7, _CONSTANT_FORMS)]
        bank, offset = low >> 54 & 31, low >> 38 & 0xFFFF
        uniform = (low & 0x1FF) == _LDCU
        offset[uniform] = low[uniform] >> 37 & 0x1FFFF  # LDCU's offset begins one bit earlier
        indexed = np.isin(low & 0x1FF, (_LDC, _LDCU)) & ((low >> 24 & 0xFF) != _NO_REGISTER)
        addresses = bank == 4
        slots = None if bool((addresses & indexed).any()) else {int(o) & ~7 for o in offset[addresses]}
        return bool((bank == 3).any()), slots
