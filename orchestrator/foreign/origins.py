"""Where the code in a file comes from, as its stamps say: words for people, by which nothing is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from orchestrator.digests import Digests, Unreadable
from orchestrator.errors import ConfigurationError
from orchestrator.foreign.stamps import Stamped
from orchestrator.foreign.store import Damaged, Store, find_store
from orchestrator.model import Digest
from orchestrator.object_files import member_opener, open_object
from orchestrator.objects.contents import HOST_FORMS, walk
from orchestrator.objects.elf import read_elf
from orchestrator.objects.step_stamp import StepStamp, read_step_stamps
from orchestrator.objects.window import Malformed

_FEW = 4
"""So many stamps, and so many changed files, are named."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The recorded compile or device link that a stamp names."""

    step: Stamped
    """The latest, where equal steps ran."""
    paths: tuple[str, ...]
    """Where equal steps wrote, the latest first."""
    changed: tuple[str, ...] | None
    """What of all that it read is not as it was; `None` if the record does not hold that any more."""


@dataclass(slots=True)
class Origins:
    """The stamps that one project's records hold."""

    store: Store
    _given: dict[Digest, list[Stamped]] = field(default_factory=dict)
    _found: dict[Digest, Origin] = field(default_factory=dict)
    _digests: Digests = field(default_factory=lambda: Digests(Path("/")))

    def __post_init__(self) -> None:
        for one in reversed(self.store.read_stamps().given):
            self._given.setdefault(one.stamp, []).append(one)

    def of(self, stamp: Digest) -> Origin | None:
        """The step behind a stamp; `None` if it is not recorded here."""
        if stamp not in self._given:
            return None
        if stamp not in self._found:
            latest = max(self._given[stamp], key=lambda one: one.made_ns)
            paths = dict.fromkeys((latest.path, *(one.path for one in self._given[stamp])))
            self._found[stamp] = Origin(latest, tuple(paths), self._changed(latest))
        return self._found[stamp]

    def words(self, stamp: StepStamp) -> str:
        """What is known of a stamp, such as ``made 2026-12-01 10:20:30 as out/kernel.o``."""
        origin = self.of(stamp.digest)
        if origin is None:
            return "of no step recorded here"
        when = datetime.fromtimestamp(origin.step.made_ns / 1e9).strftime("%Y-%m-%d %H:%M:%S")
        made = f"made {when} as {self._names(origin.paths)}"
        return f"{made}; changed since: {self._names(origin.changed)}" if origin.changed else made

    def _names(self, paths: Sequence[str]) -> str:
        more = f" and {len(paths) - _FEW} more" if len(paths) > _FEW else ""
        return ", ".join(map(self.shown, paths[:_FEW])) + more

    def shown(self, path: str) -> str:
        """A path relative to the project where it lies in it."""
        return path.removeprefix(f"{self.store.root}/")

    def sentence(self, path: str, member: str = "") -> str:
        """What the stamps in a file, or in one member of an archive, say of it; empty without stamps."""
        stamps = list(dict.fromkeys(s for place, s in stamps_in(path) if place.startswith(member)))
        told = [f"{', '.join(s.sources)} ({self.words(s)})" for s in stamps[:_FEW]]
        more = [f"{len(stamps) - _FEW} more"] if len(stamps) > _FEW else []
        return f"by its stamps {self.shown(path)}{member} holds {', '.join([*told, *more])}" if stamps else ""

    def _changed(self, step: Stamped) -> tuple[str, ...] | None:
        try:
            closure = self.store.read_manifest(step.manifest).closure if step.manifest else None
        except Damaged:
            closure = None
        if closure is None:
            return None
        materials = (*closure.materials, *closure.common.materials)
        self._digests.load(m.path for m in materials)
        return tuple(m.path for m in materials if self._now(m.path) != m.digest)

    def _now(self, path: str) -> Digest | None:
        try:
            return self._digests.get(path)
        except Unreadable:
            return None


def find_origins(path: Path) -> Origins | None:
    """The records of the project that a file lies in, else of the one here; `None` if neither has any."""
    for start in (path.parent, Path()):
        store = find_store(start)
        if store is not None:
            return Origins(store)
    return None


def stamps_in(path: str) -> Iterable[tuple[str, StepStamp]]:
    """The stamps of steps in a file that holds code, with the place of each; none if it cannot be read."""
    try:
        return tuple(_stamps_in(Path(path)))
    except (Malformed, ConfigurationError):
        return ()


def _stamps_in(path: Path) -> Iterator[tuple[str, StepStamp]]:
    for piece in walk(open_object(path), member_opener(path)):
        if piece.form in HOST_FORMS:
            yield from ((piece.place, stamp) for stamp in read_step_stamps(read_elf(piece.data)))
