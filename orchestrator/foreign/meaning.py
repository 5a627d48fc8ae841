"""What a description of a build says, however it is written: cargo's manifests without comments and order,
makefiles without comments. A file that says the same is as good as one of the same bytes. Pure.
"""

from __future__ import annotations

import posixpath
import re
import tomllib

_MAKEFILE = re.compile(r"(?:GNUm|[mM])akefile|.+\.mk")
_DEFINE = re.compile(r" *(?:(?:override|export|private) +)*define\b")
_END = re.compile(r" *endef\b")


def has_meaning(path: str) -> bool:
    """Whether `meaning` knows files of that name."""
    name = posixpath.basename(path)
    return name == "Cargo.toml" or _MAKEFILE.fullmatch(name) is not None


def meaning(path: str, text: str) -> str:
    """The same for two texts only if build systems take them for the same. Raises `ValueError`."""
    if posixpath.basename(path) == "Cargo.toml":
        return repr(_ordered(tomllib.loads(text)))
    return _without_comments(text)


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return sorted((name, _ordered(inner)) for name, inner in value.items())
    return [_ordered(inner) for inner in value] if isinstance(value, list) else value


def _without_comments(text: str) -> str:
    """A makefile without lines that are comments or empty, as far as that is plain: not those that are, or
    follow, a part of a continued line, and none within a definition of several lines.
    """
    kept = []
    depth, continued = 0, False
    for line in text.split("\n"):
        plain = not continued and depth == 0 and not line.endswith("\\")
        continued = line.endswith("\\")
        if _DEFINE.match(line):
            depth += 1
        elif _END.match(line):
            depth -= 1
        if not plain or (line and not line.startswith("#")):
            kept.append(line)
    return "\n".join(kept)
