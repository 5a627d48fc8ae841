"""Is that text still in there? Searches every byte of a file, decompressed entries and PTX strings
included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from orchestrator.errors import ConfigurationError
from orchestrator.objects.contents import HOST_FORMS, Form, OpenMember, Piece, walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.demangle import demangle
from orchestrator.objects.elf import (
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_SYMTAB,
    STT_CUDA_OBJECT,
    STT_OBJECT,
    Elf,
    Section,
    read_elf,
)
from orchestrator.objects.ptx import ptx_strings, read_ptx
from orchestrator.objects.window import Bytes, printable

Pattern = regex.Pattern[bytes]

_EXCERPT = 32
_SECONDS, _BYTES_A_SECOND = 10, 10_000_000
"""How long one part may be searched: expressions such as ``(a+)+b`` could take for ever."""
_ELF_FORMS = HOST_FORMS | {Form.CUBIN}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where the text stands: in words, and as a byte of the innermost piece.

    ``within`` names what the offset counts from, where that is not the file itself.
    """

    place: str
    offset: int
    excerpt: str
    within: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """The hits, and the pieces that could not be looked into: without hits, only an empty ``sealed`` proves
    absence.

    ``more`` says that the search stopped at its limit.
    """

    hits: tuple[Hit, ...]
    sealed: tuple[str, ...]
    more: bool


def text_pattern(text: str) -> Pattern:
    """What to search for: ``/REGEX/``, or any other text as it is.

    Raises `ConfigurationError` if REGEX is no regular expression, or if the text or what REGEX finds is
    empty: nothing stands everywhere.
    """
    raw = text.encode(errors="surrogateescape")
    if not (len(text) > 1 and text.startswith("/") and text.endswith("/")):
        pattern = regex.compile(regex.escape(raw))
    else:
        try:
            pattern = regex.compile(raw[1:-1], regex.DOTALL)
        except regex.error as error:
            fault = f"{text} is no regular expression: {error}"
            raise ConfigurationError(fault, remedy="without the slashes a text is taken as it is") from None
    if pattern.search(b"", timeout=_SECONDS):
        raise _finds_nothing(text)
    return pattern


def _finds_nothing(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text!r} finds the empty text, which stands everywhere", remedy="name one character at least"
    )


def search(
    data: Bytes, pattern: Pattern, open_member: OpenMember | None = None, limit: int = 10_000
) -> Search:
    """Look for a pattern in all bytes of a file and in everything that is compressed in it.

    Raises `orchestrator.objects.window.Malformed` when the file is damaged, wherever that is: nobody can say
    that a text is not in it. Raises `ConfigurationError` when an expression takes too long.
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


def _hits(piece: Piece, pattern: Pattern) -> Iterator[Hit]:
    names = _names(piece)
    places: _Places | None = None
    within = piece.place and "that part"
    for start, end in _found(pattern, piece.data):
        if places is None and piece.form in _ELF_FORMS:
            places = _Places(read_elf(piece.data))
        inner = places.name(start) if places else _WHOLE
        place = f"{piece.place} {inner.name}".strip() or "the file"
        yield Hit(place, start, _excerpt(piece.data, start, end, inner), within)
    if piece.form is Form.PTX:
        for name, text in ptx_strings(piece.data):
            for start, end in _found(pattern, text):
                place = f"{piece.place} string {name}".strip()
                yield Hit(place, start, _excerpt(text, start, end, _WHOLE), "the string")
    for name in names:
        yield from _spelled(piece, name, pattern)


def _names(piece: Piece) -> tuple[str, ...]:
    """Mangled names of a piece's symbols, each once.

    The piece is read as `inspect` does, so that a damaged one is noticed even where the text is not in it.
    """
    if piece.sealed:
        return ()
    if piece.form is Form.CUBIN:
        found = [symbol.name for symbol in read_cubin(piece.data, piece.arch).symbols]
    elif piece.form is Form.PTX:
        found = [entry.name for entry in read_ptx(piece.data).entries]
    elif piece.form in HOST_FORMS:
        elf = read_elf(piece.data)
        found = [symbol.name for table in (SHT_SYMTAB, SHT_DYNSYM) for symbol in elf.symbols(table)]
    else:
        found = []
    return tuple(dict.fromkeys(name for name in found if name.startswith("_Z")))


def _spelled(piece: Piece, name: str, pattern: Pattern) -> Iterator[Hit]:
    """A hit in a name as the source spells it, unless the mangled one in the bytes is a hit itself."""
    text = demangle(name)
    if text != name and pattern.search(text.encode(), timeout=_SECONDS):
        raw = name.encode()
        if not pattern.search(raw, timeout=_SECONDS):
            there = re.search(re.escape(raw), piece.data)
            at = there.start() if there else 0
            yield Hit(f"{piece.place} name {name}".strip(), at, text, piece.place and "that part")


def _found(pattern: Pattern, data: Bytes) -> Iterator[tuple[int, int]]:
    seconds = _SECONDS + len(data) / _BYTES_A_SECOND
    try:
        for found in pattern.finditer(data, timeout=seconds):
            if found.end() == found.start():
                raise _finds_nothing(printable(pattern.pattern))
            yield found.span()
    except TimeoutError:
        raise ConfigurationError(
            f"/{printable(pattern.pattern)}/ took more than {seconds:.0f} s on {len(data):,} bytes",
            remedy="repeat no part that itself repeats, as in (a+)+",
        ) from None


@dataclass(frozen=True, slots=True)
class _Place:
    """A named stretch of a piece, up to whose borders neighbouring text is shown."""

    name: str
    start: int
    end: int | None


_WHOLE = _Place("", 0, None)


def _excerpt(data: Bytes, start: int, end: int, place: _Place) -> str:
    """The found bytes with the printable text around them."""
    end = min(end, start + 4 * _EXCERPT)
    border = len(data) if place.end is None else max(place.end, end)
    before = bytes(data[max(start - _EXCERPT, min(place.start, start)) : start])
    after = bytes(data[end : min(end + _EXCERPT, border)])
    head = re.search(rb"[ -~]*\Z", before)
    tail = re.match(rb"[ -~]*", after)
    assert head and tail
    return printable(head.group() + bytes(data[start:end]) + tail.group())


class _Places:
    """Names for bytes of an ELF file: the section, and in a cubin also the object or function there."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._symbols: dict[int, list[tuple[int, int, str]]] | None = None

    def name(self, offset: int) -> _Place:
        """``.nv.global.init, $str``; ``headers`` for bytes outside of all sections."""
        for section in self._elf.sections:
            if section.type != SHT_NOBITS and section.offset <= offset < section.offset + section.size:
                return self._symbol(section, offset - section.offset)
        return _Place("headers", 0, None)

    def _symbol(self, section: Section, inner: int) -> _Place:
        if self._symbols is None:
            self._symbols = {}
            for symbol in self._elf.symbols():
                if symbol.type in (STT_OBJECT, STT_CUDA_OBJECT) and symbol.size:
                    row = (symbol.value, symbol.value + symbol.size, symbol.name)
                    self._symbols.setdefault(symbol.section, []).append(row)
        shift = section.offset - section.address
        for start, end, name in self._symbols.get(section.number, ()):
            if start <= inner + section.address < end:
                return _Place(f"{section.name}, {name}", start + shift, end + shift)
        return _Place(section.name, section.offset, section.offset + section.size)
