"""When a burst of saves is over. Pure: notices with their times in, an answer out.

An editor's save is several events, and `git checkout` is hundreds. A burst is at rest when every file that
was opened for writing is closed again, every name that vanished had time to come back, and nothing else
happened for a moment. What rest leaves open, digests decide: a save that is only half seen here is seen
again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

QUIET_SECONDS = 0.03
"""After the last event of a single save."""
STORM_SECONDS = 0.12
"""After the last event when many files change at once."""
STORM_PLACES = 8
"""How many files make a storm."""
GONE_SECONDS = 0.3
"""How long a name may be away: editors move the old file aside before they write the new one."""
WRITING_SECONDS = 1.5
"""How long to wait for the end of a write of which nothing more is heard."""
HELD_SECONDS = 60.0
"""How long a burst may last because a file is still open for writing."""
HOLD_SECONDS = 0.25
"""After which it is looked again whether it still is."""
LONGEST_SECONDS = 5.0
"""After this time a burst counts as over, so that a file which is written all the time blocks nothing."""
PATIENT_SECONDS = 0.5
"""The longest that patience makes of either."""

Place = tuple[str, str]
"""A folder's real path and a name in it. An empty name stands for the folder itself."""
ANYWHERE: Place = ("", "")


class Sort(StrEnum):
    """What was noticed about a place."""

    WRITING = "writing"
    """Made, cut or written to; the end of the write is still to come."""
    WRITTEN = "written"
    """Whole: closed after a write, moved into place, or linked."""
    TOUCHED = "touched"
    """Owner, mode or time changed; says nothing about whether a write goes on."""
    GONE = "gone"
    LOST = "lost"
    """Notices were lost: anything may have changed."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One event about one place."""

    place: Place
    sort: Sort


@dataclass(slots=True)
class Gathering:
    """The notices of one burst. Times are seconds of any clock that only goes forward."""

    patience: int = 1
    """How many times longer than usual to wait: more while builds keep being cut off by new saves."""
    _latest: dict[Place, tuple[Sort, float]] = field(default_factory=dict)
    _first: float = 0.0
    _last: float = 0.0
    _held: float = 0.0

    def __bool__(self) -> bool:
        return bool(self._latest)

    def take(self, notice: Notice, now: float) -> None:
        """Add a notice."""
        if not self._latest:
            self._first = now
        before = self._latest.get(notice.place)
        sort = notice.sort
        if sort is Sort.TOUCHED:
            sort = before[0] if before else Sort.WRITTEN
        self._latest[notice.place] = sort, now
        self._last = now
        self._held = 0.0

    def unfinished(self) -> list[Place]:
        """Places of which a write was seen, and no end of it."""
        return [place for place, (sort, _since) in self._latest.items() if sort is Sort.WRITING]

    def hold(self, now: float) -> bool:
        """Let the burst last a little longer, since a file is open for writing; whether it may."""
        if now - self._first >= HELD_SECONDS:
            return False
        self._held = now + HOLD_SECONDS
        return True

    def rests_at(self) -> float | None:
        """When the burst is over if nothing more is heard; ``None`` while there is none."""
        if not self._latest:
            return None
        quiet = STORM_SECONDS if len(self._latest) >= STORM_PLACES else QUIET_SECONDS
        ends = [self._last + min(quiet * self.patience, max(quiet, PATIENT_SECONDS))]
        for sort, since in self._latest.values():
            if sort is Sort.WRITING:
                ends.append(since + WRITING_SECONDS)
            elif sort is Sort.GONE:
                ends.append(since + GONE_SECONDS)
        return max(min(max(ends), self._first + LONGEST_SECONDS), self._held)

    def release(self) -> dict[Place, Sort]:
        """The burst, which is over: places, each with what was noticed last."""
        found = {place: sort for place, (sort, _since) in self._latest.items()}
        self._latest.clear()
        self._held = 0.0
        return found
