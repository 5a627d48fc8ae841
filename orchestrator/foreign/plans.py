"""What build systems would run for a product, asked of them without running any of it.

Two equal plans, one from when the product was made and one from after an edit of the build's description,
show that the edit does not reach it. Asked are ninja, and the makefiles and ninja files that CMake writes.
Plain makefiles are not: to tell what they would do, make runs some of it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.foreign.cmake_plan import plans as cmake_plans
from orchestrator.foreign.descriptions import folder_of, ninja_files
from orchestrator.foreign.events import Event
from orchestrator.foreign.ninja_plan import plans as ninja_plans
from orchestrator.foreign.ninja_plan import read_commands
from orchestrator.foreign.outputs import TICK_NS
from orchestrator.foreign.steps import Step, ancestors

NINJA, CMAKE = "ninja", "cmake"

_BUILDERS = ("ninja", "ninja-build", "make", "gmake")
_OF_CMAKE = re.compile(
    r"(?:^|/)(?:CMakeLists\.txt|CMake(?:User)?Presets\.json|CMakeCache\.txt|[^/]+\.cmake)$"
)
_OF_NINJA = re.compile(r"\.ninja$")
_ACTIONS = frozenset({"--build", "-E", "-P", "--install", "--open", "--find-package", "--workflow"})
_PATIENCE_S = 60

Plan = tuple[str, ...]
"""Whose answer it is, the folder of the build, the digest of what would be run; empty if it is not known."""


def acts_through(plan: Plan, path: str) -> bool:
    """Whether a file decides about a product by the plan alone."""
    if not plan:
        return False
    return bool(_OF_NINJA.search(path) or (plan[0] == CMAKE and _OF_CMAKE.search(path)))


@dataclass(slots=True)
class Planner:
    """Asks the build systems that one build ran."""

    events: Sequence[Event]
    _above: list[int | None] = field(init=False)
    _numbers: dict[int, int] = field(init=False)
    _programs: dict[str, str] = field(init=False)
    """By folder, the program that built there, with full path."""
    _configured: frozenset[str] = field(init=False)
    _known: dict[tuple[str, str], tuple[Plan, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._above = ancestors(self.events)
        self._numbers = {id(event): number for number, event in enumerate(self.events)}
        self._programs = {folder_of(e): e.program for e in self.events if _is_builder(e)}
        self._configured = frozenset(_configured(self.events, self._programs))

    def load(self, trees: Iterable[tuple[str, str]]) -> None:
        """Ask about products, each with the folder of its build, all of one folder at once."""
        by_tree: dict[str, set[str]] = {}
        for tree, path in trees:
            if tree in self._programs:
                by_tree.setdefault(tree, set()).add(path)
        for tree, paths in by_tree.items():
            for path, plan, files in self._ask(tree, sorted(paths)):
                self._known[tree, path] = plan, files

    def tree_of(self, step: Step) -> str:
        """The folder of the build that ran a step; empty if none did."""
        number: int | None = self._numbers.get(id(step.event))
        while number is not None:
            if _is_builder(self.events[number]):
                return folder_of(self.events[number])
            number = self._above[number]
        return ""

    def of_step(self, step: Step, path: str) -> Plan:
        """The plan by which a product was made: only if nothing of it was written since the step began."""
        plan, files = self._known.get((self.tree_of(step), path), ((), ()))
        try:
            settled = all(os.stat(name).st_ctime_ns < step.event.started_ns for name in files)
        except OSError:
            return ()
        return plan if settled else ()

    def now(self, plan: Plan, path: str) -> Plan:
        """The plan for a product of an earlier build, as it is now: where CMake configures, only if it was
        seen to do so in this build, with all that it read.
        """
        kind, tree, _digest = plan
        if kind == CMAKE and tree not in self._configured:
            return ()
        return self._known.get((tree, path), ((), ()))[0]

    def _ask(self, tree: str, paths: Sequence[str]) -> Iterator[tuple[str, Plan, tuple[str, ...]]]:
        kind = CMAKE if os.path.isfile(f"{tree}/CMakeCache.txt") else NINJA
        program = self._programs[tree]
        try:
            if os.path.basename(program).startswith("ninja"):
                yield from self._ask_ninja(kind, tree, program, paths)
            elif kind == CMAKE:
                for path, (digest, files) in cmake_plans(tree, paths).items():
                    yield path, (kind, tree, digest), files
        except (OSError, ValueError, subprocess.SubprocessError):
            return

    def _ask_ninja(
        self, kind: str, tree: str, program: str, paths: Sequence[str]
    ) -> Iterator[tuple[str, Plan, tuple[str, ...]]]:
        commands = read_commands(_said(program, tree, "compdb", "-x"))
        names = {
            name: path for path in paths for name in (path, os.path.relpath(path, tree)) if name in commands
        }
        if not names:
            return
        graph = _said(program, tree, "graph", *names).decode("utf-8", "surrogateescape")
        files = ninja_files(tree)
        for name, digest in ninja_plans(commands, graph, names).items():
            yield names[name], (kind, tree, digest), files


def _said(program: str, tree: str, *words: str) -> bytes:
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("LD_", "NINJA_"))}
    done = subprocess.run(
        [program, "-t", *words],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=True,
    )
    return done.stdout


def _is_builder(event: Event) -> bool:
    """Whether it is a build system with the file that it reads unless told otherwise."""
    others = ("-f", "--file", "--makefile", "-t")
    named = [word for word in event.argv[1:] if word.startswith(others) or word in others]
    ours = all(word in ("-f",) for word in named) and _is_inner_make(event)
    return os.path.basename(event.program) in _BUILDERS and (not named or ours)


def _is_inner_make(event: Event) -> bool:
    """One of the makes that the makefiles of CMake start: with a file of CMake's own."""
    return any(word.startswith("CMakeFiles/") or "/CMakeFiles/" in word for word in event.argv)


def _configured(events: Iterable[Event], trees: Iterable[str]) -> Iterator[str]:
    """Those of ``trees`` that CMake was seen to set up to the end: it writes that file last."""
    times = [
        (e.started_ns, e.ended_ns + TICK_NS)
        for e in events
        if os.path.basename(e.program) == "cmake"
        and e.code == 0
        and e.ended_ns
        and not _ACTIONS & set(e.argv)
    ]
    for tree in trees:
        try:
            written = os.stat(f"{tree}/CMakeFiles/cmake.check_cache").st_mtime_ns
        except OSError:
            continue
        if any(began <= written + TICK_NS and written <= ended for began, ended in times):
            yield tree
