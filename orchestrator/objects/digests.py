"""Digests of a whole file, from the strictest to the most forgiving.

- *file*: every byte. Decides.
- *normalised*: host and device code without noise: temporary names of nvcc (``tmpxft_<pid>``), the order and
  packing of string tables, debug information of host code, the build id, stamps of steps, member times of
  archives. Decides for objects, archives and programs, whose bytes differ from run to run.
- *unstamped*: every byte, with the placeholder in the place of stamps that stand in the file as they are.
- *device*: machine code with the data it refers to, PTX and LTO-IR, in no order; no debug information,
  compiler notes or stamps. Explains.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator

from orchestrator.objects.code import read_code, stable_name
from orchestrator.objects.contents import FATBIN_SECTIONS, HOST_FORMS, Form, OpenMember, walk
from orchestrator.objects.cubin import Cubin, read_cubin
from orchestrator.objects.elf import SHT_NOBITS, SHT_SYMTAB, Elf, read_elf
from orchestrator.objects.ptx import without_comments
from orchestrator.objects.stamp import PLACEHOLDER, SYMBOL_PREFIX, read_stamps
from orchestrator.objects.step_stamp import SECTION
from orchestrator.objects.window import Bytes

_NOISE = re.compile(rb"tmpxft_[0-9a-f]{8}_[0-9a-f]{8}")
_QUIET = b"tmpxft_" + b"0" * 8 + b"_" + b"0" * 8
_PTX_DEBUG = re.compile(rb"^\s*\.(?:loc|file)\s[^\n]*\n|^\s*\.section[^{]*\{[^}]*\}", re.MULTILINE)
_PTX_STAMP = re.compile(rb"^[^\n]*\b" + SYMBOL_PREFIX.encode() + rb"[^\n]*\n", re.MULTILINE)

_NOT_CODE = (
    ".strtab", ".shstrtab", ".note.gnu.build-id", SECTION, ".debug", ".rela.debug", ".zdebug", ".gnu_debug",
)  # fmt: skip


def file_digest(data: Bytes) -> str:
    """``sha256:<hex>`` of all bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def unstamped_digest(data: Bytes) -> str:
    """Digest of the bytes as they were compiled, before the stamps were written."""
    return file_digest(unstamped(data))


def unstamped(data: Bytes) -> Bytes:
    """The bytes with the placeholder in the place of every stamp that stands in the file as it is."""
    offsets = set(_stamp_offsets(data))
    if not offsets:
        return data
    changed = bytearray(data)
    for offset in offsets:
        changed[offset : offset + len(PLACEHOLDER)] = PLACEHOLDER.encode()
    return bytes(changed)


def _stamp_offsets(data: Bytes) -> Iterator[int]:
    for piece in walk(data):
        if piece.offset is not None and (piece.form is Form.CUBIN or piece.form in HOST_FORMS):
            with piece.located():
                for stamp in read_stamps(read_elf(piece.data)):
                    yield piece.offset + stamp.offset


class _Parts:
    """A digest of a list of parts: each is preceded by its length."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()

    def add(self, *parts: Bytes | str) -> None:
        for part in parts:
            raw = part.encode() if isinstance(part, str) else part
            self._state.update(struct.pack("<Q", len(raw)))
            self._state.update(raw)

    def digest(self) -> str:
        return f"sha256:{self._state.hexdigest()}"


def normalised_digest(data: Bytes, open_member: OpenMember | None = None) -> str:
    """Digest of host and device code without what differs from run to run of one compile."""
    parts = _Parts()
    for piece in walk(data, open_member):
        parts.add(
            str(piece.form), piece.place, piece.arch or "", piece.compression, piece.options, piece.sealed
        )
        if piece.form in HOST_FORMS:
            with piece.located():
                _add_host(parts, read_elf(piece.data))
        elif piece.form not in (Form.FATBIN, Form.ARCHIVE):
            parts.add(_NOISE.sub(_QUIET, piece.data))
    return parts.digest()


def _add_host(parts: _Parts, elf: Elf) -> None:
    parts.add(struct.pack("<HHI", elf.type, elf.machine, elf.flags))
    for name, digest in host_sections(elf):
        parts.add(name, digest)


def host_sections(elf: Elf) -> Iterator[tuple[str, str]]:
    """Name and digest of each section of host code, in order, without noise.

    Relocations name symbols by number, and the order of symbols does not change from run to run.
    """
    for section in elf.sections:
        if section.name.startswith(_NOT_CODE):
            continue
        parts = _Parts()
        parts.add(struct.pack("<QQQ", section.type, section.flags, section.address))
        if section.type == SHT_SYMTAB:
            _add_symbols(parts, elf)
        elif section.type == SHT_NOBITS:
            parts.add(struct.pack("<Q", section.size))
        elif section.name not in FATBIN_SECTIONS:  # their entries are pieces of their own
            parts.add(_NOISE.sub(_QUIET, elf.body(section)))
        yield section.name, parts.digest()


def _add_symbols(parts: _Parts, elf: Elf) -> None:
    for symbol in elf.symbols():
        kind = symbol.type | symbol.binding << 4
        parts.add(_NOISE.sub(_QUIET, symbol.name.encode("utf-8", "surrogatepass")))
        parts.add(struct.pack("<QQIII", symbol.value, symbol.size, kind, symbol.other, symbol.section))


def device_digest(data: Bytes, open_member: OpenMember | None = None) -> str | None:
    """Digest of the device code, ``None`` when there is none. Equal code on equal architectures gives equal
    digests.
    """
    contents = sorted(_device_parts(data, open_member))
    if not contents:
        return None
    parts = _Parts()
    for content in contents:
        parts.add(*content)
    return parts.digest()


def _device_parts(data: Bytes, open_member: OpenMember | None) -> Iterator[tuple[str, ...]]:
    for piece in walk(data, open_member):
        with piece.located():
            if piece.form is Form.CUBIN:
                yield from _code_parts(read_cubin(piece.data, piece.arch))
            elif piece.form is Form.PTX:
                yield ("ptx", piece.arch or "", _hex(ptx_code(piece.data)))
            elif piece.form is Form.LTO_IR:
                yield ("lto-ir", piece.arch or "", piece.options, _hex(piece.data))


def _code_parts(cubin: Cubin) -> Iterator[tuple[str, ...]]:
    kind = "relocatable" if cubin.relocatable else "linked"
    code = read_code(cubin)
    yield ("data", cubin.arch, kind, code.data)
    for name, digest in code.functions.items():
        yield ("code", cubin.arch, kind, stable_name(name), digest.whole)


def ptx_code(data: Bytes) -> bytes:
    """PTX text without comments, places in sources, debug sections and stamps."""
    return _PTX_STAMP.sub(b"", _PTX_DEBUG.sub(b"", without_comments(data)))


def _hex(data: Bytes) -> str:
    return hashlib.sha256(data).hexdigest()
