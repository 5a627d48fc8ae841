"""Where keys stand in a TOML text. `tomllib` gives no positions; error messages need them."""

from __future__ import annotations

import re

_WORD = r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)"
_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*(?P<path>{_WORD}(?:\s*\.\s*{_WORD})*)\s*=(?P<value>.*)")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+)")
_NO_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|#.*")


class Lines:
    """An index of the tables and keys of one text, dotted keys among them.

    Serves messages only: a line that looks like a header inside a multi-line string may mislead it.
    """

    def __init__(self, text: str) -> None:
        self._at: dict[tuple[str, ...], int] = {}
        here: tuple[str, ...] = ()
        open_brackets = 0
        for number, line in enumerate(text.splitlines(), start=1):
            if open_brackets > 0:
                open_brackets += _opened(line)
            elif header := _HEADER.match(line):
                here = _parts(header["path"])
                self._at.setdefault(here, number)
            elif key := _KEY.match(line):
                parts = _parts(key["path"])
                for count in range(1, len(parts) + 1):
                    self._at.setdefault((*here, *parts[:count]), number)
                open_brackets = _opened(key["value"])

    def find(self, table: tuple[str, ...], key: str | None) -> int:
        """Line of ``key`` in ``table``, else of the table's header or first key, else of a parent; else 1."""
        path = table if key is None else (*table, key)
        for depth in range(len(path), 0, -1):
            if path[:depth] in self._at:
                return self._at[path[:depth]]
        return 1


def _opened(text: str) -> int:
    """How many more brackets a line opens than it closes."""
    bare = _NO_BRACKET.sub("", text)
    return sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
