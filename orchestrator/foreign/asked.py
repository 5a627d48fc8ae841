"""The variables of the environment that a build's own files ask for by name. Pure.

Build systems do not watch them: make with another ``ARCH`` in its environment leaves all products alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NAME = r"[A-Za-z_]\w*"
_CONTINUED = re.compile(r"\\\n\s*")
_ASSIGNED = re.compile(
    rf"^ *(?:(?:export|override|private) +)*({_NAME}) *(?:::?:?=|=|!=)|^ *(?:override +)?define +({_NAME})"
)
_CONDITION = re.compile(r"^ *(?:else +)?(?:if(?:n?def|n?eq))\b")
_OF_MAKE = re.compile(
    rf"\$[({{]({_NAME})[)}}:]|\$[({{](?:origin|value|flavor) +({_NAME})|^ *(?:else +)?ifn?def +({_NAME})"
    rf"|^ *(?:export +)?({_NAME}) *[?+]="
)
_OF_SHELL = re.compile(rf"\$\$\{{?({_NAME})")
_OF_PYTHON = re.compile(
    rf"environ(?:\.(?:get|pop|setdefault))?\s*[\[(]\s*[\"']({_NAME})[\"']|getenv\(\s*[\"']({_NAME})[\"']"
    rf"|[\"']({_NAME})[\"']\s+(?:not\s+)?in\s+os\.environ"
)
_OF_RUST = re.compile(rf"\bvar(?:_os)?\(\s*\"({_NAME})\"")

_ASSIGNMENT = re.compile(rf"({_NAME})(?::{{0,3}}|\\+|\\?|!)=")
_OF_INSTALLING = re.compile(r"prefix|exec_prefix|\w*dir|INSTALL\w*", re.IGNORECASE)
_NO_MATTER = frozenset({"DESTDIR", "V", "VERBOSE", "Q"})
_INSTALLS = frozenset({"install", "install-strip", "uninstall"})
_MAKES_NOTHING = frozenset({"clean", "distclean", "mostlyclean", "help", *_INSTALLS})

_SET_BY_TOOLS = frozenset({
    "PATH", "PWD", "OLDPWD", "SHELL", "SHLVL", "TERM", "COLUMNS", "LINES", "TMPDIR", "CURDIR", "MFLAGS", "_",
    "OUT_DIR", "TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS",
    "RUSTC", "RUSTDOC", "RUSTC_LINKER",
})  # fmt: skip
"""Told by make, cargo and shells, or judged by what it leads to."""
_OF_CARGO = _SET_BY_TOOLS
_OF_OTHERS = _SET_BY_TOOLS - {"TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS"}


def of_makefiles(texts: Iterable[str], overrides: bool = False) -> set[str]:
    """Names that makefiles, in the order in which they are read, take from the environment: not those that
    they set before they use them, come what may, unless ``overrides``, as ``make -e`` has it.
    """
    asked: set[str] = set()
    own: set[str] = set()
    depth = 0
    for line in (line for text in texts for line in _CONTINUED.sub(" ", text).splitlines()):
        if not line.startswith("\t"):
            line = re.sub(r"(?<!\\)#.*", "", line)
        found = {name for groups in _OF_MAKE.findall(line) for name in groups if name}
        asked |= found - own
        asked |= set(_OF_SHELL.findall(line)) - own
        if _CONDITION.match(line) and not re.match(r" *else\b", line):
            depth += 1
        elif re.match(r" *endif\b", line):
            depth -= 1
        elif depth == 0 and not overrides and (assigned := _ASSIGNED.match(line)):
            own.add(assigned[1] or assigned[2])
    return {name for name in asked - _OF_OTHERS if not name.startswith("MAKE")}


def of_ninja(text: str) -> set[str]:
    """Names that the shells of ninja's commands take from the environment."""
    return set(_OF_SHELL.findall(text)) - _OF_OTHERS


def of_python(text: str) -> set[str]:
    """Names that a Python script such as setup.py asks for."""
    return {name for groups in _OF_PYTHON.findall(text) for name in groups if name} - _OF_OTHERS


def of_build_script(text: str) -> set[str]:
    """Names that a build.rs asks for, but for those that cargo sets itself."""
    asked = set(_OF_RUST.findall(text)) - _OF_CARGO
    return {name for name in asked if not name.startswith(("CARGO", "DEP_"))}


def given_to_make(argv: Sequence[str]) -> str | None:
    """What the command of make sets (``ARCH=sm_90``), in order of the names; `None` for one that says nothing
    of how things are made: cleaning, and installing with no more than places set.
    """
    words = [word for word in argv[1:] if not word.startswith("-")]
    given = {m[1]: word for word in words if (m := _ASSIGNMENT.match(word)) and m[1] not in _NO_MATTER}
    goals = {word for word in words if "=" not in word}
    if goals & _INSTALLS and goals <= _MAKES_NOTHING:
        given = {name: word for name, word in given.items() if not _OF_INSTALLING.fullmatch(name)}
    if goals and goals <= _MAKES_NOTHING and not given:
        return None
    return " ".join(given[name] for name in sorted(given))
