"""The commands behind an action, as nvcc itself tells them (``--dryrun``): where each looks for files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import BuildFailed
from orchestrator.model import Action
from orchestrator.process import run

_SETTING = re.compile(r"#\$ \w+=")
_PATH = re.compile(r"^#\$ PATH=(.*)$", re.MULTILINE)
_WITH_VALUE = frozenset({"-I", "-isystem", "-iquote", "-idirafter", "-isysroot", "-B", "-imultilib"})
_NOT_OF_THE_SEARCH = frozenset({"-E", "-M", "-MD", "-MM", "-MMD", "-MP"})


@dataclass(frozen=True, slots=True)
class Commands:
    """What matters of an action's commands."""

    preprocessors: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
    """For each that differs: the compiler with what decides its search path; names of ``-include``;
    values of ``-D``.
    """
    links: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """Link commands, each with the endings of libraries that it takes."""
    search_path: str = ""
    """PATH as nvcc sets it for them; empty where another tool ran them."""

    @property
    def programs(self) -> tuple[str, ...]:
        """Those that preprocess and link, as nvcc names them."""
        named = (
            *(options for options, _forced, _named in self.preprocessors),
            *(w for w, _ends in self.links),
        )
        return tuple(dict.fromkeys(command[0] for command in named))

    def renamed(self, old: str, new: str) -> Commands:
        """The same with one folder's name in the place of another."""

        def swap(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(word.replace(old, new) for word in words)

        return Commands(
            tuple((options, swap(forced), named) for options, forced, named in self.preprocessors),
            tuple((swap(words), endings) for words, endings in self.links),
            self.search_path,
        )


def list_commands(action: Action, root: Path) -> Commands:
    """Ask nvcc. Raises `BuildFailed` if its answer cannot be read, or names no preprocessor for a source."""
    argv = (action.argv[0], "--dryrun", *action.argv[1:])
    said = run(argv, dict(action.environment), root).said.decode("utf-8", "surrogateescape")
    preprocessors: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], None] = {}
    links = []
    for line in said.splitlines():
        words = _words(line)
        if "-E" in words:
            preprocessors[split_preprocessor(words)] = None
        elif words and any(word.startswith("-l") for word in words):
            links.append((words, (".a",) if words[0].endswith("nvlink") else (".so", ".a")))
    if action.target.sources and not preprocessors:
        raise BuildFailed(
            f"`{action.argv[0]} --dryrun` tells no preprocessor command:",
            details=said.strip(),
            remedy="a wrapper around nvcc may swallow --dryrun",
        )
    found = _PATH.search(said)
    search_path = found.group(1) if found else dict(action.environment).get("PATH", "")
    return Commands(tuple(preprocessors), tuple(links), search_path)


def split_preprocessor(
    command: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """A preprocessor command: the compiler with what decides its search path; forced names; definitions."""
    kept, forced, definitions = [command[0]], [], []
    words = iter(command[1:])
    for word in words:
        if word in ("-include", "-imacros"):
            forced.append(next(words, ""))
        elif word in ("-o", "-x", "-MF", "-MT", "-MQ"):
            next(words, "")
        elif word.startswith("-D"):
            definitions.append(word[2:] or next(words, ""))
        elif word in _WITH_VALUE:
            kept += [word, next(words, "")]
        elif word.startswith(("-", "@")) and word not in _NOT_OF_THE_SEARCH:
            kept.append(word)
    named = tuple(d for d in definitions if d.endswith(('"', ">")))
    return tuple(kept), tuple(forced), named


def library_folders(argv: Iterable[str]) -> tuple[str, ...]:
    """The folders of -L."""
    found = []
    words = iter(argv)
    for word in words:
        if word in ("-L", "--library-path"):
            found += next(words, "").split(",")
        elif word.startswith("-L"):
            found.append(word[2:])
    return tuple(found)


def _words(line: str) -> tuple[str, ...]:
    """The words of a line of ``--dryrun``; none for a setting."""
    if not line.startswith("#$ ") or _SETTING.match(line):
        return ()
    try:
        return tuple(shlex.split(line[3:]))
    except ValueError:
        raise BuildFailed(f"nvcc --dryrun tells a command that cannot be read: {line}") from None
