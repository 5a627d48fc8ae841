"""The binary container of the snarkjs family: a table of typed sections.

    magic[4] | u32 version | u32 nSections | nSections x ( u32 type | u64 length | bytes )

All integers are little-endian, and sections come in any order. A reader learns the extent of every section
before it interprets any, and nothing is allocated whose size the file merely claims: the file is mapped,
and sections are views of the mapping.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.errors import ConfigurationError, Missing
from prover.output import write_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_HEADER = struct.Struct("<4sII")
_ENTRY = struct.Struct("<IQ")

REMAKE = "the file is damaged or was not made by snarkjs or circom: make it or fetch it again"


class MalformedFile(ConfigurationError):
    """A file that breaks its format. Names the file, the section and the byte."""

    def __init__(
        self, path: Path, what: str, *, offset: int | None = None, section: str = "", remedy: str = REMAKE
    ) -> None:
        place = "" if offset is None else f" byte {offset}:"
        place += f" section {section}:" if section else ""
        super().__init__(f"{path}:{place} {what}", remedy=remedy)
        self.path = path
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Section:
    """One section: where its bytes lie in the file, and the bytes."""

    path: Path
    label: str
    """Its type and meaning, such as ``5 (A points)``."""
    offset: int
    data: memoryview = field(repr=False)

    def fault(self, at: int, what: str, *, remedy: str = REMAKE) -> MalformedFile:
        """An error about the byte ``at`` of this section."""
        return MalformedFile(self.path, what, offset=self.offset + at, section=self.label, remedy=remedy)

    def array(self, count: int, width: int, *, start: int = 0) -> NDArray[np.uint8]:
        """The rest of the section from ``start`` as a read-only view of shape (count, width).

        Raises `MalformedFile` unless it is exactly that long.
        """
        have = len(self.data) - start
        if have != count * width:
            raise self.fault(
                0, f"holds {have} bytes; the header promises {count} items of {width}, {count * width} bytes"
            )
        return np.frombuffer(self.data, np.uint8, offset=start).reshape(count, width)


@dataclass(frozen=True, slots=True)
class Container:
    """An opened container: its sections by type, over one read-only mapping of the file."""

    path: Path
    data: memoryview = field(repr=False)
    sections: Mapping[int, Section]

    def section(self, kind: int) -> Section:
        """A section that must be there."""
        return self.sections[kind]

    def digest(self) -> str:
        """``sha256:<hex>`` of the whole file, as mapped."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def open_container(
    path: Path, magic: bytes, version: int, kinds: Mapping[int, str], required: frozenset[int]
) -> Container:
    """Map a file and read its table of sections.

    ``kinds`` names every section type that the format knows; ``required`` are those that must be there.
    Raises `Missing` when there is no such file and `MalformedFile` for a wrong magic or version, an unknown,
    repeated or missing section, a section that ends past the end of the file, and bytes after the last one.
    """
    data = _map(path)
    if len(data) < _HEADER.size:
        raise MalformedFile(path, f"is {len(data)} bytes long, too short for a header", offset=0)
    found_magic, found_version, count = _HEADER.unpack_from(data)
    if found_magic != magic:
        raise MalformedFile(
            path,
            f"starts with {found_magic!r}, not {magic!r}",
            offset=0,
            remedy=f"give a .{magic.decode()} file",
        )
    if found_version != version:
        raise MalformedFile(path, f"has format version {found_version}; version {version} is known", offset=4)
    sections = _table(path, data, count, kinds)
    for kind in sorted(required - sections.keys()):
        raise MalformedFile(path, f"has no section {kind} ({kinds[kind]})", offset=8)
    return Container(path, data, sections)


def _table(path: Path, data: memoryview, count: int, kinds: Mapping[int, str]) -> dict[int, Section]:
    sections: dict[int, Section] = {}
    position = _HEADER.size
    for index in range(count):  # ends early: each turn needs 12 bytes and a type not seen before
        if len(data) - position < _ENTRY.size:
            raise MalformedFile(
                path, f"ends before section {index + 1} of the {count} that it promises", offset=position
            )
        kind, length = _ENTRY.unpack_from(data, position)
        if kind not in kinds:
            raise MalformedFile(path, f"section type {kind} is not known", offset=position)
        label = f"{kind} ({kinds[kind]})"
        if kind in sections:
            raise MalformedFile(path, f"section {label} appears twice", offset=position)
        start = position + _ENTRY.size
        if length > len(data) - start:
            raise MalformedFile(
                path,
                f"section {label} claims {length} bytes; only {len(data) - start} are left in the file",
                offset=position + 4,
            )
        sections[kind] = Section(path, label, start, data[start : start + length])
        position = start + length
    if position != len(data):
        raise MalformedFile(path, f"{len(data) - position} bytes follow the last section", offset=position)
    return sections


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of a file, which tell its format. Raises as `open_container` for what is no file."""
    descriptor, _ = _open_file(path)
    try:
        return os.pread(descriptor, count, 0)
    except OSError as error:
        raise _unreadable(path, "read", error) from None
    finally:
        os.close(descriptor)


def _map(path: Path) -> memoryview:
    descriptor, size = _open_file(path)
    try:
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    except OSError as error:
        if error.errno == errno.ENOMEM:
            what = f"{path}: {size / 1e9:.2f} GB of addresses are needed to map it, and are not to be had"
            raise Missing(what, remedy="raise the limit (ulimit -v)") from None
        raise _unreadable(path, "mapped", error) from None
    finally:
        os.close(descriptor)


def _open_file(path: Path) -> tuple[int, int]:
    """A descriptor of a regular file, and its size; never waits, as opening a pipe does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise Missing(f"{path}: no such file", remedy="check the path") from None
    except OSError as error:
        raise _unreadable(path, "opened", error) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ConfigurationError(f"{path}: is not a regular file", remedy="give the path of a file")
    return descriptor, status.st_size


def _unreadable(path: Path, what: str, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{path}: cannot be {what}: {error.strerror}", remedy="check the path and its permissions"
    )


class Cursor:
    """Reads the fields of a section in order; never past its end."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.position = 0

    def take(self, length: int, what: str) -> memoryview:
        """The next ``length`` bytes."""
        left = len(self.section.data) - self.position
        if length > left:
            raise self.section.fault(self.position, f"{what} needs {length} bytes; {left} are left")
        start, self.position = self.position, self.position + length
        return self.section.data[start : self.position]

    def u32(self, what: str) -> int:
        """The next 4 bytes as an integer."""
        return int.from_bytes(self.take(4, what), "little")

    def u64(self, what: str) -> int:
        """The next 8 bytes as an integer."""
        return int.from_bytes(self.take(8, what), "little")

    def integer(self, length: int, what: str) -> int:
        """The next ``length`` bytes as an integer."""
        return int.from_bytes(self.take(length, what), "little")

    def end(self) -> None:
        """Refuse bytes after the last field."""
        left = len(self.section.data) - self.position
        if left:
            raise self.section.fault(self.position, f"{left} bytes follow the last field")


SLICE = 1 << 18
"""Rows that one thread checks at a time."""


def first_in_slices(n: int, first_in: Callable[[int, int], int | None]) -> int | None:
    """The least index that ``first_in(start, end)`` finds in slices of 0 .. n - 1, on all processors."""
    starts = range(0, n, SLICE)
    if len(starts) <= 1:
        return first_in(0, n) if n else None
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda start: first_in(start, min(n, start + SLICE)), starts)
        return next((index for index in found if index is not None), None)


def first_not_below(values: NDArray[np.uint8], modulus: int) -> int | None:
    """The index of the first row of ``values`` that is not below ``modulus``, or ``None``.

    Shape (n, width), width a multiple of 8 and the byte length of the modulus. Only rows whose top 64 bits
    reach those of the modulus are compared in full: with values spread over the field that is none.
    """
    if not len(values):
        return None
    width = values.shape[1]
    top_of_modulus = np.uint64(modulus >> (8 * (width - 8)))
    tops = values.view("<u8")[:, -1]

    def first_in(start: int, end: int) -> int | None:
        for index in start + np.flatnonzero(tops[start:end] >= top_of_modulus):
            if int.from_bytes(values[index].tobytes(), "little") >= modulus:
                return int(index)
        return None

    return first_in_slices(len(values), first_in)


def write_container(
    path: Path, magic: bytes, version: int, sections: Mapping[int, Sequence[bytes | memoryview]]
) -> None:
    """Write a file with these sections, in this order; each in parts.

    Raises `OSError`, which names the file; within `prover.output.all_or_none` the file appears whole.
    """

    def parts() -> Iterator[bytes | memoryview]:
        yield _HEADER.pack(magic, version, len(sections))
        for kind, section in sections.items():
            yield _ENTRY.pack(kind, sum(len(part) for part in section))
            yield from section

    write_parts(path, parts())
