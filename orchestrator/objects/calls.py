"""Functions inside of and beside a kernel: what ptxas's notes of the kernel do not cover.

Code of a called function lies in the kernel's own section (a local symbol ``$kernel$function``), or in a
section of its own with relocatable code. ptxas marks the spills of kernels alone, and its stack leaves
recursion out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, TypeVar

from orchestrator.objects.elf import STT_FUNC, Elf, Symbol
from orchestrator.objects.instructions import (
    CALL_ABSOLUTE,
    CALL_RELATIVE,
    LOAD_LOCAL,
    SIZE,
    STORE_LOCAL,
    call_target,
    find,
    opcode,
)

Node = TypeVar("Node")


class Inner(NamedTuple):
    """A called function in another's section: where its code begins and ends."""

    start: int
    end: int


def inner_functions(symbols: Iterable[Symbol]) -> dict[int, list[tuple[str, Inner]]]:
    """Every function symbol by the number of its section: name and stretch."""
    found: dict[int, list[tuple[str, Inner]]] = {}
    for one in symbols:
        if one.type == STT_FUNC and one.section:
            found.setdefault(one.section, []).append((one.name, Inner(one.value, one.value + one.size)))
    return found


def uses_stack(text: memoryview, stretches: Iterable[Inner], marked: Set[int]) -> bool:
    """Whether code in the stretches reads or writes the stack by instructions that are not ``marked``."""
    ranges = _Ranges(stretches)
    return ranges.any and any(
        at not in marked and ranges.index(at) is not None for at in find(text, STORE_LOCAL, LOAD_LOCAL)
    )


def recurses_inside(text: memoryview, stretches: Iterable[Inner], relocated: Set[int]) -> bool:
    """Whether functions in one section call each other in a circle, by calls that are not ``relocated``."""
    ranges = _Ranges(stretches)
    if not ranges.any:
        return False
    edges: dict[int | None, set[int | None]] = {}
    for at in find(text, CALL_RELATIVE):
        if at not in relocated:
            edges.setdefault(ranges.index(at), set()).add(ranges.index(call_target(text, at)))
    edges.pop(None, None)
    return bool(_endless(edges))


class Calls:
    """Calls from section to section, by name, and where they stand."""

    def __init__(self, elf: Elf, symbols: tuple[Symbol, ...]) -> None:
        self.sites: dict[int, set[int]] = {}
        """By the number of a section: offsets of calls that are relocated."""
        self._edges: dict[str, set[str]] = {}
        for number, relocations in elf.relocations().items():
            section = elf.sections[number] if number < len(elf.sections) else None
            if section is None or not section.name.startswith(".text."):
                continue
            text = elf.body(section)
            for one in relocations:
                if opcode(text, one.offset) in (CALL_ABSOLUTE, CALL_RELATIVE):
                    self.sites.setdefault(number, set()).add(one.offset // SIZE * SIZE)
                    called = symbols[one.symbol].name if one.symbol < len(symbols) else ""
                    self._edges.setdefault(section.name.removeprefix(".text."), set()).add(called)

    def endless(self, circles: Iterable[str]) -> frozenset[str]:
        """Functions that call in a circle, or call one that does; ``circles`` do so by themselves."""
        edges = {name: set(called) for name, called in self._edges.items()}
        for name in circles:
            edges.setdefault(name, set()).add(name)
        return frozenset(_endless(edges))


class _Ranges:
    """Stretches by their starts; where they overlap, the later one counts."""

    def __init__(self, stretches: Iterable[Inner]) -> None:
        self._sorted = sorted(stretches)
        self._starts = [one.start for one in self._sorted]
        self.any = bool(self._sorted)

    def index(self, at: int) -> int | None:
        number = bisect_right(self._starts, at) - 1
        return number if number >= 0 and at < self._sorted[number].end else None


def _endless(edges: Mapping[Node, Set[Node]]) -> set[Node]:
    """Those from which a walk need not end: in a circle, or before one. The others go, ends first."""
    callers: dict[Node, list[Node]] = {}
    left = {node: len(called) for node, called in edges.items()}
    for node, called in edges.items():
        for one in called:
            callers.setdefault(one, []).append(node)
    todo = [node for node in callers if not left.get(node)]
    while todo:
        for node in callers.get(todo.pop(), ()):
            left[node] -= 1
            if not left[node]:
                todo.append(node)
    return {node for node, count in left.items() if count}
