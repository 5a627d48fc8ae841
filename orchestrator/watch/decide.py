"""What the watch does next. Pure: what happened in, orders out; it knows no clock, no file and no process.

**One thing at a time, and what changed last decides.** A change during a build cuts the build off, and what
it had still to do is owed again. Steps (verify, bench, the command) run only when nothing is owed and the
last build was good, and a change cuts them off too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.watch.scope import EVERYTHING, NOTHING, Due


class Doing(StrEnum):
    """What is at work now."""

    NOTHING = "nothing"
    BUILD = "build"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Build:
    """Order: bring these up to date. ``quiet``: only to make sure, and not those known to fail."""

    due: Due
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Order: run a step."""

    step: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Order: cut off what is at work; its end is still reported."""

    doing: Doing


@dataclass(frozen=True, slots=True)
class Settle:
    """Order: a round is over; say how it went."""

    good: bool


Order = Build | Run | Cut | Settle


@dataclass(frozen=True, slots=True)
class BuildEnd:
    """How a build ended."""

    good: bool
    """No target that is watched is known to be other than it should be."""
    made: bool = False
    """Something was built, here or by another build."""
    cut: bool = False
    broken: bool = False
    """It could not look at the targets at all, as with an error in targets.toml."""
    grew: bool = False
    """There are more places to watch than when it looked at them."""


@dataclass(slots=True)
class Decider:
    """The state of the watch between two happenings."""

    steps: Sequence[str] = ()
    """In the order in which they run."""
    doing: Doing = Doing.NOTHING
    owed: Due = NOTHING
    """To be looked at, and not by what is at work now."""
    cuts: int = 0
    """Builds cut off one after the other."""
    _building: Due = NOTHING
    _waiting: bool = False
    _cut: bool = False
    _unchecked: bool = True
    """Whether something is to go through the steps: at the start all is."""
    _left: list[str] = field(default_factory=list)

    def begin(self) -> list[Order]:
        """The first build, of everything."""
        return self._build(EVERYTHING)

    def changed(self, due: Due) -> list[Order]:
        """Contents changed that affect ``due``."""
        self.owed = self.owed | due
        if not self.owed:
            return []
        if self.doing is Doing.NOTHING:
            return self._build(self._take_owed())
        # A build that waits for the tree has looked at nothing yet; what is owed is looked at after it.
        if self._cut or (self.doing is Doing.BUILD and self._waiting):
            return []
        self._cut = True
        return [Cut(self.doing)]

    def doubted(self, due: Due) -> None:
        """Files that affect ``due`` were saved with the content that they are known to have.

        A build at work may have read another in between, so it is asked once more when it has ended.
        """
        if self.doing is Doing.BUILD:
            self.owed = self.owed | due

    def asked(self) -> list[Order]:
        """The user wants everything looked at again, the steps included; a build at work may end first."""
        self._unchecked = True
        if self.doing is Doing.BUILD:
            self.owed = self.owed | EVERYTHING
            return []
        return self.changed(EVERYTHING)

    def waiting(self, waits: bool) -> None:
        """The build waits for another one in the tree, or does so no longer."""
        self._waiting = waits

    def build_ended(self, end: BuildEnd) -> list[Order]:
        """The build at work has ended, by itself or because it was cut off."""
        was = self._building
        self.doing, self._building, self._waiting, self._cut = Doing.NOTHING, NOTHING, False, False
        self._unchecked = self._unchecked or end.made
        self.cuts = self.cuts + 1 if end.cut else 0
        if end.cut:
            self.owed = self.owed | was
        if self.owed:
            return self._build(self._take_owed())
        if end.broken:
            return [Settle(False)]
        if end.grew or not was.everything:
            # Only what changed was looked at, or places are watched that were not: make sure of the rest.
            return self._build(EVERYTHING, quiet=True)
        if not end.good:
            return [Settle(False)]
        self._left = list(self.steps) if self._unchecked else []
        return self._next_step()

    def step_ended(self, *, good: bool) -> list[Order]:
        """The step at work has ended; one that is not good ends the round."""
        was_cut, self.doing, self._cut = self._cut, Doing.NOTHING, False
        if self.owed:
            self._unchecked = self._unchecked or was_cut
            return self._build(self._take_owed())
        if not good:
            self._unchecked = False
            return [Settle(False)]
        return self._next_step()

    def _next_step(self) -> list[Order]:
        if not self._left:
            self._unchecked = False
            return [Settle(True)]
        self.doing = Doing.STEP
        return [Run(self._left.pop(0))]

    def _take_owed(self) -> Due:
        owed, self.owed = self.owed, NOTHING
        return owed

    def _build(self, due: Due, *, quiet: bool = False) -> list[Order]:
        self.doing, self._building = Doing.BUILD, due
        return [Build(due, quiet)]
