"""Names of C++ symbols as written in the source.

A mangled name refers back to parts of itself (``S_``, ``S0_``, ``T_``), so that the text it stands for can
grow exponentially: gigabytes from 200 bytes. Such a name is left as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_WIDEST = 16
"""Characters that one of a mangled name can stand for without a reference: ``y`` is `unsigned long long`."""
_LONGEST = 1 << 28
"""Bound of a text that is still asked for. The bound is loose: names of Thrust and CUB reach 2**26, and
their texts 2,000 characters."""
_LONGEST_TOGETHER = 1 << 26
_SHORT = 1 << 16


@cache
def _demangler() -> Callable[[str], str] | None:
    """The C++ runtime's own ``__cxa_demangle``; ``None`` on a machine that has no C++ runtime library."""
    try:
        import cxxfilt
    except (ImportError, OSError):
        return None

    def run(name: str) -> str:
        try:
            return str(cxxfilt.demangle(name))
        except (cxxfilt.Error, UnicodeError):
            return name

    return run


class _Allowed:
    """What may still be asked for: many names that are just short enough add up."""

    def __init__(self) -> None:
        self._left = _LONGEST_TOGETHER

    def admits(self, name: str) -> bool:
        return longest_text(name) <= (_LONGEST if self._left > 0 else _SHORT)

    def spend(self, text: str) -> None:
        self._left -= max(len(text) - _SHORT, 0)


_allowed = _Allowed()


@cache
def demangle(name: str) -> str:
    """The source's spelling of a mangled name; the name itself when it is not mangled, cannot be read, or
    would become too long.
    """
    run = _demangler() if name.startswith("_Z") and _allowed.admits(name) else None
    if run is None:
        return name
    text = run(name)
    _allowed.spend(text)
    return text if len(text) <= _SHORT else name


def longest_text(name: str) -> int:
    """More characters than the source's spelling of a mangled name can have.

    References are edges between parts of the name and form no circle. The text has every part as often as
    there are ways to it: at most 3**(n/3) with n edges, and at most the product of 1 + m over the parts,
    with m edges to each. A template's parameter means something else in each function that the name holds.
    """
    scopes = 1 + name.count("Z", 2)
    found = Counter(_REFERENCE.findall(name))
    edges = {to: count * (scopes if to.startswith("T") else 1) for to, count in found.items()}
    by_count, by_part = int(3 ** min(sum(edges.values()) / 3 + 1, 200)), 1
    for count in edges.values():
        by_part *= 1 + count
    return _WIDEST * len(name) * min(by_count, by_part)
