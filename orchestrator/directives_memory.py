"""What files ask the preprocessor to find, kept from run to run: by content, so that an answer does not age.

To scan the 250 headers of toolkit and system that every compile reads takes 0.1 s.
"""

from __future__ import annotations

import functools
from dataclasses import fields
from pathlib import Path
from typing import Any

from orchestrator import lookup
from orchestrator.canonical import digest_bytes, seal, unseal
from orchestrator.lookup import Directives
from orchestrator.model import Digest
from orchestrator.regular_file import read_file
from orchestrator.workspace import keep_if_possible

_MOST = 50_000
"""Files that are kept in mind; beyond, only those of the last run."""


class DirectivesMemory:
    """Directives by the digest of what holds them. Without a file to keep them in, of one run alone."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[Digest, Directives] = {}
        self._kept = _read(file) if file else {}
        self._new = False

    def of(self, path: Path | str, digest: Digest) -> Directives:
        """Of a file with this digest, which is read if its content was never seen. Raises `OSError`.

        Of a file that changed since its digest was taken the answer is that of now, and is not kept.
        """
        if digest in self._known:
            return self._known[digest]
        if digest in self._kept:
            self._known[digest] = _unpacked(self._kept[digest])
            return self._known[digest]
        data = read_file(path)
        found = lookup.read_directives(data)
        if digest_bytes(data) == digest:
            self._known[digest] = found
            self._new = True
        return found

    def save(self) -> None:
        """Keep what is known, if it can be kept."""
        if self._file and self._new:
            packed = {digest: _packed(one) for digest, one in self._known.items()}
            more = self._kept if len(self._kept) + len(packed) <= _MOST else {}
            keep_if_possible(self._file, seal({"scanner": _scanner(), "files": {**more, **packed}}))


def _read(file: Path) -> dict[Digest, Any]:
    try:
        document = unseal(read_file(file))
    except (OSError, ValueError):
        return {}
    return dict(document["files"]) if document.get("scanner") == _scanner() else {}


@functools.cache
def _scanner() -> Digest:
    """Of the code that scans: what another release found counts for nothing."""
    return digest_bytes(Path(lookup.__file__).read_bytes())


def _packed(directives: Directives) -> list[Any]:
    values = (getattr(directives, field.name) for field in fields(Directives))
    return [sorted(value) if isinstance(value, frozenset) else value for value in values]


def _unpacked(values: list[Any]) -> Directives:
    named = dict(zip((field.name for field in fields(Directives)), values, strict=True))
    macros = tuple((macro, name, quoted) for macro, name, quoted in named.pop("macros"))
    sets = {name: frozenset(value) for name, value in named.items() if isinstance(value, list)}
    return Directives(**{**named, **sets}, macros=macros)
