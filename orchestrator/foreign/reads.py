"""What the compiles of a build read: as the build itself had it listed, or asked of the compilers afterwards.

To ask takes the preprocessor's time of each compile, which is most of what a record costs; so several are
asked at a time, in the order in which the answers will be needed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from orchestrator.depfile import parse_nvcc
from orchestrator.errors import BuildFailed, Missing
from orchestrator.foreign.lists import parse_rules
from orchestrator.foreign.outputs import TICK_NS
from orchestrator.foreign.steps import Step, Tool
from orchestrator.foreign.words import asking
from orchestrator.process import run


class Unclosed(Exception):
    """What the compile read could not be established; the text says why."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a compile read."""

    names: tuple[str, ...]
    private: str
    """Folder in which a compiler that was asked wrote; what it names there is its own."""


class Reads:
    """Answers for the steps of one build. Use as a context manager: leaving it drops what was not needed."""

    def __init__(self) -> None:
        self._workers = len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="reads")
        self._due: deque[Step] = deque()
        self._asked: dict[int, Future[Names]] = {}

    def __enter__(self) -> Reads:
        return self

    def __exit__(self, *_error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def expect(self, steps: Iterable[Step]) -> None:
        """Steps about which `of` will be called, in this order."""
        self._due.extend({id(step): step for step in steps if _must_ask(step)}.values())
        self._ask_ahead()

    def of(self, step: Step) -> Names:
        """What a step read. Raises `Unclosed`, `BuildFailed`, `Missing`."""
        asked = self._asked.pop(id(step), None)
        self._ask_ahead()
        return _find(step) if asked is None else asked.result()

    def _ask_ahead(self) -> None:
        """Keep the workers at work, and no more answers than they give while one is used."""
        while self._due and len(self._asked) < 2 * self._workers:
            step = self._due.popleft()
            self._asked[id(step)] = self._pool.submit(_find, step)


def _must_ask(step: Step) -> bool:
    return step.tool in (Tool.NVCC, Tool.HOST) and bool(step.sources) and not _is_told(step)


def _is_told(step: Step) -> bool:
    """Whether the build itself left the names, or there is nobody to ask."""
    return step.read is not None or _has_no_preprocessor(step) or _has_own_list(step)


def _has_no_preprocessor(step: Step) -> bool:
    return all(source.endswith(".s") for source in step.sources)


def _has_own_list(step: Step) -> bool:
    """Whether this compile wrote a whole list of its own."""
    partial = step.tool is Tool.HOST and "-MMD" in step.event.argv
    return bool(step.lists) and not partial and len(step.sources) == 1 and _written_by(step)


def _written_by(step: Step) -> bool:
    try:
        return os.stat(step.lists or "").st_mtime_ns + TICK_NS >= step.event.started_ns
    except OSError:
        return False


def _find(step: Step) -> Names:
    if step.read is not None:
        return Names(step.read, "")
    if _has_no_preprocessor(step):
        return Names(step.sources, "")
    if _has_own_list(step):
        return Names(_listed(step, step.lists or ""), "")
    names: dict[str, None] = {}
    with tempfile.TemporaryDirectory(prefix="freshproof-") as private:
        for number, source in enumerate(step.sources):  # several would write over each other's list
            names.update(dict.fromkeys(_ask(step, source, private, f"{private}/{number}.d")))
        return Names(tuple(names), f"{private}/")


def _ask(step: Step, source: str, private: str, path: str) -> tuple[str, ...]:
    others = {*step.sources} - {source}
    argv = asking([word for word in step.event.argv if word not in others], path)
    environment = {**dict(step.event.settings), "TMPDIR": private}
    try:
        ended = run((tool_path(step), *argv[1:]), environment, Path(step.event.folder))
    except (BuildFailed, Missing) as error:
        raise Unclosed(error.what) from None
    if ended.code:
        said = ended.said.decode("utf-8", "replace").strip()
        raise Unclosed(f"the compiler did not say what it reads: {said[-300:]}")
    return _listed(step, path)


def _listed(step: Step, path: str) -> tuple[str, ...]:
    """The names in a list. Raises `Unclosed`."""
    parse = parse_nvcc if step.tool is Tool.NVCC else parse_rules
    try:
        return parse(Path(step.event.folder, path).read_bytes())
    except (OSError, ValueError) as error:
        raise Unclosed(f"the dependency list {path} cannot be used: {error}") from None


def tool_path(step: Step) -> str:
    """The name by which the step's program was run, in full: tools find their parts from it."""
    if step.wrapper:
        return step.wrapper
    name = step.event.argv[0]
    if "/" in name:
        return os.path.join(step.event.folder, name)
    return shutil.which(name, path=step.event.environment.get("PATH")) or step.event.program
