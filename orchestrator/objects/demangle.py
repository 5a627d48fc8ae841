"""Names of C++ symbols as written in the source."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


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


@cache
def demangle(name: str) -> str:
    """The source's spelling of a mangled name; the name itself when it is not mangled or cannot be read."""
    run = _demangler() if name.startswith("_Z") else None
    return run(name) if run else name
