"""Static archives: GNU, BSD and thin (the formats of ``ar``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.objects.window import Bytes, Malformed, NameTable, part, printable

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER_SIZE = 60
_INDEXES = ("/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED")


@dataclass(frozen=True, slots=True)
class Member:
    """One member. In a thin archive ``data`` is ``None`` and ``name`` is a path relative to the archive."""

    name: str
    data: memoryview | None = field(repr=False)
    offset: int
    """Where the member's bytes begin in the archive; its header, if it is thin."""
    size: int


def is_archive(data: Bytes) -> bool:
    """Whether the bytes begin as an archive does."""
    return bytes(data[:8]) in (MAGIC, THIN_MAGIC)


def read_members(data: Bytes) -> Iterator[Member]:
    """The members but for symbol indexes, in order; `Malformed` when a header or a member does not fit."""
    thin = bytes(data[:8]) == THIN_MAGIC
    if not thin and bytes(data[:8]) != MAGIC:
        raise Malformed("not an archive: it does not begin with !<arch> or !<thin>", 0)
    names: NameTable | None = None
    at = 8
    while at < len(data):
        header = part(data, at, _HEADER_SIZE, "header of an archive member")
        if bytes(header[58:60]) != b"`\n":
            raise Malformed("the header of an archive member does not end in ` and a line feed", at + 58)
        size = _decimal(header[48:58], at + 48)
        name = printable(header[:16]).rstrip(" ")
        start = at + _HEADER_SIZE
        if name == "//":
            table = bytes(part(data, start, size, "table of long names"))
            names = NameTable(table.replace(b"\n", b"\0"), "the table of long names", start)
            at = _even(start + size)
        elif name in _INDEXES:
            part(data, start, size, "symbol index")
            at = _even(start + size)
        elif thin:
            yield Member(_gnu_name(name, names, at), None, at, size)
            at = start
        else:
            body = part(data, start, size, "archive member")
            if name.startswith("#1/"):
                yield from _bsd_member(name, body, start)
            else:
                yield Member(_gnu_name(name, names, at), body, start, size)
            at = _even(start + size)


def _even(offset: int) -> int:
    return offset + offset % 2


def _decimal(raw: memoryview, offset: int) -> int:
    text = bytes(raw).rstrip(b" ")
    if not text.isdigit():
        raise Malformed(f"size of an archive member is not a number: {printable(text)!r}", offset)
    return int(text)


def _gnu_name(name: str, names: NameTable | None, at: int) -> str:
    """``name/``, or ``/N``: byte N of the table of long names."""
    if name.startswith("/"):
        number = name[1:].partition(":")[0]
        if names is None or not number.isascii() or not number.isdigit():
            raise Malformed(f"an archive member is called {name!r}, without a table of long names", at)
        name = names[int(number)]
    return name.removesuffix("/")


def _bsd_member(name: str, body: memoryview, start: int) -> Iterator[Member]:
    """``#1/N``: the first N bytes of the member are its name."""
    length = name[3:]
    if not length.isascii() or not length.isdigit() or int(length) > len(body):
        raise Malformed(f"an archive member of {len(body)} bytes is called {name!r}", start - _HEADER_SIZE)
    size = int(length)
    long_name = printable(body[:size]).rstrip("\0")
    if long_name not in _INDEXES:
        yield Member(long_name, body[size:], start + size, len(body) - size)
