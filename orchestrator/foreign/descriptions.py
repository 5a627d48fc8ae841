"""Files that say what a build is to do and that no source list names: found from the programs that read them.

Makefiles that git ignores, what CMake was configured to, a ninja file beside the objects, cargo's settings in
the home folder and above the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from orchestrator.foreign import asked
from orchestrator.foreign.events import Event
from orchestrator.foreign.steps import ancestors
from orchestrator.foreign.words import read_rustc

_OF_MAKE = ("GNUmakefile", "makefile", "Makefile")
_INCLUDED = re.compile(rb"^ *(?:[-s]?include|subninja)[ \t]+([^#\n]+)$", re.MULTILINE)
_ENV_DEP = re.compile(rb"^# env-dep:([A-Za-z_]\w*)", re.MULTILINE)
_RERUN = re.compile(rb"^cargo::?rerun-if-env-changed=([A-Za-z_]\w*)", re.MULTILINE)
_HOME = re.compile(rb"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", re.MULTILINE)
_CACHE = "CMakeCache.txt"


def descriptions(events: Iterable[Event], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Full paths that the build systems among the programs looked for; some may not exist."""
    found: dict[str, None] = {}
    for folder, program, argv in dict.fromkeys(
        (e.folder, os.path.basename(e.program), e.argv) for e in events
    ):
        if program in ("make", "gmake"):
            found.update(dict.fromkeys(_makefiles(folder, argv)))
        elif program in ("ninja", "ninja-build"):
            found.update(dict.fromkeys(_named(folder, argv, ("build.ninja",))))
        elif program == "cargo":
            found.update(dict.fromkeys(_of_cargo(folder, environ)))
        elif program == "cmake":
            found.update(dict.fromkeys(_caches(folder, argv)))
    return tuple(found)


def asked_variables(events: Iterable[Event]) -> tuple[str, ...]:
    """Names of the variables that Rust sources (``env!``), build scripts (``rerun-if-env-changed``, and what
    a build.rs asks for), makefiles, ninja files and setup.py ask for, but for those that tools set.
    """
    found: set[bytes] = set()
    lists = {os.path.join(e.folder, name) for e in events if (name := _list_of_rustc(e))}
    folders = {os.path.dirname(e.environment.get("OUT_DIR", "")) for e in events} - {""}
    outputs = {os.path.join(folder, "output") for folder in folders}
    for path, pattern in (*((p, _ENV_DEP) for p in lists), *((p, _RERUN) for p in outputs)):
        try:
            found.update(pattern.findall(Path(path).read_bytes()))
        except OSError:
            continue
    names = {os.fsdecode(name) for name in found if not name.startswith(b"CARGO")}
    return tuple(sorted((names - {"OUT_DIR"}).union(*_asked_in_files(events))))


def _asked_in_files(events: Iterable[Event]) -> Iterator[set[str]]:
    for folder, program, argv in dict.fromkeys(
        (e.folder, os.path.basename(e.program), e.argv) for e in events
    ):
        if program in ("make", "gmake"):
            texts = [_text(name) for name in _makefiles(folder, argv) if not name.endswith(_CACHE)]
            overrides = bool({"-e", "--environment-overrides"} & set(argv))
            yield asked.of_makefiles(texts, overrides)
        elif program in ("ninja", "ninja-build"):
            yield from (asked.of_ninja(_text(n)) for n in _named(folder, argv, ("build.ninja",)))
        elif program.startswith("python"):
            yield asked.of_python(_text(os.path.join(folder, "setup.py")))
        elif program == "rustc" and any(word.startswith("build_script_") for word in argv):
            yield from (
                asked.of_build_script(_text(os.path.join(folder, w))) for w in argv if w.endswith(".rs")
            )


def given(events: Sequence[Event]) -> dict[str, str]:
    """What the commands of make set, by the folder of each that no other make started."""
    above = ancestors(events)
    found: dict[str, set[str]] = {}
    for number, event in enumerate(events):
        if os.path.basename(event.program) in ("make", "gmake") and not _below_make(events, above, number):
            words = asked.given_to_make(event.argv)
            if words is not None:
                found.setdefault(folder_of(event), set()).add(words)
    return {folder: "; ".join(sorted(words)) for folder, words in found.items()}


def _below_make(events: Sequence[Event], above: Sequence[int | None], number: int) -> bool:
    at = above[number]
    while at is not None:
        if os.path.basename(events[at].program) in ("make", "gmake"):
            return True
        at = above[at]
    return False


def folder_of(event: Event) -> str:
    """The folder in which make or ninja works, without links."""
    folder, words = event.folder, event.argv
    for number, word in enumerate(words):
        if word in ("-C", "--directory") and number + 1 < len(words):
            folder = os.path.join(folder, words[number + 1])
        elif word.startswith("-C") and len(word) > 2:
            folder = os.path.join(folder, word[2:])
        elif word.startswith("--directory="):
            folder = os.path.join(folder, word.partition("=")[2])
    return os.path.realpath(folder)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _list_of_rustc(event: Event) -> str | None:
    if os.path.basename(event.program) != "rustc":
        return None
    return read_rustc(event.argv, lambda _name: False).lists


def _makefiles(folder: str, argv: Sequence[str]) -> Iterator[str]:
    """None of those that CMake writes: what they hold follows from its cache."""
    names = tuple(_named(folder, argv, _OF_MAKE))
    if any(cache_of(os.path.dirname(name)) for name in names):
        yield from _caches(folder, argv)
    else:
        yield from names


def _named(folder: str, argv: Sequence[str], usual: Sequence[str]) -> Iterator[str]:
    """The file that make or ninja reads, with those that it includes; and those that would come before it."""
    files = []
    for before, word in pairwise(argv):
        if before in ("-C", "--directory"):
            folder = os.path.join(folder, word)
        elif word.startswith("-C") and len(word) > 2:
            folder = os.path.join(folder, word[2:])
        elif before in ("-f", "--file", "--makefile"):
            files.append(word)
    for name in files or usual:
        path = os.path.normpath(os.path.join(folder, name))
        yield path
        if os.path.isfile(path):
            yield from _included(path, folder)
            if not files:
                return


def _included(path: str, folder: str) -> Iterator[str]:
    """The files that one includes, and those that they include, each once."""
    found, queue = {path}, [path]
    while queue:
        try:
            lines = _INCLUDED.findall(Path(queue.pop()).read_bytes())
        except OSError:
            continue
        for word in (os.fsdecode(word) for line in lines for word in line.split()):
            name = os.path.normpath(os.path.join(folder, word))
            if not set(word) & set("$*?%") and not word.endswith((".d", ".P")) and name not in found:
                found.add(name)
                queue.append(name)
                yield name


def ninja_files(folder: str) -> tuple[str, ...]:
    """The file that ninja reads in a folder, with those that it includes."""
    return tuple(_named(folder, (), ("build.ninja",)))


def _of_cargo(folder: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Cargo Book, "Configuration": hierarchical structure; rustup book, "Overrides": the toolchain file."""
    home = environ.get("CARGO_HOME") or os.path.join(environ.get("HOME", "/"), ".cargo")
    folders = [os.path.join(folder, ".cargo")]
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        folders.append(os.path.join(folder, ".cargo"))
    for place in map(os.path.dirname, folders):
        yield from (os.path.join(place, name) for name in ("rust-toolchain", "rust-toolchain.toml"))
    for place in (*folders, home):
        yield from (os.path.join(place, name) for name in ("config", "config.toml"))


def _caches(folder: str, argv: Sequence[str]) -> Iterator[str]:
    """What CMake was configured to, for a build in ``folder`` or in one that the command names."""
    for place in (folder, *(os.path.join(folder, word) for word in argv[1:])):
        if os.path.isdir(place) and (cache := cache_of(os.path.realpath(place))):
            yield cache


def cache_of(folder: str) -> str:
    """CMake's cache in ``folder`` or the next one above it; empty if there is none."""
    while True:
        path = os.path.join(folder, _CACHE)
        if os.path.isfile(path):
            return path
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)


def configured_from(folder: str) -> str:
    """The sources for which CMake set up a build in ``folder`` or above it; empty for any other folder."""
    cache = cache_of(folder)
    try:
        found = _HOME.search(Path(cache).read_bytes()) if cache else None
    except OSError:
        found = None
    return os.path.realpath(os.fsdecode(found[1])) if found else ""
