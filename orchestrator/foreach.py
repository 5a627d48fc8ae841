"""``foreach`` in targets.toml: one table that stands for several, with ``{name}`` for what differs. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

KEY = "foreach"

_WORD = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Binding = Mapping[str, str]
"""What each name stands for in one of the tables."""


class Unusable(Exception):
    """What is wrong with a ``foreach`` or with a place that uses it, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy
        self.path: tuple[str, ...] = ()
        """The keys that lead to it."""


def bindings(value: object) -> list[Binding]:
    """Every combination: of one table's values, or of each of several tables by itself.

    A value is a text or a whole number, or a list of them. Raises `Unusable`.
    """
    groups = value if isinstance(value, list) else [value]
    if not groups:
        raise Unusable("no table, so nothing to make", 'write foreach = { name = ["a", "b"] }')
    return [binding for group in groups for binding in _combinations(group)]


def substitute(value: Any, binding: Binding, later: frozenset[str] = frozenset()) -> Any:
    """The value with each ``{name}`` replaced, in texts, lists and tables, keys included.

    The names of a ``foreach`` further in, and those of ``later``, stay. Raises `Unusable` for any other.
    """
    if isinstance(value, str):
        return _WORD.sub(lambda found: _meaning(found.group(1), binding, later), value)
    if isinstance(value, list):
        return [substitute(item, binding, later) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, item in value.items():
        inner = later | _own_names(item)
        try:
            made[substitute(key, binding, inner)] = substitute(item, binding, inner)
        except Unusable as error:
            error.path = (key, *error.path)
            raise
    if len(made) < len(value):
        raise Unusable("two of its keys become one", "use other names")
    return made


def _meaning(name: str, binding: Binding, later: frozenset[str]) -> str:
    if name in binding:
        return binding[name]
    if name in later:
        return f"{{{name}}}"
    raise Unusable(f"`{{{name}}}` is no name of its {KEY}", f"names: {', '.join(binding)}")


def _own_names(value: object) -> frozenset[str]:
    """The names that a table's own ``foreach`` gives, as far as it is one."""
    groups = value.get(KEY) if isinstance(value, dict) else None
    listed = groups if isinstance(groups, list) else [groups]
    return frozenset(name for group in listed if isinstance(group, dict) for name in group)


def _combinations(group: object) -> list[Binding]:
    if not isinstance(group, dict) or not group:
        raise Unusable("must be a table of lists, or a list of such tables", 'write { name = ["a", "b"] }')
    for name in group:
        if not _NAME.fullmatch(name):
            raise Unusable(f"not a name: {name!r}", "letters, digits, `-` and `_`, a letter first")
    choices = [[(name, text) for text in _texts(name, values)] for name, values in group.items()]
    return [dict(chosen) for chosen in itertools.product(*choices)]


def _texts(name: str, values: object) -> list[str]:
    listed = values if isinstance(values, list) else [values]
    if not listed or not all(isinstance(v, str) or type(v) is int for v in listed):
        raise Unusable(f"{name} must be a text or a whole number, or a list of them", f'write {name} = ["a"]')
    texts = [str(v) for v in listed]
    if len(set(texts)) < len(texts):
        raise Unusable(f"{name} has a value twice", "remove one")
    return texts
