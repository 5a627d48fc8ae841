"""What host compilers and rustc say that they read: make's rules as gcc and rustc write them. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?:\\.|\$\$|[^\s\\])+")
_ESCAPED = re.compile(r"\\(.)|\$\$")


def parse_rules(data: bytes) -> tuple[str, ...]:
    """Prerequisites of the first rule, without repeats. Raises `ValueError` for a list without one."""
    text = data.decode("utf-8", "surrogateescape").replace("\\\r\n", " ").replace("\\\n", " ")
    for line in text.splitlines():
        target, found, rest = line.partition(": ")
        if found and target and not line.startswith("#"):
            words = (_ESCAPED.sub(_plain, word) for word in _WORD.findall(rest))
            return tuple(dict.fromkeys(words))
    raise ValueError("it has no rule")


def _plain(found: re.Match[str]) -> str:
    return found.group(1) or "$"
