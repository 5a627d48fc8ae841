"""What host compilers and rustc say that they read: make's rules as gcc and rustc write them. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?:\\.|\$\$|[^\s\\])+")
_ESCAPED = re.compile(r"\\(.)|\$\$")


def parse_rules(data: bytes) -> tuple[str, ...]:
    """Prerequisites of all rules, without repeats: one rule a source, and further ones without any. Raises
    `ValueError` for a list without a rule.
    """
    text = data.decode("utf-8", "surrogateescape").replace("\\\r\n", " ").replace("\\\n", " ")
    names: dict[str, None] = {}
    is_list = False
    for line in text.splitlines():
        target, found, rest = line.partition(": ")
        if found and target and not line.startswith("#"):
            is_list = True
            names.update(dict.fromkeys(_ESCAPED.sub(_plain, word) for word in _WORD.findall(rest)))
    if not is_list:
        raise ValueError("it has no rule")
    return tuple(names)


def _plain(found: re.Match[str]) -> str:
    return found.group(1) or "$"
