"""The steps after a good build: what each runs, and what its answer is worth."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from orchestrator.canonical import parse_json
from orchestrator.compare.records import measured_ns
from orchestrator.errors import FreshproofError
from orchestrator.records import read_record
from orchestrator.situation import read_project
from orchestrator.watch.knowledge import Knowledge
from orchestrator.watch.steps import Plan, StepEnd, freshproof
from orchestrator.watch.timing import Timed, parse_bench, timed_fields
from orchestrator.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Options:
    """What a watch is asked to do."""

    targets: tuple[str, ...] = ()
    """All if none is named."""
    verify: bool = False
    bench: str = ""
    """A workload's name, or empty."""
    command: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    """A program and its first words; what happened is added as the last."""
    poll: bool = False


@dataclass(slots=True)
class Checks:
    """What was asked for after each build, and what is still to be put through it."""

    workspace: Workspace
    options: Options
    made: set[str] = field(default_factory=set)
    """Targets built since everything last went through the steps."""
    _first: bool = True
    """Nothing went through all of them yet."""
    _first_timed: Timed | None = None
    _last_timed: Timed | None = None

    def asked(self) -> list[str]:
        """The steps in the order in which they run."""
        options = self.options
        asked = (("verify", options.verify), ("bench", options.bench), ("command", options.command))
        return [name for name, wanted in asked if wanted]

    def passed(self) -> None:
        """All went through."""
        self.made.clear()
        self._first = False

    def selection(self) -> tuple[str, ...]:
        """The targets asked for, with those of the workload; none stands for all."""
        if not self.options.targets or not self.options.bench:
            return self.options.targets
        try:
            workloads = {one.name: one for one in read_project(self.workspace).workloads}
        except FreshproofError:
            return self.options.targets
        workload = workloads.get(self.options.bench)
        return tuple(dict.fromkeys((*self.options.targets, *(workload.uses if workload else ()))))

    def plan(self, step: str, knowledge: Knowledge) -> Plan | None:
        """What a step runs now; nothing if nothing that was built concerns it."""
        root = self.workspace.root
        if step == "verify":
            names = knowledge.names if self._first else knowledge.names & self.made
            return Plan(freshproof("gate", "--json", *sorted(names)), root, document=True) if names else None
        if step == "bench":
            if not self._concerns_bench(knowledge):
                return None
            argv = freshproof("bench", "--json", self.options.bench)
            return Plan(argv, root, document=True, ends_its_own=True)
        return Plan(freshproof("gate", *self.options.targets, "--", *self.options.command), Path.cwd())

    def _concerns_bench(self, knowledge: Knowledge) -> bool:
        """Whether something was built that the workload uses."""
        workloads = knowledge.project.workloads if knowledge.project else ()
        workload = next((one for one in workloads if one.name == self.options.bench), None)
        if self._first or workload is None:
            return True
        return bool(knowledge.affected(frozenset(self.made)) & set(workload.uses))

    def result(self, step: str, end: StepEnd) -> tuple[bool, str, dict[str, Any]]:
        """Whether a step that ended by itself went well; and its event."""
        if step == "verify":
            return self._verified(end)
        if step == "bench":
            return self._benched(end)
        return end.code == 0, "command", {"code": end.code}

    def _verified(self, end: StepEnd) -> tuple[bool, str, dict[str, Any]]:
        try:
            document = parse_json(end.said.encode("utf-8", "replace"))
        except ValueError:
            document = None
        if not isinstance(document, dict):
            document = {"error": f"it gave no result (exit code {end.code})"}
        admitted = document.get("admitted") is True
        fields = {"targets": document.get("targets", []), "error": document.get("error", "")}
        return admitted, "verified", {"admitted": admitted, **fields}

    def _benched(self, end: StepEnd) -> tuple[bool, str, dict[str, Any]]:
        path, why = parse_bench(end.said)
        times: tuple[int, ...] = ()
        if path:
            try:
                times = measured_ns(read_record(self.workspace.root / path))
            except (OSError, FreshproofError) as error:
                why = f"{path} cannot be read: {error}"
        fields: dict[str, Any] = {"workload": self.options.bench, "state": "broken", "why": why}
        if not times:
            return False, "benched", fields
        now = Timed(time.strftime("%H:%M:%S"), times, path, end.others, psutil.cpu_count() or 1)
        fields |= {"state": "fresh", **timed_fields(now, self._first_timed, self._last_timed)}
        self._first_timed = self._first_timed or now
        self._last_timed = now
        return True, "benched", fields
