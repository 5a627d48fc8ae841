"""Where keys stand in a TOML text. `tomllib` gives no positions; error messages need them."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*(?P<key>\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*[.=]")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+)")


class Lines:
    """An index of the tables and keys of one text.

    Serves messages only: a line that looks like a header inside a multi-line string may mislead it.
    """

    def __init__(self, text: str) -> None:
        self._tables: dict[tuple[str, ...], int] = {}
        self._keys: dict[tuple[tuple[str, ...], str], int] = {}
        here: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            header = _HEADER.match(line)
            if header:
                here = _parts(header.group("path"))
                self._tables.setdefault(here, number)
                continue
            found = _KEY.match(line)
            if found:
                (key,) = _parts(found.group("key")) or ("",)
                self._keys.setdefault((here, key), number)

    def find(self, table: tuple[str, ...], key: str | None) -> int:
        """Line of ``key`` in ``table``, else of the table's header, else of its nearest parent; else 1."""
        if key is not None:
            for found in (self._keys.get((table, key)), self._tables.get((*table, key))):
                if found:
                    return found
        for depth in range(len(table), 0, -1):
            if table[:depth] in self._tables:
                return self._tables[table[:depth]]
        return 1


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
