"""The files of a project, and which of them can matter for what. The pure part of a build's receipt."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

_CODE = re.compile(r"\.(?:cu|cuh|c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|h\+\+|inl|inc|ipp|tcc|ptx|rs|s|S|asm)$")
_UNIT = re.compile(r"\.(?:cu|c|cc|cpp|cxx|c\+\+|C|ptx|s|S|asm)$")
_PROSE = re.compile(
    r"(?:\.(?:md|rst|adoc|png|jpe?g|gif|svg|pdf|tex|bib)|(?:^|/)\.git(?:ignore|attributes|modules)"
    r"|(?:^|/)(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS|README|CHANGELOG|CHANGES|NEWS|TODO|INSTALL|CONTRIBUTING)"
    r"(?:[-.]\w+)?)$"
)
_PRODUCT = re.compile(
    r"(?:\.(?:o|obj|a|so(?:\.[\d.]+)?|d|rlib|rmeta|pyc|log|gcda|gcno|cubin|fatbin)"
    r"|(?:^|/)(?:\.ninja_log|\.ninja_deps|CMakeCache\.txt|Makefile\.cmake|nohup\.out))$"
)
_FOLDERS = frozenset({
    ".freshproof", ".git", ".hg", ".svn", "build", "target", "dist", "__pycache__", "node_modules", ".venv",
    "venv", ".nox", ".tox", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", "CMakeFiles",
    ".hypothesis",
})  # fmt: skip
MARKERS = frozenset({"CACHEDIR.TAG", "CMakeCache.txt", ".ninja_log", "pyvenv.cfg"})
"""Files that only folders of products and tools hold."""


def is_code(path: str) -> bool:
    """Source text that a step either reads itself, and then it is in its closure, or does not need."""
    return _CODE.search(path) is not None


def is_unit(path: str) -> bool:
    """Source text that is compiled by itself: where build systems gather sources by pattern, a new one is
    built in.
    """
    return _UNIT.search(path) is not None


def is_prose(path: str) -> bool:
    """Text and pictures for people: of no effect unless a step reads them as its source."""
    return _PROSE.search(path) is not None


def is_product_name(path: str) -> bool:
    """Names that tools give to what they make."""
    return _PRODUCT.search(path) is not None


def is_build_folder(name: str) -> bool:
    """Folders that hold products, by their usual names."""
    return name in _FOLDERS or name.endswith((".egg-info", ".dist-info"))


def can_matter(path: str, listed: bool, steering: Iterable[str] = ()) -> bool:
    """Whether a project's file that a step did not read can change what the step makes.

    ``listed``: all that the step reads is known. ``steering`` are sources of the programs that the build
    makes for its own use, such as build.rs.
    """
    if not listed:
        return not is_prose(path)
    if path in steering or posixpath.basename(path) in ("build.rs", "setup.py", "conftest.py"):
        return True
    return not is_code(path) and not is_prose(path)
