"""From the programs that ran to the steps of a build: what each took in and what it was to make. Pure.

What a compiler driver starts belongs to its step: the preprocessors and ptxas of nvcc, the linker of rustc.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from orchestrator.foreign.events import Event
from orchestrator.foreign.words import (
    Command,
    read_ar,
    read_device_tool,
    read_host,
    read_ld,
    read_nvcc,
    read_rustc,
)

_HOST = re.compile(r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-[\d.]+)?")
_LD = re.compile(r"(?:[\w.]+-)*(?:ld|ld\.bfd|ld\.gold|ld\.lld|lld|rust-lld|mold|wild)(?:-[\d.]+)?")
_AR = re.compile(r"(?:[\w.]+-)*(?:ar|gcc-ar|llvm-ar)(?:-[\d.]+)?")
_READERS = frozenset({"cc1plus", "cc1", "cudafe++", "cicc", "as"})


class Tool(StrEnum):
    """What made a product."""

    NVCC = "nvcc"
    HOST = "host compiler"
    RUSTC = "rustc"
    LINKER = "linker"
    ARCHIVER = "ar"
    PTXAS = "ptxas"
    FATBINARY = "fatbinary"
    NVLINK = "nvlink"


DEVICE_TOOLS = frozenset({Tool.PTXAS, Tool.FATBINARY, Tool.NVLINK})
"""Run by themselves they make device code of device code."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. All paths are full, but for ``sources``, which are as the command has them."""

    tool: Tool
    event: Event
    mode: str
    """``compile`` or ``join``."""
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    outputs: tuple[str, ...]
    lists: str | None
    """Where it was to write the names of what it read."""
    reads_ns: int
    """Nothing was read before."""
    ended_ns: int | None
    wrapper: str = ""
    """The script behind which the tool was run."""
    internal: frozenset[str] = frozenset()
    """Those of ``objects`` that its command does not name: its own, or found by a library's name."""
    passing: frozenset[str] = frozenset()
    """What programs that the tool started were told to write, such as nvcc's device link of a link."""
    unresolved: tuple[str, ...] = ()
    """Libraries of the link that are nowhere now."""
    ended_badly: str = ""
    """How, if it did not end as a step that did its work."""
    tried: tuple[str, ...] = ()
    """Where a library that went in would have been found before it was."""
    programs: tuple[str, ...] = ()
    """Every program that took part, the step's own first."""
    read: tuple[str, ...] | None = None
    """What a host compile read, where each of its sources' compilers told the observer."""


@dataclass(frozen=True, slots=True)
class Move:
    """A file that was copied or moved by a command."""

    source: str
    to: str


def read_steps(events: Sequence[Event], exists: Callable[[str], bool]) -> tuple[Step, ...]:
    """The steps in the order in which they began. ``exists`` tells whether a file is there now."""
    above = ancestors(events)
    groups: dict[int, list[int]] = {}
    for number, event in enumerate(events):
        top = number if _tool(event) else None
        at: int | None = number
        while at is not None:
            top = at if _tool(events[at]) else top
            at = above[at]
        if top is not None:
            groups.setdefault(top, []).append(number)
    found = (_step(events, top, members, above, exists) for top, members in groups.items())
    return tuple(step for step in found if step is not None)


def ancestors(events: Sequence[Event]) -> list[int | None]:
    """For each program the number of the one that it took the place of, else the one that started it."""
    latest: dict[int, int] = {}
    above: list[int | None] = []
    for number, event in enumerate(events):
        before = latest.get(event.pid)
        replaced = before is not None and events[before].ended_ns is None
        above.append(before if replaced else latest.get(event.parent))
        latest[event.pid] = number
    return above


_BY_NAME = {t.value: t for t in (Tool.NVCC, Tool.RUSTC, Tool.PTXAS, Tool.FATBINARY, Tool.NVLINK)}


def _tool(event: Event) -> Tool | None:
    name = posixpath.basename(event.program)
    if name in _BY_NAME:
        return _BY_NAME[name]
    for pattern, tool in ((_LD, Tool.LINKER), (_AR, Tool.ARCHIVER), (_HOST, Tool.HOST)):
        if pattern.fullmatch(name):
            return tool
    return None


def _step(
    events: Sequence[Event],
    top: int,
    members: Sequence[int],
    above: Sequence[int | None],
    exists: Callable[[str], bool],
) -> Step | None:
    event = events[top]
    tool = _tool(event)
    family = [events[n] for n in sorted(members)]
    command = _command(tool, event, lambda name: exists(posixpath.join(event.folder, name)))
    link = _link_of(tool, command, family, exists)
    if tool is None or not command.mode or (command.mode == "join" and tool is Tool.HOST and link is None):
        return None
    explicit = _full(event.folder, command.objects)
    objects = (*explicit, *(link.objects if link else ()))
    unresolved = link.unresolved if link else command.unresolved
    if tool is not Tool.NVCC:
        unresolved += tuple(word for word in event.argv[1:] if word[:1] == "@" and len(word) > 1)
    launcher = above[top]
    own = [e for e in family if e.pid == event.pid]
    return Step(
        tool=tool,
        event=event,
        mode=command.mode,
        sources=command.sources,
        objects=tuple(dict.fromkeys(objects)),
        outputs=_full(event.folder, command.outputs),
        lists=posixpath.join(event.folder, command.lists) if command.lists else None,
        reads_ns=min((e.started_ns for e in family if _name(e) in _READERS), default=event.started_ns),
        ended_ns=own[-1].ended_ns,
        internal=frozenset(objects) - frozenset(explicit),
        passing=frozenset(_full(event.folder, _written_by([e for e in family if e.pid != event.pid]))),
        unresolved=unresolved,
        wrapper=_wrapper(events[launcher], event) if launcher is not None else "",
        ended_badly=_badly(own[-1]),
        tried=tuple(dict.fromkeys((*_full(event.folder, command.tried), *(link.tried if link else ())))),
        programs=tuple(dict.fromkeys(e.program for e in family if e.program)),
        read=_read(family, command.sources) if tool is Tool.HOST else None,
    )


def _link_of(
    tool: Tool | None, command: Command, family: Sequence[Event], exists: Callable[[str], bool]
) -> Command | None:
    """The last link that a driver ran, with full paths."""
    links = [e for e in family if _tool(e) is Tool.LINKER and "-o" in e.argv]
    if not links or not command.mode or (command.mode != "join" and tool is not Tool.RUSTC):
        return None
    folder = links[-1].folder
    linked = read_ld(links[-1].argv, lambda name: exists(posixpath.join(folder, name)))
    return replace(linked, objects=_full(folder, linked.objects), tried=_full(folder, linked.tried))


def _written_by(family: Sequence[Event]) -> tuple[str, ...]:
    """What the programs that a driver started were told to write: each behind its own ``-o``."""
    return tuple(after for e in family for word, after in pairwise(e.argv) if word == "-o")


def _full(folder: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(posixpath.normpath(posixpath.join(folder, name)) for name in names)


def _name(event: Event) -> str:
    return posixpath.basename(event.program)


def _read(family: Sequence[Event], sources: Sequence[str]) -> tuple[str, ...] | None:
    """What the compilers proper of a step wrote down of what they read: one each source, or it is not all."""
    compilers = [e for e in family if _name(e) in ("cc1", "cc1plus")]
    lists = [e.read for e in compilers if e.read is not None]
    if not sources or not len(lists) == len(compilers) == len(sources):
        return None
    return tuple(dict.fromkeys((*sources, *(name for names in lists for name in names))))


def _badly(event: Event) -> str:
    if event.ended_ns is None:
        return "was not seen to end"
    return f"ended with exit code {event.code}" if event.code else ""


def _command(tool: Tool | None, event: Event, exists: Callable[[str], bool]) -> Command:
    if tool is Tool.NVCC:
        return read_nvcc(event.argv)
    if tool is Tool.HOST:
        return read_host(event.argv)
    if tool is Tool.RUSTC:
        return read_rustc(event.argv, exists)
    if tool is Tool.LINKER:
        return read_ld(event.argv, exists)
    if tool is Tool.ARCHIVER:
        return read_ar(event.argv)
    if tool in DEVICE_TOOLS:
        return read_device_tool(event.argv)
    return Command("")


def _wrapper(before: Event, event: Event) -> str:
    """The script whose process the tool took over."""
    if before.pid != event.pid or len(before.argv) < 2:
        return ""
    script = before.argv[1]
    return posixpath.join(before.folder, script) if before.argv[2:] == event.argv[1:] else ""


_CMAKE_MOVES = ("copy", "copy_if_different", "rename", "create_hardlink", "create_symlink")


def read_moves(events: Sequence[Event], is_folder: Callable[[str], bool]) -> tuple[Move, ...]:
    """What cp, mv, install, ln and ``cmake -E`` were told to put elsewhere, in order."""
    moves = []
    for event in events:
        words = event.argv[1:]
        if _name(event) == "cmake" and words[:1] == ("-E",) and words[1:2] and words[1] in _CMAKE_MOVES:
            words = words[2:]
        elif _name(event) not in ("cp", "mv", "install", "ln"):
            continue
        names = [posixpath.join(event.folder, word) for word in words if not word.startswith("-")]
        if len(names) < 2:
            continue
        *sources, to = map(posixpath.normpath, names)
        into = is_folder(to)
        for source in sources:
            moves.append(Move(source, posixpath.join(to, posixpath.basename(source)) if into else to))
    return tuple(moves)


def follow(step: Step, moves: Sequence[Move], exists: Callable[[str], bool]) -> Step:
    """The step with its outputs where they were moved to, for those that are no longer in their place."""
    outputs = []
    for output in step.outputs:
        for move in moves:
            if move.source == output and not exists(output):
                output = move.to
        outputs.append(output)
    return replace(step, outputs=tuple(outputs))
