"""The stamp in an object that another build system made: a note that names the step by digest.

The section ``.note.freshproof`` holds notes of owner ``Freshproof`` (System V gABI, note section). Each has
``freshproof:``, 64 hex digits and NUL, as the stamps of our own artifacts do, then the names of the sources,
each ended by NUL. Linkers put the notes of the members that they take one behind the other, so that a program
tells what it was linked from. The section is no part of what is loaded.

It is added by appending: what the compiler wrote stays where it is, and until the header is written over, the
file is the object that it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.objects.elf import (
    EM_AARCH64,
    EM_X86_64,
    ET_REL,
    SHN_LORESERVE,
    SHT_NOTE,
    Elf,
    read_elf,
)
from orchestrator.objects.stamp import DIGITS, TEXT_PREFIX
from orchestrator.objects.window import Bytes, printable

SECTION = ".note.freshproof"
OWNER = b"Freshproof\0"
KIND = 0x4653
"""The note's type: the digest is that of a step of another build system."""

NO_OBJECT = "no relocatable object of host code"
_MOST_NAMES = 400
"""Bytes of names that a note holds at most."""
_HEADER_SIZE, _ENTRY_SIZE = 64, 64
_WHERE = struct.Struct("<Q")
_COUNTS = struct.Struct("<HH")
_AT_TABLE, _AT_COUNTS = 40, 60
_ENTRY = struct.Struct("<IIQQQQIIQQ")
_HEX = frozenset(b"0123456789abcdef")


class Unstampable(ValueError):
    """An object that cannot take a stamp; the text says why."""


@dataclass(frozen=True, slots=True)
class StepStamp:
    """One stamp, as it stands in a file."""

    digest: str
    """Of the step that made the object (``sha256:<hex>``)."""
    sources: tuple[str, ...]
    """Names of what was compiled, as the object has them: below the project, or without their folder."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What makes an object a stamped one: ``tail`` goes behind its end, then ``header`` over its begin."""

    header: bytes
    tail: bytes


def read_step_stamps(elf: Elf) -> tuple[StepStamp, ...]:
    """The stamps of steps in an ELF file, in its order, each once. What is no such note is passed over.

    Raises `orchestrator.objects.window.Malformed` where a note leads outside of its section.
    """
    found: dict[StepStamp, None] = {}
    for section in elf.sections:
        if section.type == SHT_NOTE and section.name == SECTION:
            for note in elf.notes(section):
                if note.owner == "Freshproof" and note.type == KIND:
                    found.update(dict.fromkeys(_stamps(bytes(note.body))))
    return tuple(found)


def _stamps(body: bytes) -> Iterator[StepStamp]:
    digits = body[len(TEXT_PREFIX) : len(TEXT_PREFIX) + DIGITS]
    if body.startswith(TEXT_PREFIX) and len(digits) == DIGITS and not set(digits) - _HEX:
        names = body[len(TEXT_PREFIX) + DIGITS + 1 :].split(b"\0")
        yield StepStamp(f"sha256:{digits.decode()}", tuple(printable(name) for name in names if name))


def note(digest: str, sources: Iterable[str]) -> bytes:
    """The note for a step; names that would make it long are left out."""
    body = TEXT_PREFIX + digest.removeprefix("sha256:").encode("ascii") + b"\0"
    room = len(body) + _MOST_NAMES
    for name in sources:
        raw = name.encode("utf-8", "surrogateescape") + b"\0"
        if len(body) + len(raw) <= room:
            body += raw
    return struct.pack("<III", len(OWNER), len(body), KIND) + _padded(OWNER, 4) + _padded(body, 4)


def addition(data: Bytes, noted: bytes) -> Addition:
    """What adds the note ``noted`` to a relocatable object of host code.

    Raises `Unstampable`, and `orchestrator.objects.window.Malformed` for what is no whole ELF file.
    """
    elf = read_elf(data)
    if elf.type != ET_REL or elf.machine not in (EM_X86_64, EM_AARCH64):
        raise Unstampable(NO_OBJECT)
    if elf.section(SECTION):
        raise Unstampable("it has a stamp already")
    count = len(elf.sections) + 1
    home = _COUNTS.unpack_from(elf.data, _AT_COUNTS)[1]
    if not home < count < SHN_LORESERVE:
        raise Unstampable(f"it has {count - 1:,} sections")
    names = bytes(elf.body(elf.sections[home]))
    entries = [bytearray(entry) for entry in _entries(elf)]

    at_note = len(data) + -len(data) % 8
    at_names = at_note + len(noted)
    names_now = names + SECTION.encode("ascii") + b"\0"
    at_table = at_names + len(names_now)
    at_table += -at_table % 8
    entries[home][24:40] = struct.pack("<QQ", at_names, len(names_now))
    entries.append(bytearray(_ENTRY.pack(len(names), SHT_NOTE, 0, 0, at_note, len(noted), 0, 0, 4, 0)))

    header = bytearray(elf.data[:_HEADER_SIZE])
    _WHERE.pack_into(header, _AT_TABLE, at_table)
    _COUNTS.pack_into(header, _AT_COUNTS, count, home)
    tail = _padded(bytes(at_note - len(data)) + noted + names_now, 8, at=len(data)) + b"".join(entries)
    return Addition(bytes(header), tail)


def stamped(data: bytes, noted: bytes) -> bytes:
    """The object with the note in it. Raises what `addition` does."""
    added = addition(data, noted)
    return added.header + data[_HEADER_SIZE:] + added.tail


def _entries(elf: Elf) -> Iterator[Bytes]:
    at = _WHERE.unpack_from(elf.data, _AT_TABLE)[0]
    for number in range(len(elf.sections)):
        yield elf.data[at + number * _ENTRY_SIZE : at + (number + 1) * _ENTRY_SIZE]


def _padded(data: bytes, to: int, *, at: int = 0) -> bytes:
    """The bytes with zeros behind them, so that what follows begins at a multiple of ``to``."""
    return data + bytes(-(at + len(data)) % to)
