"""What a function's machine code amounts to, so that two builds of it can be compared.

The digest of a function covers its text, its relocations, what `.nv.info` says of it, its constant banks, and
the same for every function that it calls, and the constant and global data that any of them refers to. Stamps
are left out. Names of data, numbers of symbols, offsets in the file and debug information do not count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.objects import nvinfo
from orchestrator.objects.cubin import Cubin
from orchestrator.objects.elf import SHT_NOBITS, STT_FUNC, Relocation, Section
from orchestrator.objects.function import Function
from orchestrator.objects.references import Node, References
from orchestrator.objects.stamp import SYMBOL_PREFIX
from orchestrator.objects.window import Malformed

_PATH_HASH = re.compile(r"_INTERNAL_[0-9a-f]{8}_(\d+_\w+?)_[0-9a-f]{8}")
_OWN_SECTION = re.compile(r"\.nv\.(?:constant\d+|shared|local)\.")
_NO_CODE = {nvinfo.TOOLKIT_VERSION}
_BEGINS_WITH_SYMBOL = {
    nvinfo.PARAMETER_BANK,
    nvinfo.FRAME_SIZE,
    nvinfo.MIN_STACK_SIZE,
    nvinfo.MAX_STACK_SIZE,
    nvinfo.REGISTERS,
}


@dataclass(frozen=True, slots=True)
class CodeDigest:
    """Digests of one function, as hex: of everything, and of the parts that explain a difference."""

    whole: str
    text: str
    """Machine code with relocations."""
    attributes: str
    """Resources, launch bounds and parameters as `.nv.info` and the function's own banks have them."""
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
    reader = _Reader(References(cubin))
    functions = {function.name: reader.digest(function) for function in cubin.functions}
    return Code(functions, reader.all_data())


def stable_name(name: str) -> str:
    """A symbol without the hashes of the source's path that internal linkage puts into it."""
    return _PATH_HASH.sub(r"_INTERNAL_\1", name)


def _hash(parts: Iterable[bytes | memoryview]) -> str:
    """Digest of a list: each part is preceded by its length, so that no two lists run into one text."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


class _Reader:
    """Digests of the nodes of one cubin; each node is read once."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._elf = references.elf
        self._symbols = references.symbols
        self._items = self._items_by_symbol()
        self._own = self._own_sections()
        self._stamps = [symbol for symbol in self._symbols if symbol.name.startswith(SYMBOL_PREFIX)]
        self._text: dict[Node, str] = {}
        self._attributes: dict[Node, str] = {}
        self._content: dict[Node, str] = {}

    def digest(self, function: Function) -> CodeDigest:
        """All digests of one function."""
        start = self._references.functions[function.name]
        reached = self._references.reachable(start)
        called = [node for node in reached if node != start and self._references.is_function(node)]
        calls = {
            stable_name(self._symbols[node].name): _hash(map(str.encode, self._of_function(node)))
            for node in called
        }
        data = self._of_data(node for node in reached if not self._references.is_function(node))
        own = self._of_function(start)
        callees = tuple(sorted(calls.items()))
        whole = _hash(part.encode() for part in (*own, data, *(f"{n}={d}" for n, d in callees)))
        return CodeDigest(whole, *own, data, callees)

    def all_data(self) -> str:
        """Digest of all data, in no order."""
        return self._of_data(self._references.data())

    def _of_function(self, node: Node) -> tuple[str, str]:
        if node not in self._text:
            self._text[node] = _hash(self._read_text(node))
            self._attributes[node] = _hash(self._read_attributes(node))
        return self._text[node], self._attributes[node]

    def _of_data(self, nodes: Iterable[Node]) -> str:
        digests = []
        for node in nodes:
            if node not in self._content:
                self._content[node] = _hash(self._read_content(node))
            digests.append(self._content[node].encode())
        return _hash(sorted(digests))

    def _read_text(self, node: Node) -> Iterator[bytes | memoryview]:
        """Machine code, then its relocations with names instead of numbers."""
        symbol = self._symbols[node]
        if not symbol.section:
            yield b"external " + symbol.name.encode()
            return
        yield self._elf.body(self._elf.sections[symbol.section])
        yield from map(self._told, self._references.relocations_in(node))

    def _told(self, relocation: Relocation) -> bytes:
        """A relocation in words that stay the same when other code comes or goes: data has no name here."""
        symbol = self._symbols[relocation.symbol] if relocation.symbol < len(self._symbols) else None
        named = symbol is not None and (symbol.type == STT_FUNC or not symbol.section)
        name = stable_name(symbol.name) if named and symbol else "data"
        return f"{relocation.offset} {relocation.type} {relocation.addend} {name}".encode()

    def _read_attributes(self, node: Node) -> Iterator[bytes | memoryview]:
        """Items of `.nv.info`, sizes of shared memory, and the constant banks that are the function's own."""
        name = self._symbols[node].name
        own = self._references.sections.get(f".nv.info.{name}")
        if own is not None:
            for item in nvinfo.read_items(self._elf.body(own)):
                if item.attribute not in _NO_CODE:
                    yield self._item(item)
        yield from map(self._item, self._items.get(node, ()))
        for section in self._own.get(name, ()):
            yield section.name.removesuffix(name).encode()
            yield b"%d" % section.size if section.type == SHT_NOBITS else self._elf.body(section)

    def _item(self, item: nvinfo.Item) -> bytes:
        """An item without the numbers of symbols, since they change when other code comes or goes."""
        if item.attribute == nvinfo.EXTERNS:
            names = [self._symbols[word].name for word in item.words() if word < len(self._symbols)]
            return b"externs " + " ".join(names).encode()
        if item.attribute in _BEGINS_WITH_SYMBOL:
            return f"{item.attribute} {item.words()[1:]}".encode()
        return f"{item.attribute} {item.value} ".encode() + bytes(item.payload)

    def _items_by_symbol(self) -> dict[Node, list[nvinfo.Item]]:
        """Items of the cubin's one `.nv.info` section, by the symbol that they are about."""
        found: dict[Node, list[nvinfo.Item]] = {}
        section = self._references.sections.get(".nv.info")
        if section is not None:
            for item in nvinfo.read_items(self._elf.body(section), frozenset(_BEGINS_WITH_SYMBOL)):
                if len(item.payload) >= 4:
                    found.setdefault(item.words()[0], []).append(item)
        return {node: sorted(items, key=lambda item: item.attribute) for node, items in found.items()}

    def _own_sections(self) -> dict[str, list[Section]]:
        """Constant banks and shared memory of each function."""
        found: dict[str, list[Section]] = {}
        for section in self._elf.sections:
            match = _OWN_SECTION.match(section.name)
            if match:
                found.setdefault(section.name[match.end() :], []).append(section)
        return {name: sorted(sections, key=lambda s: s.name) for name, sections in found.items()}

    def _read_content(self, node: Node) -> Iterator[bytes]:
        """Bytes of data, then its relocations; only the size of what starts as zeros."""
        number, start, end = self._references.extent(node)
        section = self._elf.sections[number]
        if end > section.size:
            raise Malformed(f"a symbol ends at byte {end} of {section.name}", section.offset)
        if section.type == SHT_NOBITS:
            yield b"zeros %d" % (end - start)
        else:
            yield self._without_stamps(number, start, bytes(self._elf.body(section)[start:end]))
        yield from map(self._told, self._references.relocations_in(node))

    def _without_stamps(self, number: int, start: int, body: bytes) -> bytes:
        for stamp in self._stamps:
            at = stamp.value - start
            if stamp.section == number and at >= 0 and at + stamp.size <= len(body):
                body = body[:at] + bytes(stamp.size) + body[at + stamp.size :]
        return body
