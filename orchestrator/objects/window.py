"""Reading foreign bytes without trusting them: every length is checked before anything is sliced.

All readers of this package are pure functions over bytes. What they cannot read ends in `Malformed`, which
names the byte; only the shell knows the file and adds it with `Malformed.inside`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.errors import ConfigurationError

Bytes = bytes | memoryview
"""What readers take. Slices of a memoryview share its memory, so nothing of a large file is copied."""

LONGEST_NAME = 1 << 16
"""Longest symbol or section name that is read, in bytes. The longest one seen in a vendor's library has 5
KiB.
"""


class Malformed(ConfigurationError):
    """Bytes that are not what their header says. ``offset`` counts from the start of the innermost
    container.
    """

    def __init__(self, fault: str, offset: int, places: tuple[str, ...] = ()) -> None:
        self.fault = fault
        self.offset = offset
        self.places = places
        where = "".join(f"{place}: " for place in places)
        super().__init__(
            f"{where}{fault} (byte 0x{offset:x})",
            remedy="the file is damaged, or of a kind this version cannot read; build or copy it again",
        )

    def inside(self, place: str, shift: int = 0) -> Malformed:
        """The same fault, seen from the container ``place``; ``shift`` is where the part begins in it."""
        return Malformed(self.fault, self.offset + shift, (place, *self.places))


@contextmanager
def inside(place: str, shift: int = 0) -> Iterator[None]:
    """Faults raised in the block say that they lie in ``place``."""
    try:
        yield
    except Malformed as fault:
        raise fault.inside(place, shift) from None


def part(data: Bytes, offset: int, size: int, what: str) -> memoryview:
    """``size`` bytes from ``offset``; `Malformed` when they do not all lie inside ``data``."""
    if offset < 0 or size < 0 or offset + size > len(data):
        raise Malformed(f"{what} of {size} bytes does not fit into {len(data)} bytes", max(offset, 0))
    return memoryview(data)[offset : offset + size]


def record(layout: struct.Struct, data: Bytes, offset: int, what: str) -> tuple[Any, ...]:
    """The fields of one fixed-size record; `Malformed` when it does not lie inside ``data``."""
    if offset < 0 or offset + layout.size > len(data):
        raise Malformed(f"{what} of {layout.size} bytes does not fit into {len(data)} bytes", max(offset, 0))
    return layout.unpack_from(data, offset)


def printable(raw: Bytes) -> str:
    """Bytes of a name as text. Names are UTF-8 where they are text at all; other bytes become escapes."""
    return str(raw, "utf-8", "backslashreplace")


class NameTable:
    """A string table: NUL-terminated names at offsets.

    Names may share tails, so a hostile table can stand for far more text than it has bytes: the names read
    from one table may add up to 16 times its size (real ones stay below 3) and not more.
    """

    def __init__(self, table: Bytes, what: str, offset: int = 0) -> None:
        self._table = bytes(table)
        self._what = what
        self._offset = offset
        self._budget = 16 * len(self._table) + LONGEST_NAME
        self._known: dict[int, str] = {}

    def __getitem__(self, position: int) -> str:
        name = self._known.get(position)
        if name is None:
            name = self._known[position] = self._read(position)
        return name

    def _read(self, position: int) -> str:
        if position == 0 and not self._table:
            return ""
        if position >= len(self._table):
            raise Malformed(f"name {position} lies outside {self._what}", self._offset)
        end = self._table.find(b"\0", position, position + LONGEST_NAME)
        if end < 0:
            raise Malformed(f"endless name in {self._what}", self._offset + position)
        self._budget -= end - position
        if self._budget < 0:
            raise Malformed(f"the names of {self._what} overlap without end", self._offset + position)
        return printable(self._table[position:end])


class Allowance:
    """How many more bytes a file may unfold to, over all its compressed or referred-to parts.

    Real CUDA libraries unfold to less than 20 times their size; a file may reach 64 times, and any file 64
    MiB.
    """

    RATIO = 64
    FLOOR = 1 << 26

    def __init__(self, size: int) -> None:
        self._left = self.RATIO * size + self.FLOOR

    def take(self, count: int, offset: int, what: str) -> None:
        """Grant ``count`` bytes, or raise `Malformed`."""
        if count > self._left:
            raise Malformed(f"{what} would unfold to {count} bytes: more than such a file may hold", offset)
        self._left -= count
