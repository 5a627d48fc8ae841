"""The log that observe.c writes: a record for each program that started, and one for its end. Pure."""

from __future__ import annotations

import posixpath
import struct
from dataclasses import dataclass, replace

from orchestrator.foreign.word_files import in_place

_MAGIC = b"FPX1"
_HEAD = struct.Struct("<4sI")


@dataclass(frozen=True, slots=True)
class Event:
    """A program that started."""

    pid: int
    parent: int
    started_ns: int
    """Files that were written before have earlier times, however coarse the clock that stamps them is."""
    folder: str
    program: str
    """Full path, links resolved; of a script, its interpreter."""
    argv: tuple[str, ...]
    """With the words of files of further words (``@file``, ``--options-file``) in their place."""
    settings: tuple[tuple[str, str], ...]
    ended_ns: int | None = None
    """`None` for a program that did not end by itself: killed, or another took its place."""
    code: int | None = None
    """Exit code; `None` if it is not known."""
    read: tuple[str, ...] | None = None
    """What it read, where the observer had it write that down; as it has the names."""
    opened: tuple[str, ...] = ()
    """What it opened or asked about, of a build script of cargo; full paths."""

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
        if len(fields) in (3, 4):
            pid, ended, *code = _numbers(fields[:-1], at)
            if pid in running:
                number = running[pid]
                events[number] = replace(events[number], ended_ns=ended, code=code[0] if code else None)
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
    pairs = [(n, v) for n, found, v in (s.partition("=") for s in fields[6 + count :]) if found]
    texts = {int(n[1:]): v for n, v in pairs if n[:1] == "@" and n[1:].isdigit()}
    settings = tuple((n, v) for n, v in pairs if n[:1] != "@")
    argv = in_place(posixpath.basename(fields[4]), fields[6 : 6 + count], texts)
    return Event(pid, parent, started, fields[3], fields[4], argv, settings)
