"""Where a key stands in a TOML text. `tomllib` gives no positions; error messages need them."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*(?P<key>\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*[.=]")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+)")


def line_of(text: str, table: tuple[str, ...], key: str | None) -> int:
    """Line number of ``key`` in ``table``, else of the table's header, else of its nearest parent; else 1.

    Serves messages only: a line that looks like a header inside a multi-line string may mislead it.
    """
    here: tuple[str, ...] = ()
    best, best_depth = 1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            here = _parts(header.group("path"))
            if key is not None and here == (*table, key):
                return number
            depth = len(here) if table[: len(here)] == here else 0
            if depth > best_depth:
                best, best_depth = number, depth
            continue
        found = _KEY.match(line)
        if key is not None and here == table and found and _parts(found.group("key")) == (key,):
            return number
    return best


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
