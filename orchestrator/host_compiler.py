"""The files behind a host compiler: the driver that nvcc runs, the programs and libraries that do the work.

gcc is a driver that starts cc1plus, as and ld. clang is one program, whose code lies in the libraries of LLVM
that it loads. Either may stand behind a script.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.ask import ask
from orchestrator.regular_file import read_file
from orchestrator.tidy import tidy

_PROGRAMS = ("cc1plus", "cc1", "collect2", "lto-wrapper", "as", "ld", "ar")
_FILES = ("liblto_plugin.so", "specs")
LOOKED_FOR = (*_PROGRAMS, *_FILES)
"""Programs and files that a driver of gcc looks for in its folders."""
_OF_LLVM = ("libclang", "libLLVM", "libLTO", "liblld")


def host_components(
    command: Sequence[str], number: int, environment: Mapping[str, str], folder: str
) -> Iterable[tuple[str, str]]:
    """Role and path of every file that takes part when ``command``, the toolchain's ``number``-th driver with
    the options that choose programs, is run in ``folder``.
    """
    prefix, driver = f"host/{number}/", command[0]
    chain = behind(driver)
    yield f"{prefix}{Path(driver).name}", driver
    yield from ((f"{prefix}behind/{place}", name) for place, name in enumerate(chain[1:]))
    for name in (*_PROGRAMS, *_FILES):
        option = "-print-file-name" if name in _FILES else "-print-prog-name"
        answer = ask((*command, f"{option}={name}"), environment, folder).strip()
        found = str(Path(folder, answer)) if "/" in answer else None
        if not found and name in _PROGRAMS:
            found = shutil.which(answer, path=environment["PATH"])
        if found and Path(found).is_file():
            yield f"{prefix}{name}", tidy(found)
    for program in chain:
        if is_clang(os.path.realpath(program)):
            yield from ((f"{prefix}{name}", full) for name, full in _libraries_of_llvm(program))


def behind(program: str) -> list[str]:
    """``program``, and if it is a script the files that it names by their full paths, and so on."""
    chain: list[str] = []
    queue = [program]
    while queue:
        name = queue.pop(0)
        if name in chain:
            continue
        chain.append(name)
        queue += [n for n in _named_in_script(name) if Path(n).is_file()]
    return chain


def _named_in_script(program: str) -> list[str]:
    """Full paths in a script's text; none for any other program."""
    try:
        text = read_file(program, 1 << 16)
    except OSError:  # it may be run, not read; its digest cannot be taken either, which is told
        return []
    if not text.startswith(b"#!"):
        return []
    return re.findall(r"(?<![\w.])/[\w./+-]+", text.decode("utf-8", "replace"))


def places_looked_at(command: Sequence[str], environment: Mapping[str, str], folder: str) -> Iterable[str]:
    """Folders in which ``command``, a driver with its options, looks for programs and files; and names that
    the scripts in front of it hold and that are not there.
    """
    said = ask((*command, "-print-search-dirs"), environment, folder)
    for listed in re.findall(r"^(?:programs|libraries): =?(.*)$", said, re.MULTILINE):
        yield from (str(Path(folder, name)) for name in listed.split(os.pathsep) if name)
    for program in behind(command[0]):
        yield from (name for name in _named_in_script(program) if not Path(name).exists())


def is_clang(program: str) -> bool:
    """Whether a compiler is clang, by its name."""
    return Path(program).name.startswith("clang")


def _libraries_of_llvm(program: str) -> Iterable[tuple[str, str]]:
    """Those in which clang's code lies; one that is not found is named too, and cannot be read then."""
    from orchestrator.loader import libraries_of  # takes a while to import, and gcc needs no such thing

    if Path(program).read_bytes()[:4] != b"\x7fELF":
        return
    for library in libraries_of(Path(os.path.realpath(program)), {}):
        if library.name.startswith(_OF_LLVM):
            yield library.name, library.path or f"/nowhere/{library.name}"
