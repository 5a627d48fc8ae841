"""Refuses a pipe, a socket or a device where a compile would open a file: nvcc would wait for it for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.errors import BuildFailed, ConfigurationError
from orchestrator.includes import follow_includes, option_values
from orchestrator.lookup import Directives, find_libraries
from orchestrator.model import Action, Target
from orchestrator.options import added_words, files_named, options_files
from orchestrator.regular_file import special
from orchestrator.targets import FILE

_ENDINGS = (".so", ".a")
_REMEDY = "put a file in its place, or remove it"


def check_named(root: Path, target: Target, honoured: Iterable[tuple[str, str]]) -> None:
    """What a target's flags, or nvcc's variables, name: nvcc and gcc open it even to tell what they would do.

    Raises `ConfigurationError`.
    """
    words = (*target.flags, *added_words(honoured))
    for name in (*words, *options_files(words), *files_named(words)):
        if kind := special(root / name):
            raise ConfigurationError(
                f"{FILE}:{target.line}: target {target.name}: {name} is {kind}, not a regular file",
                remedy=f"{_REMEDY}: nvcc would wait for it",
            )


def check_openable(root: Path, action: Action, directives: Callable[[str], Directives | None]) -> None:
    """What an action's command will open, as far as its words and include directives tell.

    ``directives`` are those of a file. Raises `BuildFailed`.
    """

    def exists(name: str) -> bool:
        path = root / name
        if kind := special(path):
            raise BuildFailed(
                f"{action.target.name}: {name} is {kind}, not a regular file",
                remedy=f"{_REMEDY}: nvcc would wait",
            )
        return path.is_file()

    for source in action.target.sources:
        exists(source)
    follow_includes(action.target.sources, action.argv, directives, exists)
    folders = option_values(action.argv, ("-L", "--library-path"))
    libraries = (f"-l{name}" for name in option_values(action.argv, ("-l", "--library")))
    find_libraries((*(f"-L{folder}" for folder in folders), *libraries), _ENDINGS, exists)
