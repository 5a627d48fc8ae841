"""The build of a round, in a thread of its own, so that a newer save can cut it off."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.build import Built, Outcome, Progress, Result, build, build_digests
from orchestrator.errors import FreshproofError
from orchestrator.model import Manifest
from orchestrator.object_files import member_opener, open_object, reading
from orchestrator.objects.compare import Holdings, compare, hold
from orchestrator.process import Runner
from orchestrator.situation import Situation
from orchestrator.watch.code_change import IDENTICAL, change_lines
from orchestrator.workspace import Workspace

_TURN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Report:
    """Where a build tells what happens; all are called in its own threads."""

    note: Callable[[str], None]
    waiting: Callable[[bool], None]
    """It waits for another build or a benchmark in this tree; or no longer."""
    planned: Callable[[Situation], None]
    started: Callable[[str, str], None]
    """Target and reason."""
    outcome: Callable[[Outcome], None]
    code: Callable[[str, Sequence[str]], None]
    """Target, and what became of its machine code."""
    ended: Callable[[Built | Exception | None], None]
    """The result, why there is none, or nothing if it was cut off."""


@dataclass(frozen=True, slots=True)
class _Order:
    names: tuple[str, ...]
    before: Mapping[str, Manifest]
    unproven: Container[str]
    runner: Runner

    def may_be_lost(self, outcome: Outcome) -> bool:
        """Whether a target may be unproven only since a file that it read was deleted while it was built:
        what a compile names and nobody finds is not looked for again, unless it is built once more.
        """
        if outcome.target in self.unproven:
            return False
        return outcome.seconds > 0 or outcome.target in self.names


def _joined(first: Built, second: Built) -> Built:
    """The answer after some targets were built a second time."""
    later = {outcome.target: outcome for outcome in second.outcomes}
    outcomes = tuple(later.get(outcome.target, outcome) for outcome in first.outcomes)
    return Built(first.situation, outcomes, {**first.manifests, **second.manifests})


class Builder:
    """Runs one build at a time."""

    def __init__(self, workspace: Workspace, environ: Mapping[str, str], report: Report) -> None:
        self._workspace, self._environ, self._report = workspace, environ, report
        self._digests = build_digests(workspace)
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._runner = Runner()
        self._idle = threading.Event()
        self._idle.set()
        self._waits = False
        self._held: dict[str, tuple[str, Holdings]] = {}
        threading.Thread(target=self._work, name="build", daemon=True).start()

    def start(
        self, names: Sequence[str], before: Mapping[str, Manifest], unproven: Container[str] = frozenset()
    ) -> None:
        """Build these targets (all if none is named); ``before`` is what was recorded of them. Those of
        ``unproven`` are known to be so.
        """
        self._runner = Runner()
        self._idle.clear()
        self._orders.put(_Order(tuple(names), dict(before), unproven, self._runner))

    def cut(self) -> None:
        """End the commands that are running, and start no more; the end is reported as usual."""
        self._runner.stop()

    def wait(self, seconds: float) -> None:
        """Wait until nothing is built. A build that waits for another one in this tree is not waited for:
        it began nothing, and will begin nothing once it was cut off.
        """
        end = time.monotonic() + seconds
        while not self._idle.wait(_TURN_SECONDS) and not self._waits and time.monotonic() < end:
            pass

    def _work(self) -> None:
        while True:
            order = self._orders.get()
            self._idle.clear()
            answer: Built | Exception | None
            try:
                answer = self._build(order)
            except Exception as error:
                cut = order.runner.stopped and isinstance(error, FreshproofError)
                answer = None if cut else error
            self._waits = False
            self._idle.set()
            self._report.ended(answer)

    def _build(self, order: _Order) -> Built:
        planned = False

        def note(text: str) -> None:
            if not planned:
                self._waits = True
                self._report.waiting(True)
            self._report.note(text)

        def on_planned(situation: Situation) -> None:
            nonlocal planned
            planned = True
            self._report.planned(situation)
            if self._waits:
                self._waits = False
                self._report.waiting(False)

        progress = Progress(
            note=note, situated=on_planned, started=self._report.started, ended=self._report.outcome
        )

        def run(names: Sequence[str], *, force: bool) -> Built:
            return build(
                self._workspace, names, self._environ, force=force, progress=progress,
                runner=order.runner, digests=self._digests,
            )  # fmt: skip

        built = run(order.names, force=False)
        lost = [o.target for o in built.outcomes if o.result is Result.UNPROVEN and order.may_be_lost(o)]
        if lost and not order.runner.stopped:
            built = _joined(built, run(lost, force=True))
        for outcome in built.outcomes:
            if order.runner.stopped:
                break
            if outcome.result is Result.BUILT:
                self._tell_code(outcome, order.before.get(outcome.target), built.manifests[outcome.target])
        return built

    def _tell_code(self, outcome: Outcome, old: Manifest | None, new: Manifest) -> None:
        if old is None:
            return
        lines = [IDENTICAL] if outcome.same_code else self._compared(outcome.target, old, new)
        if lines:
            self._report.code(outcome.target, lines)

    def _compared(self, target: str, old: Manifest, new: Manifest) -> list[str]:
        """The differences; what cannot be read is said, since it is no reason to fail."""
        try:
            before = self._hold(target, old)
            after = self._hold(target, new)
        except FreshproofError as error:
            return [f"machine code not compared: {error.what}"]
        return change_lines(compare(before, after))

    def _hold(self, target: str, manifest: Manifest) -> Holdings:
        digest = manifest.product.digest
        kept = self._held.get(target)
        if kept is None or kept[0] != digest:
            path = self._workspace.root / manifest.product.path
            with reading(path):
                kept = digest, hold(open_object(path), member_opener(path))
            self._held[target] = kept
        return kept[1]
