"""PTX text: version, target, entry points with their launch bounds, and strings (PTX ISA 9.0)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.objects.window import Bytes, Malformed, printable

# Linear on any text: an unclosed comment runs to the end instead of being tried again at every "/*".
_COMMENT = re.compile(r"//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_VERSION = re.compile(r"\s*\.version\s+(\d+\.\d+)\s")
_TARGET = re.compile(r"\s*\.target[ \t]+(\w[^\n]{0,1000})\n")
_ADDRESS_SIZE = re.compile(r"\s*\.address_size\s+(\d{1,4})\s")
_ENTRY = re.compile(r"\.entry\s+([\w$.]{1,65536})")
_BOUND = re.compile(
    r"\.(maxntid|reqntid|minnctapersm|maxnreg|reqnctapercluster|maxclusterrank)\s+"
    r"(\d{1,9}(?:\s*,\s*\d{1,9}){0,2})"
)
_NUMBER = re.compile(rb"\d{1,9}")
_STRING = re.compile(rb"\.b8\s+([\w$.]{1,65536})\[\d*\]\s*=\s*\{([0-9,\s]*)\}")


@dataclass(frozen=True, slots=True)
class PtxEntry:
    """One kernel: its symbol, and its launch bounds as far as the source gave any."""

    name: str
    max_threads: tuple[int, int, int] | None
    required_threads: tuple[int, int, int] | None
    min_blocks: int | None
    max_registers: int | None
    cluster: tuple[int, int, int] | None
    max_cluster: int | None


@dataclass(frozen=True, slots=True)
class Ptx:
    """What PTX text says about itself."""

    version: str
    target: str
    address_size: int
    entries: tuple[PtxEntry, ...]


def is_ptx(data: Bytes) -> bool:
    """Whether the first text that is no comment is a ``.version``."""
    head = printable(data[: 1 << 14]).lstrip("\ufeff \t\r\n")
    return bool(re.match(r"(?:\s*//[^\n]*\n|\s*/\*.*?\*/)*\s*\.version\s+\d", head, re.DOTALL))


def read_ptx(data: Bytes) -> Ptx:
    """Read PTX text; `Malformed` when it has no ``.version``, ``.target`` and ``.address_size`` in this
    order.
    """
    text = _COMMENT.sub("", printable(data).rstrip("\0"))
    at = 0
    head = []
    for field in (_VERSION, _TARGET, _ADDRESS_SIZE):
        found = field.match(text, at)
        if found is None:
            raise Malformed("not PTX: .version, .target and .address_size do not come first", 0)
        head.append(found.group(1).strip())
        at = found.end() - 1
    return Ptx(head[0], head[1], int(head[2]), tuple(_entries(text)))


def _entries(text: str) -> Iterator[PtxEntry]:
    """Bounds stand between a kernel's parameter list and its body."""
    for name, start, limit in _spans(text):
        ends = [end for end in (text.find("{", start, limit), text.find(";", start, limit)) if end >= 0]
        bounds = {
            found[1]: tuple(int(number) for number in found[2].split(","))
            for found in _BOUND.finditer(text, start, min(ends, default=limit))
        }
        yield _entry(name, bounds)


def _spans(text: str) -> list[tuple[str, int, int]]:
    """Name of each kernel, and where the text begins and ends in which nothing but it can be."""
    found = [(match[1], match.start(), match.end()) for match in _ENTRY.finditer(text)]
    limits = [start for _name, start, _end in found[1:]] + [len(text)]
    return [(name, end, limit) for (name, _start, end), limit in zip(found, limits, strict=False)]


def _entry(name: str, bounds: dict[str, tuple[int, ...]]) -> PtxEntry:
    def one(bound: str) -> int | None:
        return bounds[bound][0] if bound in bounds else None

    return PtxEntry(
        name=name,
        max_threads=_triple(bounds.get("maxntid")),
        required_threads=_triple(bounds.get("reqntid")),
        min_blocks=one("minnctapersm"),
        max_registers=one("maxnreg"),
        cluster=_triple(bounds.get("reqnctapercluster")),
        max_cluster=one("maxclusterrank"),
    )


def _triple(bound: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if bound is None:
        return None
    x, y, z = (*bound, 1, 1)[:3]
    return x, y, z


def entry_bodies(data: Bytes) -> dict[str, str]:
    """The text of each kernel, from its parameters to the end of its body, without comments."""
    text = _COMMENT.sub("", printable(data).rstrip("\0"))
    found = {}
    for name, start, limit in _spans(text):
        end = text.find("\n}", start, limit)  # nvcc closes functions, and nothing else, in the first column
        found[name] = text[start : end if end >= 0 else limit]
    return found


def ptx_strings(data: Bytes) -> list[tuple[str, bytes]]:
    """The byte arrays of PTX text by name. PTX spells strings as numbers, so a search must unfold them."""
    found = []
    for name, numbers in _STRING.findall(data):
        values = (int(number) & 0xFF for number in _NUMBER.findall(numbers))
        found.append((printable(name), bytes(values)))
    return found


def without_comments(data: Bytes) -> bytes:
    """The text without comments and the compiler's build number, to compare two compiles."""
    return _COMMENT.sub("", printable(data).rstrip("\0")).encode("utf-8", "backslashreplace")
