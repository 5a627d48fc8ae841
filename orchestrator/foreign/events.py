"""The log that observe.c writes: a record for each program that started, and one for its end. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

_MAGIC = b"FPX1"
_HEAD = struct.Struct("<4sI")


@dataclass(frozen=True, slots=True)
class Event:
    """A program that started."""

    pid: int
    parent: int
    started_ns: int
    """By the clock that file systems stamp files with."""
    folder: str
    program: str
    """Full path, links resolved; of a script, its interpreter."""
    argv: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    ended_ns: int | None = None
    """`None` for a program that ended in a way that is not seen (a signal, ``_exit``)."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables written down."""
        return dict(self.settings)


class Torn(ValueError):
    """The log is not whole: something of the build was not seen."""


def read_events(data: bytes) -> tuple[Event, ...]:
    """All programs in the order in which they started. Raises `Torn`."""
    events: list[Event] = []
    running: dict[int, int] = {}
    at = 0
    while at < len(data):
        if len(data) - at < _HEAD.size:
            raise Torn(f"the observer's log ends within a record, at byte {at}")
        magic, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if magic != _MAGIC or size > len(data) - at:
            raise Torn(f"the observer's log is damaged at byte {at - _HEAD.size}")
        fields = data[at : at + size].split(b"\0")
        if len(fields) == 3:
            pid, ended = _numbers(fields[:2], at)
            if pid in running:
                events[running[pid]] = replace(events[running[pid]], ended_ns=ended)
        else:
            events.append(_event(fields, at))
            running[events[-1].pid] = len(events) - 1
        at += size
    return tuple(events)


def _numbers(fields: list[bytes], at: int) -> list[int]:
    try:
        return [int(field) for field in fields]
    except ValueError:
        raise Torn(f"the observer's log holds no whole record at byte {at}") from None


def _event(raw: list[bytes], at: int) -> Event:
    if len(raw) < 7 or raw[-1]:
        raise Torn(f"the observer's log holds no whole record at byte {at}")
    pid, parent, started, count = _numbers([*raw[:3], raw[5]], at)
    fields = [word.decode("utf-8", "surrogateescape") for word in raw[:-1]]
    if count < 0 or 6 + count > len(fields):
        raise Torn(f"the observer's log holds no whole record at byte {at}")
    settings = tuple((n, v) for n, found, v in (s.partition("=") for s in fields[6 + count :]) if found)
    return Event(pid, parent, started, fields[3], fields[4], tuple(fields[6 : 6 + count]), settings)
