"""The loop of a watch: takes in what happens, asks `Decider` what to do, and does it."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.build import Built, Outcome, Result
from orchestrator.build_report import opening_lines
from orchestrator.errors import FreshproofError
from orchestrator.situation import Situation
from orchestrator.watch.alone import only_watch
from orchestrator.watch.building import Builder, Report
from orchestrator.watch.checks import Checks, Options
from orchestrator.watch.decide import Build, BuildEnd, Cut, Decider, Doing, Order, Run
from orchestrator.watch.gathering import Gathering, Notice
from orchestrator.watch.knowledge import Changes, Knowledge
from orchestrator.watch.notify import Notifier
from orchestrator.watch.observer import Observer
from orchestrator.watch.scope import EVERYTHING, NOTHING
from orchestrator.watch.steps import Step, StepEnd, adopt_orphans, end_children, forget_orphans
from orchestrator.watch.writers import open_for_writing
from orchestrator.workspace import Workspace, explained

Event = dict[str, Any]
Tell = Callable[[Event], None]
_END_SECONDS = 10.0
_MOST_LINES = 500
"""Of a step's output that may wait to be shown."""


@dataclass(slots=True)
class Session:
    """One watch. All of it happens in the thread of `run`; others put what happened into its inbox."""

    workspace: Workspace
    options: Options
    tell: Tell
    environ: Mapping[str, str]
    inbox: queue.SimpleQueue[Notice | Callable[[], None]] = field(default_factory=queue.SimpleQueue)
    _decider: Decider = field(init=False)
    _gathering: Gathering = field(default_factory=Gathering)
    _knowledge: Knowledge = field(init=False)
    _builder: Builder = field(init=False)
    _checks: Checks = field(init=False)
    _step: Step | None = None
    _step_name: str = ""
    _ended: bool = False
    _build: Build = field(default_factory=lambda: Build(NOTHING))
    _began: float = 0.0
    _counts: dict[Result, int] = field(default_factory=dict)
    _broken: str = ""
    _grew: bool = False
    """Places were added while the build at work may already have looked at them."""
    _plan: list[str] = field(default_factory=list)
    _watching: dict[str, int] = field(default_factory=dict)
    _lines: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MOST_LINES))
    _notifier: Notifier = field(init=False)

    def run(self) -> None:
        """Watch until `stop` is called from the inbox, or an exception such as an interruption ends it."""
        with only_watch(self.workspace), contextlib.ExitStack() as ends:
            adopt_orphans()
            ends.callback(end_children)
            self._begin(ends)
            while not self._ended:
                self._turn()

    def stop(self) -> None:
        """End the loop."""
        self._ended = True

    def look_at_everything(self) -> None:
        """As if all had changed: build, and go through the steps."""
        if self._decider.doing is Doing.NOTHING:
            self._open_round()
        self._do(self._decider.asked())

    def _begin(self, ends: contextlib.ExitStack) -> None:
        """``ends`` is told how to leave nothing behind: no process, nothing half-written."""
        cache = self.workspace.cache("")
        with explained(cache):
            cache.mkdir(parents=True, exist_ok=True)
        self._checks = Checks(self.workspace, self.options)
        self._notifier = Notifier(self.options.notify, self.workspace.root)
        self._decider = Decider(steps=self._checks.asked())
        observer = Observer(self.workspace.root, cache, self.inbox.put, self._note, poll=self.options.poll)
        ends.callback(observer.close)
        self._knowledge = Knowledge(self.workspace, observer)
        self._knowledge.read_records()
        self._knowledge.look()
        self._builder = Builder(self.workspace, self.environ, self._report())
        ends.callback(self._end_work)
        self._open_round()
        self._do(self._decider.begin())

    def _turn(self) -> None:
        """Wait for something, and take in what is there: not without end, since a step may say much."""
        rest = self._gathering.rests_at()
        wait = None if rest is None else max(0.0, rest - time.monotonic())
        with contextlib.suppress(queue.Empty):
            self._take(self.inbox.get(timeout=wait))
            for _ in range(_MOST_LINES):
                if not self._ended:
                    self._take(self.inbox.get_nowait())
        rest, now = self._gathering.rests_at(), time.monotonic()
        if rest is None or now < rest or self._ended:
            return
        unfinished = {os.path.realpath(os.path.join(*place)) for place in self._gathering.unfinished()}
        if unfinished and open_for_writing(unfinished) and self._gathering.hold(now):
            return
        self._settle_burst()

    def _take(self, item: Notice | Callable[[], None]) -> None:
        if isinstance(item, Notice):
            self._gathering.take(item, time.monotonic())
        else:
            item()

    def _settle_burst(self) -> None:
        changes = self._knowledge.changes(self._gathering.release())
        self._decider.doubted(changes.doubt)
        due = changes.due
        if self._broken and (changes.touched or changes.files):
            due = EVERYTHING  # whatever was saved may be meant to mend it
        if not due:
            if changes.touched or changes.files:
                self._tell("touched", files=[*changes.touched, *(path for path, _how in changes.files)])
            return
        doing = self._decider.doing
        orders = self._decider.changed(due)
        if doing is Doing.NOTHING:
            self._open_round()
        self._tell_changes(changes, doing if any(isinstance(o, Cut) for o in orders) else Doing.NOTHING)
        self._do(orders)

    def _tell_changes(self, changes: Changes, cuts: Doing) -> None:
        """What changed, and the targets that this affects: not all that are looked at to be sure."""
        due = changes.due or changes.doubt
        names = self._knowledge.names if due.everything else due.names
        self._tell(
            "changed",
            files=[{"path": path, "how": how} for path, how in changes.files]
            or [{"path": path, "how": "saved again"} for path in changes.touched],
            targets=sorted(names),
            cuts="" if cuts is Doing.NOTHING else "build" if cuts is Doing.BUILD else self._step_name,
        )

    def _do(self, orders: Sequence[Order]) -> None:
        for order in orders:
            if isinstance(order, Build):
                self._start_build(order)
            elif isinstance(order, Run):
                self._start_step(order.step)
            elif isinstance(order, Cut):
                self._cut()
            else:
                self._settle(order.good)

    def _cut(self) -> None:
        if self._decider.doing is Doing.BUILD:
            self._builder.cut()
        elif self._step is not None:
            self._step.cut()

    # Builds

    def _report(self) -> Report:
        put = self.inbox.put
        return Report(
            note=lambda text: put(lambda: self._note(text)),
            waiting=lambda waits: put(lambda: self._decider.waiting(waits)),
            planned=lambda situation: put(lambda: self._planned(situation)),
            started=lambda target, reason: put(lambda: self._tell("building", target=target, reason=reason)),
            outcome=lambda outcome: put(lambda: self._tell_outcome(outcome)),
            code=lambda target, lines: put(lambda: self._tell_code(target, lines)),
            ended=lambda answer: put(lambda: self._build_ended(answer)),
        )

    def _planned(self, situation: Situation) -> None:
        """Tell which compiler and architecture, when they are not those told before."""
        if not self._knowledge.actions:
            self._knowledge.expect(situation)
            self._grew = self._knowledge.look()
        lines = opening_lines(situation)
        if any(line not in self._plan for line in lines):
            self._plan = lines
            self._tell("plan", lines=lines)

    def _start_build(self, order: Build) -> None:
        self._build = order
        self._gathering.patience = 2 ** min(self._decider.cuts, 4)
        known = self._knowledge
        if not order.due.everything:
            names: Sequence[str] = sorted(known.affected(order.due.names))
        elif order.quiet and known.failing:
            names = sorted(known.names - known.affected(frozenset(known.failing)))
            if not names:
                self.inbox.put(lambda: self._do(self._decider.build_ended(BuildEnd(good=False))))
                return
        else:
            names = self._checks.selection()
        settled = known.unproven.keys() - order.due.names
        self._builder.start(names, known.manifests, settled)

    def _build_ended(self, answer: Built | Exception | None) -> None:
        known = self._knowledge
        if answer is None:
            self._tell("cut", what="build")
            self._do(self._decider.build_ended(BuildEnd(good=False, cut=True)))
            return
        if not isinstance(answer, Built):
            self._tell_error(answer)
            known.look(broken=True)
            self._do(self._decider.build_ended(BuildEnd(good=False, broken=True)))
            return
        self._broken = ""
        whole = self._build.due.everything and not (self._build.quiet and known.failing)
        before = {name: manifest.product.digest for name, manifest in known.manifests.items()}
        known.learn(answer, everything=whole)
        made = {o.target for o in answer.outcomes if o.result is Result.BUILT}
        # What another build made is as new to the steps.
        made |= {
            n for n, m in answer.manifests.items() if before.get(n, m.product.digest) != m.product.digest
        }
        self._checks.made |= made
        grew, self._grew = known.look() or self._grew, False
        self._tell_watching()
        self._do(self._decider.build_ended(BuildEnd(good=not known.failing, made=bool(made), grew=grew)))

    def _tell_error(self, error: Exception) -> None:
        if not isinstance(error, FreshproofError):
            raise error
        if error.what != self._broken:
            self._tell("error", error=error.what, remedy=error.remedy, exit_code=error.exit_code)
        self._broken = error.what

    def _tell_outcome(self, outcome: Outcome) -> None:
        """A target that is as it was before is no news."""
        self._counts[outcome.result] = self._counts.get(outcome.result, 0) + 1
        known = self._knowledge
        as_before = (
            outcome.result is Result.FRESH and outcome.target not in {*known.failing, *known.unproven}
        ) or (outcome.result is Result.UNPROVEN and known.unproven.get(outcome.target) == outcome.reason)
        if not as_before:
            self._tell(
                "built",
                target=outcome.target,
                result=outcome.result,
                reason=outcome.reason,
                seconds=outcome.seconds,
                same_code=outcome.same_code,
                message=outcome.message,
                remedy=outcome.remedy,
                artifact=outcome.artifact,
            )

    def _tell_code(self, target: str, lines: Sequence[str]) -> None:
        alone = self._counts.get(Result.BUILT, 0) == 1
        self._tell("code", target=target, lines=list(lines), alone=alone)

    # Steps

    def _start_step(self, name: str) -> None:
        put = self.inbox.put
        plan = self._checks.plan(name, self._knowledge)
        if plan is None:
            put(lambda: self._do(self._decider.step_ended(good=True)))
            return
        forget_orphans(self._notifier.running())  # nothing else is at work now
        self._step_name = name
        self._tell("step", step=name)
        try:
            self._step = Step(
                plan,
                say=lambda line: self._put_line(name, line),
                ended=lambda end: put(lambda: self._step_ended(name, end)),
            )
        except FreshproofError as error:
            self._tell_error(error)
            put(lambda: self._do(self._decider.step_ended(good=False)))

    def _put_line(self, step: str, line: str) -> None:
        """Called in the step's thread; waits while very much is still to be shown."""

        def show() -> None:
            self._lines.release()
            if not self._decider.owed:  # what a step says that was cut off is of no interest
                self._tell("said", step=step, line=line)

        self._lines.acquire()
        self.inbox.put(show)

    def _step_ended(self, name: str, end: StepEnd) -> None:
        self._step = None
        if self._decider.owed:  # it was cut off: what it said counts for nothing
            self._tell("cut", what=name)
            good = False
        else:
            good, event, fields = self._checks.result(name, end)
            self._tell(event, **fields)
        self._do(self._decider.step_ended(good=good))

    # Rounds

    def _open_round(self) -> None:
        self._began = time.monotonic()
        self._counts = {}

    def _settle(self, good: bool) -> None:
        """A round is over."""
        known = self._knowledge
        if not self._broken:
            known.rest()
        self._tell(
            "round",
            good=good,
            built=self._counts.get(Result.BUILT, 0),
            failing=sorted(known.failing),
            seconds=time.monotonic() - self._began,
        )
        if good:
            self._checks.passed()
        self._notify(good)

    def _tell_watching(self) -> None:
        """What is watched, when it is not what was told before."""
        known = self._knowledge
        counts = {
            "targets": len(known.names),
            "files": len(known.scope.files),
            "places": known.observer.places.count(),
            "folders": len(known.observer.places.folders),
            "polled": known.observer.polled,
        }
        if counts != self._watching:
            self._watching = counts
            self._tell("watching", **counts)

    def _notify(self, good: bool) -> None:
        built, failing = self._counts.get(Result.BUILT, 0), sorted(self._knowledge.failing)
        text = "error" if self._broken else f"failed: {', '.join(failing)}" if failing else f"{built} built"
        if not good and not failing and not self._broken:
            text = f"{built} built, but a step failed"
        problem = self._notifier.tell(f"freshproof: {text}")
        if problem:
            self._note(problem)

    def _note(self, text: str) -> None:
        self._tell("note", text=text)

    def _tell(self, event: str, **fields: Any) -> None:
        self.tell({"event": event, "at": time.time(), **fields})

    def _end_work(self) -> None:
        """End what is at work. A second interruption does not keep this from being done."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
        self._builder.cut()
        if self._step is not None:
            self._step.cut()
            self._step.wait(_END_SECONDS)
        self._builder.wait(_END_SECONDS)
