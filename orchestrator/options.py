"""Options that lead to further files: ``@file``, ``-optf file``, what the host compiler is handed. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence

FOLDERS_READ = ("-fplugin=", "-fprofile-use=", "-fauto-profile=", "-fprofile-instr-use=")
"""Options of gcc and clang whose value may be a folder of files that they read."""

SELECTING = ("-B", "-fuse-ld=", "-specs=", "--specs=", "--sysroot=")
"""Options of a host compiler that decide which programs it starts."""

_UNTOLD = ("-fprofile-use", "-fauto-profile", "-fbranch-probabilities")

_LINKERS_OWN = ("-Bstatic", "-Bdynamic", "-Bsymbolic", "-Bgroup")

_WRITTEN = (
    "-Map", "--Map", "-MF", "-o", "--dependency-file", "--out-implib", "-dumpdir", "-dumpbase", "-fdump-",
    "-fprofile-generate", "-fprofile-dir", "-ftime-trace", "-fopt-info", "-fsave-optimization-record",
)  # fmt: skip
"""Options whose value is a file that the command itself writes."""

_LONG = {
    "--compiler-options": "-Xcompiler",
    "--linker-options": "-Xlinker",
    "--archive-options": "-Xarchive",
    "--ptxas-options": "-Xptxas",
    "--nvlink-options": "-Xnvlink",
}


def handed_on(arguments: Sequence[str], tool: str = "-Xcompiler") -> tuple[str, ...]:
    """The words that nvcc hands on as they are: to the host compiler, or to another ``tool``."""
    return tuple(_by_tool(arguments)[1].get(tool, ()))


def added_words(environment: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The words that nvcc's own variables put before and behind those of its command."""
    words: list[str] = []
    for name, value in environment:
        if name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
            words += _split(value)
    return tuple(words)


def options_files(arguments: Sequence[str]) -> tuple[str, ...]:
    """Files of further options that a command names, for nvcc itself or for a tool behind it."""
    if not any("@" in word or "opt" in word for word in arguments):
        return ()
    found: dict[str, None] = {}
    own, by_tool = _by_tool(arguments)
    for words in (own, *by_tool.values()):
        for before, word in zip(("", *words), words, strict=False):
            name, _, value = word.partition("=")
            if before in ("-optf", "--options-file"):
                found.update(dict.fromkeys(word.split(",")))
            elif name in ("-optf", "--options-file") and value:
                found.update(dict.fromkeys(value.split(",")))
            elif word.startswith("@") and len(word) > 1:
                found.setdefault(word[1:])
    return tuple(found)


def files_named(arguments: Sequence[str]) -> tuple[str, ...]:
    """Whatever may be a file in the words handed on: a word that is no option, and an option's value.

    Which options read files nobody can list (specs, plugins, profiles, scripts of the linker ...); most of
    these names are those of no file at all.
    """
    found: dict[str, None] = {}
    for words in _by_tool(arguments)[1].values():
        for before, word in zip(("", *words), words, strict=False):
            name = word.partition("=")[2] if word.startswith("-") else word
            written = word if word.startswith("-") else before
            if written.startswith(_WRITTEN):
                continue
            if name and not name.startswith("@"):
                found.setdefault(name)
    return tuple(found)


def _by_tool(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """nvcc's own words, and those that it hands on to each tool, in their order."""
    own: list[str] = []
    by_tool: dict[str, list[str]] = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        tool = _LONG.get(name, name if name.startswith("-X") else "")
        if not tool:
            own.append(word)
            continue
        value = value if equals else next(words, "")
        by_tool.setdefault(tool, []).extend(part.strip("\"'") for part in value.split(","))
    return own, by_tool


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


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
        todo += options_files(_split(read(name).decode("utf-8", "surrogateescape")))
    return found, missing


def words_inside(files: Iterable[str], read: Callable[[str], bytes]) -> tuple[str, ...]:
    """The words of options files, as nvcc's own and as if it handed each on: either may read them."""
    words = [word for name in files for word in _split(read(name).decode("utf-8", "surrogateescape"))]
    return (*words, *(f"-Xcompiler={word}" for word in words))


def untold(words: Sequence[str]) -> tuple[str, ...]:
    """Options of gcc with which it reads a file of a name of its own making or in its own folder."""
    return tuple(w for w in handed_on(words) if w in _UNTOLD or (w.startswith("-fplugin=") and "/" not in w))


def chosen_inside(words: Sequence[str]) -> tuple[str, ...]:
    """Those of `words_inside` that choose programs of the host compiler, which are not looked for there."""
    return tuple(
        w
        for w in handed_on(words)
        if w.startswith((*SELECTING, "-wrapper")) and not w.startswith(_LINKERS_OWN)
    )
