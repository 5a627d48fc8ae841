"""What a compile would read, worked out from include directives where no list of a compiler tells it.

It may name too much (a directive in a branch that is switched off counts) and miss what a macro puts
together.
Pure: the reading is passed in.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.lookup import Directives, named_macros
from orchestrator.options import handed_on

_MOST_FILES = 5000
_FOLDER_FLAGS = ("-I", "-isystem", "--include-path", "-include-path")
_FORCING_FLAGS = ("-include", "--pre-include")


@dataclass(frozen=True, slots=True)
class Followed:
    """The files that sources include, these among them, and the places at which others may appear."""

    files: tuple[str, ...]
    absent: frozenset[str]


def follow_includes(
    sources: Sequence[str],
    argv: Sequence[str],
    read: Callable[[str], Directives | None],
    exists: Callable[[str], bool],
) -> Followed:
    """Follow the directives of ``sources`` and the ``-include`` options of ``argv``, relative to the root.

    ``read`` gives a file's directives, or `None` if it cannot be read; ``exists`` tells whether it is there.
    """
    folders = tuple(option_values(argv, _FOLDER_FLAGS))
    definitions = tuple(option_values(argv, ("-D", "--define-macro")))
    found: dict[str, None] = dict.fromkeys(sources)
    absent: set[str] = set()
    seen: dict[str, Directives] = {}

    def look(name: str, *near: str) -> None:
        for candidate in (posixpath.normpath(posixpath.join(f, name)) for f in (*near, *folders)):
            if exists(candidate):
                found.setdefault(candidate)
            else:
                absent.add(candidate)

    for value in option_values((*argv, *handed_on(argv)), _FORCING_FLAGS, joined=False):
        for name in value.split(","):
            look(name, "")
    while left := [path for path in found if path not in seen][: _MOST_FILES - len(seen)]:
        for path in left:
            seen[path] = directives = read(path) or Directives()
            for name in sorted(directives.quoted | directives.bracketed | directives.nexts):
                look(name, posixpath.dirname(path))
            for name in sorted(directives.incbins - {""}):
                look(name, "")
        macros = named_macros(seen.values(), definitions)
        for path, directives in seen.items():
            for macro in sorted(directives.computed | directives.tested):
                for name, _quoted in sorted(macros.get(macro, ())):
                    look(name, posixpath.dirname(path))
    return Followed(tuple(found), frozenset(absent))


def option_values(argv: Sequence[str], flags: Sequence[str], *, joined: bool = True) -> Iterator[str]:
    """The values of options: in the next word, behind ``=`` or, where they can be ``joined``, at once."""
    for number, word in enumerate(argv):
        for flag in flags:
            if word == flag and number + 1 < len(argv):
                yield argv[number + 1]
            elif word.startswith(flag if joined else f"{flag}=") and word != flag:
                yield word[len(flag) :].lstrip("=")
