"""Is the linked device code made of these relocatable parts, and not of older ones?

With ``-rdc=true`` a program carries device code twice: relocatable in `__nv_relfatbin`, linked in
`.nv_fatbin`. A new object beside an old device link makes a program that builds without error and runs the
old kernel. nvlink copies code and data and fills in relocations, so that all other bytes must agree. It
leaves out kernels that the host never launches; so only what is in the linked code is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.objects.cubin import Cubin
from orchestrator.objects.elf import SHT_NOBITS, STB_LOCAL, Symbol
from orchestrator.objects.references import Node, References

_INSTRUCTION = 16
_DATA_SECTIONS = (".nv.global.init", ".nv.constant")


@dataclass(frozen=True, slots=True)
class LinkDifference:
    """A function or variable that the linked code holds otherwise than every part does."""

    arch: str
    name: str
    fault: str


def compare_link(parts: Iterable[Cubin], linked: Iterable[Cubin]) -> tuple[LinkDifference, ...]:
    """Functions and variables of the ``linked`` code that differ from those of the relocatable ``parts``.

    Compared by architecture; those that only one side has are left out.
    """
    members, finished = _by_arch(parts), _by_arch(linked)
    found: list[LinkDifference] = []
    for arch in sorted(members.keys() & finished.keys()):
        code = _Linked(finished[arch])
        found += (
            LinkDifference(arch, name, "linked from other code") for name in code.other_code(members[arch])
        )
        for cubin in members[arch]:
            found += (LinkDifference(arch, *told) for told in code.other_data(cubin))
    return tuple(found)


def _by_arch(cubins: Iterable[Cubin]) -> dict[str, list[Cubin]]:
    found: dict[str, list[Cubin]] = {}
    for cubin in cubins:
        found.setdefault(cubin.arch, []).append(cubin)
    return found


class _Linked:
    """The linked code of one architecture, by name."""

    def __init__(self, cubins: list[Cubin]) -> None:
        self._texts: dict[str, list[memoryview]] = {}
        self._values: dict[str, list[bytes]] = {}
        self._sections: list[bytes] = []
        for cubin in cubins:
            for function in cubin.functions:
                self._texts.setdefault(function.name, []).append(_text(cubin, function.name))
            for symbol in cubin.symbols:
                value = _value(cubin, symbol)
                if value:
                    self._values.setdefault(symbol.name, []).append(value)
            self._sections += [
                bytes(cubin.elf.body(section))
                for section in cubin.elf.sections
                if section.name.startswith(_DATA_SECTIONS)
            ]

    def other_code(self, parts: list[Cubin]) -> Iterator[str]:
        """A name may occur in several parts (templates): one of them is linked, and has to agree."""
        candidates: dict[str, list[tuple[memoryview, set[int]]]] = {}
        for cubin in parts:
            relocations = cubin.elf.relocations()
            for function in cubin.functions:
                section = cubin.elf.section(f".text.{function.name}")
                found = relocations.get(section.number, ()) if section else ()
                sites = {at.offset // _INSTRUCTION for at in found}
                candidates.setdefault(function.name, []).append((_text(cubin, function.name), sites))
        for name in sorted(candidates.keys() & self._texts.keys()):
            pairs = ((text, sites, other) for text, sites in candidates[name] for other in self._texts[name])
            if not any(_agree(text, sites, other) for text, sites, other in pairs):
                yield name

    def other_data(self, part: Cubin) -> Iterator[tuple[str, str]]:
        """Initial values that functions in the linked code refer to: by name where the linker has one."""
        references = References(part)
        live = [node for name, node in references.functions.items() if name in self._texts]
        nodes: set[Node] = set().union(*(references.reachable(node) for node in live))
        for node in sorted(nodes):
            if node < 0 or references.is_function(node) or references.relocations_in(node):
                continue
            symbol = part.symbols[node]
            value = _value(part, symbol)
            if not value:
                continue
            if symbol.binding == STB_LOCAL:
                if not any(value in section for section in self._sections):
                    yield symbol.name, "its data is not in the linked code"
            elif value not in self._values.get(symbol.name, [value]):
                yield symbol.name, "linked with another initial value"


def _text(cubin: Cubin, name: str) -> memoryview:
    section = cubin.elf.section(f".text.{name}")
    return cubin.elf.body(section) if section else memoryview(b"")


def _agree(text: memoryview, sites: set[int], other: memoryview) -> bool:
    """Equal but for instructions that are relocated."""
    if len(text) != len(other):
        return False
    if text == other:
        return True
    at = range(0, len(text), _INSTRUCTION)
    return all(
        text[n : n + _INSTRUCTION] == other[n : n + _INSTRUCTION]
        for n in at
        if n // _INSTRUCTION not in sites
    )


def _value(cubin: Cubin, symbol: Symbol) -> bytes:
    """The initial value of a variable; empty for what is none or begins as zeros."""
    section = cubin.elf.sections[symbol.section]
    if section.type == SHT_NOBITS or not section.name.startswith(_DATA_SECTIONS):
        return b""
    return bytes(cubin.elf.body(section)[symbol.value : symbol.value + symbol.size])
