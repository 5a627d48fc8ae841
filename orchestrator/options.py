"""Options that lead to further files: ``@file``, ``-optf file``, what the host compiler is handed. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

_READ_BY_GCC = (
    "-specs=", "--specs=", "-fplugin=", "-fprofile-use=", "-fauto-profile=", "-fprofile-instr-use=",
    "-fsanitize-ignorelist=", "-fsanitize-blacklist=",
)  # fmt: skip
"""Options of gcc and clang that name a file to be read, which no dependency list tells."""


def handed_on(arguments: Sequence[str]) -> Iterator[str]:
    """The words that nvcc hands on to the host compiler as they are."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if before in ("-Xcompiler", "--compiler-options"):
            yield from (part.strip("\"'") for part in argument.split(","))
        elif argument.startswith(("-Xcompiler=", "--compiler-options=")):
            yield from (part.strip("\"'") for part in argument.split("=", 1)[1].split(","))


def options_files(arguments: Sequence[str]) -> tuple[str, ...]:
    """Files of further options that a command names, for nvcc itself or handed on to another tool."""
    found: dict[str, None] = {}
    for part in handed_on(arguments):
        if part.startswith(_READ_BY_GCC):
            found.setdefault(part.split("=", 1)[1])
    if not any("@" in argument or "-opt" in argument for argument in arguments):
        return tuple(found)
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if before in ("-optf", "--options-file"):
            found.update(dict.fromkeys(argument.split(",")))
            continue
        for option in ("-optf=", "--options-file="):
            if argument.startswith(option):
                found.update(dict.fromkeys(argument.removeprefix(option).split(",")))
        value = argument.split("=", 1)[1] if argument.startswith("-X") and "=" in argument else argument
        for part in value.split(","):
            name = part.strip("\"'").removeprefix("-Wl,")
            if name.startswith("@") and len(name) > 1:
                found.setdefault(name[1:])
    return tuple(found)


def all_options_files(
    named: Iterable[str], exists: Callable[[str], bool], read: Callable[[str], bytes]
) -> tuple[list[str], set[str]]:
    """The files ``named``, those that they name in turn, and apart from them names that stand for no file."""
    found: list[str] = []
    missing: set[str] = set()
    todo = list(named)
    while todo:
        name = todo.pop(0)
        if name in found or name in missing:
            continue
        if not exists(name):
            missing.add(name)
            continue
        found.append(name)
        text = read(name).decode("utf-8", "surrogateescape")
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        todo += options_files(words)
    return found, missing
