"""Is that text still in there? Searches every byte of a file, decompressed entries and PTX strings
included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.errors import ConfigurationError
from orchestrator.objects.contents import HOST_FORMS, Form, OpenMember, Piece, walk
from orchestrator.objects.elf import SHT_NOBITS, STT_CUDA_OBJECT, STT_OBJECT, Elf, Section, read_elf
from orchestrator.objects.ptx import ptx_strings
from orchestrator.objects.window import Bytes, printable

_EXCERPT = 32
_ELF_FORMS = HOST_FORMS | {Form.CUBIN}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where the text stands: in words, and as a byte of the innermost piece."""

    place: str
    offset: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class Search:
    """The hits, and the pieces that could not be looked into: without hits, only an empty ``sealed`` proves
    absence.

    ``more`` says that the search stopped at its limit.
    """

    hits: tuple[Hit, ...]
    sealed: tuple[str, ...]
    more: bool


def text_pattern(text: str) -> re.Pattern[bytes]:
    """What to search for: ``/REGEX/``, or any other text as it is.

    Raises `ConfigurationError` if REGEX is no regular expression.
    """
    if not (len(text) > 2 and text.startswith("/") and text.endswith("/")):
        return re.compile(re.escape(text.encode()))
    try:
        return re.compile(text[1:-1].encode(), re.DOTALL)
    except re.error as error:
        fault = f"{text} is no regular expression: {error}"
        raise ConfigurationError(fault, remedy="without the slashes a text is taken as it is") from None


def search(
    data: Bytes, pattern: re.Pattern[bytes], open_member: OpenMember | None = None, limit: int = 10_000
) -> Search:
    """Look for a pattern in all bytes of a file and in everything that is compressed in it.

    Raises `orchestrator.objects.window.Malformed` when the file cannot be read.
    """
    by_offset: dict[int, Hit] = {}  # bytes that lie in the file as they are belong to the innermost piece
    elsewhere: list[Hit] = []
    sealed: list[str] = []
    for piece in walk(data, open_member):
        if piece.sealed:
            sealed.append(f"{piece.place or 'the file'} ({piece.sealed})")
        with piece.located():
            for hit in _hits(piece, pattern):
                if piece.offset is None:
                    elsewhere.append(hit)
                else:
                    by_offset[piece.offset + hit.offset] = hit
                if len(by_offset) + len(elsewhere) >= limit:
                    return Search((*by_offset.values(), *elsewhere), tuple(sealed), True)
    return Search((*by_offset.values(), *elsewhere), tuple(sealed), False)


def _hits(piece: Piece, pattern: re.Pattern[bytes]) -> Iterator[Hit]:
    places: _Places | None = None
    for found in pattern.finditer(piece.data):
        if places is None and piece.form in _ELF_FORMS:
            places = _Places(read_elf(piece.data))
        inner = places.name(found.start()) if places else ""
        place = f"{piece.place} {inner}".strip() or "the file"
        yield Hit(place, found.start(), _excerpt(piece.data, found.start(), found.end()))
    if piece.form is Form.PTX:
        for name, text in ptx_strings(piece.data):
            for found in pattern.finditer(text):
                place = f"{piece.place} string {name}".strip()
                yield Hit(place, found.start(), _excerpt(text, found.start(), found.end()))


def _excerpt(data: Bytes, start: int, end: int) -> str:
    """The found bytes with the printable text around them."""
    end = min(end, start + 4 * _EXCERPT)
    before = bytes(data[max(start - _EXCERPT, 0) : start])
    after = bytes(data[end : end + _EXCERPT])
    head = re.search(rb"[ -~]*\Z", before)
    tail = re.match(rb"[ -~]*", after)
    assert head and tail
    return printable(head.group() + bytes(data[start:end]) + tail.group())


class _Places:
    """Names for bytes of an ELF file: the section, and in a cubin also the object or function there."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._symbols: dict[int, list[tuple[int, int, str]]] | None = None

    def name(self, offset: int) -> str:
        """``.nv.global.init, $str``; ``headers`` for bytes outside of all sections."""
        for section in self._elf.sections:
            if section.type != SHT_NOBITS and section.offset <= offset < section.offset + section.size:
                symbol = self._symbol(section, offset - section.offset)
                return f"{section.name}, {symbol}" if symbol else section.name
        return "headers"

    def _symbol(self, section: Section, inner: int) -> str:
        if self._symbols is None:
            self._symbols = {}
            for symbol in self._elf.symbols():
                if symbol.type in (STT_OBJECT, STT_CUDA_OBJECT) and symbol.size:
                    row = (symbol.value, symbol.value + symbol.size, symbol.name)
                    self._symbols.setdefault(symbol.section, []).append(row)
        for start, end, name in self._symbols.get(section.number, ()):
            if start <= inner + section.address < end:
                return name
        return ""
