"""Fat binaries: device code for several architectures in one container, each entry raw or compressed.

A container is ``magic u32, version u16, header size u16, size u64``; a section holds any number of them,
aligned to 8 bytes. NVIDIA documents none of it; offsets and flags were measured with nvcc 13.0.88 and on
vendors' libraries.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import lz4.block
import zstandard

from orchestrator.objects.window import Allowance, Bytes, Malformed, part, printable, record

MAGIC = b"\x50\xed\x55\xba"
MAGIC_AND_VERSION = MAGIC + b"\x01\x00\x10\x00"
"""What a container begins with: specific enough to be looked for in data."""

_CONTAINER = struct.Struct("<IHHQ")
# kind, version, header size, payload size with padding, compressed size, offset of options, minor, major, SM,
# offset and length of the name, flags, a word only used with LTO-IR, size after decompression
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_OPTIONS = struct.Struct("<II")

_DEBUG, _LZ4, _ZSTD, _SCRAMBLED = 0x2, 0x2000, 0x8000, 0x10000
_SPECIFIC, _FAMILY = 0x100000, 0x200000
_LONGEST_OPTIONS = 1 << 20


class EntryKind(IntEnum):
    """What an entry holds. Others occur; they are passed on without being read."""

    PTX = 1
    CUBIN = 2
    LTO_IR = 8


_ARCH_PREFIXES: dict[int, str] = {EntryKind.CUBIN: "sm", EntryKind.LTO_IR: "lto"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. ``payload`` are the bytes as stored, which begin at byte ``offset`` of the section."""

    kind: int
    arch: str
    version: tuple[int, int]
    flags: int
    name: str
    options: str
    payload: memoryview = field(repr=False)
    offset: int
    size: int
    """After decompression, in bytes."""

    @property
    def compression(self) -> str:
        """``raw``, ``lz4`` or ``zstd``."""
        return "lz4" if self.flags & _LZ4 else "zstd" if self.flags & _ZSTD else "raw"

    @property
    def scrambled(self) -> bool:
        """Whether the payload is obfuscated, which nvcc does to LTO-IR; nothing in it can be read."""
        return bool(self.flags & _SCRAMBLED)

    @property
    def debug(self) -> bool:
        """Compiled with ``-G``."""
        return bool(self.flags & _DEBUG)


def read_entries(section: Bytes) -> Iterator[Entry]:
    """The entries of all containers in a section's bytes, in order; `Malformed` when one does not fit."""
    at = 0
    while True:
        at = _skip_zeros(section, at)
        if at >= len(section):
            return
        magic, version, header, size = record(_CONTAINER, section, at, "fatbin header")
        if magic.to_bytes(4, "little") != MAGIC:
            raise Malformed(f"expected a fatbin, found {magic:08x}", at)
        if version != 1 or header < _CONTAINER.size:
            raise Malformed(
                f"fatbin of version {version} with a header of {header} bytes is not known", at + 4
            )
        part(section, at, header + size, "fatbin")
        yield from _entries_of(section, at + header, at + header + size)
        at += header + size


def container_size(data: Bytes, offset: int) -> int:
    """Bytes of the container that begins at ``offset``; `Malformed` when it does not fit."""
    _magic, _version, header, size = record(_CONTAINER, data, offset, "fatbin header")
    return len(part(data, offset, header + size, "fatbin"))


def _skip_zeros(section: Bytes, at: int) -> int:
    """Linkers pad between containers; the next one begins at the next byte that is not zero."""
    while at < len(section) and section[at] == 0:
        at += 1
    return at


def _entries_of(section: Bytes, at: int, end: int) -> Iterator[Entry]:
    view = memoryview(section)[:end]
    while at + _ENTRY.size <= end:
        fields = record(_ENTRY, view, at, "fatbin entry")
        header, padded = fields[2], fields[3]
        if header < _ENTRY.size:
            raise Malformed(f"fatbin entry with a header of {header} bytes", at + 4)
        part(view, at, header + padded, "fatbin entry")
        yield _entry(view, at, fields)
        at += header + padded


def _entry(view: memoryview, at: int, fields: tuple[int, ...]) -> Entry:
    kind, _version, header, padded, packed, options, minor, major, sm, name, name_size, flags, _, plain = (
        fields
    )
    compressed = bool(flags & (_LZ4 | _ZSTD))
    stored = packed if compressed else padded
    if stored > padded:
        raise Malformed(f"{stored} compressed bytes in a payload of {padded}", at + 16)
    payload = part(view, at + header, stored, "payload of a fatbin entry")
    head = view[at : at + header]
    return Entry(
        kind=kind,
        arch=_arch(kind, sm, flags),
        version=(major, minor),
        flags=flags,
        name=printable(part(head, name, name_size, "name of a fatbin entry")).rstrip("\0"),
        options=_options(head, options) if options else "",
        payload=payload,
        offset=at + header,
        size=plain if compressed else stored,
    )


def _arch(kind: int, sm: int, flags: int) -> str:
    """``sm_NN`` for machine code, ``compute_NN`` or ``lto_NN`` for what is still to be compiled."""
    suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
    return f"{_ARCH_PREFIXES.get(kind, 'compute')}_{sm}{suffix}"


def _options(head: memoryview, at: int) -> str:
    """Options for the compiler that takes the entry up: ``offset u32, size u32`` and the text there."""
    start, size = record(_OPTIONS, head, at, "options of a fatbin entry")
    if size > _LONGEST_OPTIONS:
        raise Malformed(f"options of {size} bytes", at)
    raw = part(head, start, size, "options of a fatbin entry") if size else b""
    text = printable(raw).rstrip("\0").strip()
    return text if text.isprintable() else ""  # from sm_100 on, cubins have a binary block of attributes here


def unpack(entry: Entry, allowance: Allowance) -> Bytes:
    """The payload, decompressed; `Malformed` when it is damaged or claims more bytes than ``allowance``
    has.
    """
    if entry.compression == "raw":
        return entry.payload
    allowance.take(entry.size, entry.offset, "a compressed entry")
    try:
        plain = _unpack_lz4(entry) if entry.compression == "lz4" else _unpack_zstd(entry)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError, MemoryError, OverflowError) as fault:
        raise Malformed(f"{entry.compression} payload is damaged ({fault})", entry.offset) from None
    if len(plain) != entry.size:
        raise Malformed(f"payload unpacks to {len(plain)} bytes instead of {entry.size}", entry.offset)
    return plain


def _unpack_lz4(entry: Entry) -> bytes:
    plain: bytes = lz4.block.decompress(entry.payload, uncompressed_size=entry.size)
    return plain


def _unpack_zstd(entry: Entry) -> bytes:
    told = zstandard.frame_content_size(entry.payload)
    if told not in (-1, entry.size):  # the library would allocate what the frame says, not what we allow
        raise ValueError(f"its frame says {told} bytes")
    plain: bytes = zstandard.ZstdDecompressor().decompress(entry.payload, max_output_size=entry.size)
    return plain
