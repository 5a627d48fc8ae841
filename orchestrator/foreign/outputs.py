"""What the steps of a build left on the disk, and what is doubtful about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.foreign.events import Event
from orchestrator.foreign.steps import Move, Step, Tool, follow, read_moves, read_steps

_EDITORS = frozenset(
    {"strip", "ranlib", "objcopy", "patchelf", "ar", "chrpath", "llvm-strip", "llvm-objcopy"}
)
PROBE = re.compile(r"/CMakeFiles/(?:[\d.]+/CompilerId\w+|CMakeScratch|CMakeTmp)/|/conftest\.dir/")
"""What CMake compiles to try the compilers out: no part of what is built."""
TICK_NS = 12_000_000
"""The end of a program and the time of its last write are told by clocks that move in steps."""


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a step made."""

    step: Step
    path: str
    doubt: str = ""


def find_outputs(events: Sequence[Event]) -> tuple[Output, ...]:
    """What the steps of a build left, the last maker of each file; a step that failed left nothing new."""
    moves = read_moves(events, os.path.isdir)
    outputs: dict[str, Output] = {}
    for step in read_steps(events, os.path.exists):
        moved = follow(step, moves, os.path.exists)
        for path in moved.outputs:
            if PROBE.search(path):
                continue
            try:
                written = os.stat(path).st_mtime_ns
            except OSError:
                continue
            if written + TICK_NS >= step.event.started_ns and os.path.isfile(path):
                outputs.pop(path, None)
                outputs[path] = Output(step, path, _doubt(step, path, written, events, moves))
    return tuple(outputs.values())


def failed_compiles(events: Sequence[Event]) -> tuple[tuple[str, str], ...]:
    """Sources of compiles of nvcc that failed, and how; not those that were compiled after all."""
    ended: dict[str, str] = {}
    for step in read_steps(events, os.path.exists):
        if step.tool is Tool.NVCC and not any(PROBE.search(path) for path in step.outputs):
            for source in step.sources:
                ended[os.path.normpath(os.path.join(step.event.folder, source))] = step.ended_badly
    return tuple((source, how) for source, how in ended.items() if how)


def vanished(events: Sequence[Event]) -> Iterable[str]:
    """What compiles of nvcc made that is nowhere now, in words."""
    moves = read_moves(events, os.path.isdir)
    for step in read_steps(events, os.path.exists):
        if step.tool is Tool.NVCC and step.sources and not step.ended_badly:
            gone = [path for path in follow(step, moves, os.path.exists).outputs if not os.path.exists(path)]
            yield from (f"{path} is gone, so what it went into cannot be told" for path in gone)


def _doubt(step: Step, path: str, written: int, events: Sequence[Event], moves: Sequence[Move]) -> str:
    """Why a file may not be what the step made."""
    if step.ended_ns is None or written <= step.ended_ns + TICK_NS:
        return ""
    if any(m.to == path and m.source in step.outputs and m.source != path for m in moves):
        return ""
    for event in events:
        tool = os.path.basename(event.program).rpartition("-linux-gnu-")[2]
        names = (os.path.normpath(os.path.join(event.folder, word)) for word in event.argv[1:])
        if tool in _EDITORS and event.started_ns >= step.event.started_ns and path in names:
            return ""
    return "it was written again after the step that made it"
