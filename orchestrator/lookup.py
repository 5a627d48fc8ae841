"""Names that a compile looked for and did not find: a file that appears at one of them changes the build.

The dependency list tells what was found, not what was tried before. This module works it out from the include
directives of the closure and the search path. It errs on the side of naming too much (a directive in a branch
that is switched off counts), never too little: what it cannot follow, it reports.

Pure: bytes and listings in, names out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_GAP = rb"(?:[ \t]|/\*.*?\*/)*"
_INCLUDE = re.compile(
    rb"(?:#|%:)"
    + _GAP
    + rb"(include_next|include|import|embed)\b"
    + _GAP
    + rb'(?:"([^"\n]+)"|<([^>\n]+)>|([A-Za-z_]\w*))'
)
_ASKED = re.compile(rb"\(\s*<([^<>\n()]+)>\s*\)")
"""A name in brackets and parentheses: ``__has_include``, or a macro that stands for it, in use."""
_ASKED_QUOTED = re.compile(rb'(?i:has_(?:include|embed)\w*)\s*\(\s*"([^"\n]+)"')
_CONDITION = re.compile(
    rb"^[ \t]*(?:#|%:)" + _GAP + rb"(?:(?:el)?if\b|define[ \t]+\w+[ \t]).*$", re.MULTILINE
)
_IN_CONDITION = re.compile(rb'\(\s*"([^"\n]+)"\s*\)')
_BY_NAME = re.compile(rb"\b__has_(?:include|embed)(?:_next)?\s*\(\s*([A-Za-z_]\w*)")
_DEFINED = re.compile(rb"#" + _GAP + rb'define\s+(\w+)\s+(?:"([^"\n]+)"|<([^>\n]+)>)')
_INCBIN = re.compile(rb'\.incbin\s*(?:\\?"([^"\\\n]+)\\?")?')
_ASM_INCLUDE = re.compile(rb'\.include\s+(?:\\"([^"\\\n]+)\\"|"([^"\\\n()]+)"(?=[^\n]*\)[^"\n]*")|"(?=\s))')
"""In a string, in a raw string, or in a string that ends before the name."""

_DATED = re.compile(rb"^(?![ \t]*//(?!.*\*/)).*__TIMESTAMP__", re.MULTILINE)
"""On a line that is not as a whole a comment."""

PRECOMPILED = ".gch"
"""Ending of a precompiled header's name."""


@dataclass(frozen=True, slots=True)
class Directives:
    """What one file asks the preprocessor to find."""

    quoted: frozenset[str] = frozenset()
    bracketed: frozenset[str] = frozenset()
    nexts: frozenset[str] = frozenset()
    """Names of ``#include_next`` and ``__has_include``: places behind the first hit count as well."""
    computed: frozenset[str] = frozenset()
    """Macros that stand for a name in an include directive."""
    tested: frozenset[str] = frozenset()
    """Macros that stand for a name inside ``__has_include``."""
    macros: tuple[tuple[str, str, bool], ...] = ()
    """Macros whose value may be a header's name: macro, name, quoted."""
    dated: bool = False
    """Puts the time stamp of a file into the code."""
    incbins: frozenset[str] = frozenset()
    """Files that the assembler takes in (.incbin, .include); an empty name is one that is not written out."""


@dataclass(frozen=True, slots=True)
class SearchPath:
    """Folders in the order in which the preprocessor looks, those that do not exist included."""

    quoted: tuple[str, ...]
    bracketed: tuple[str, ...]
    real: Mapping[str, str] = field(default_factory=dict)
    """Folders by their names without links, under which the compiler may list what it found there."""


def read_directives(data: bytes) -> Directives:
    """Scan one source file."""
    if b"\\\n" in data or b"\\\r\n" in data:
        data = data.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    quoted, bracketed, nexts, computed = set(), set(), set(), set()
    for word, quote, bracket, name in _INCLUDE.findall(data):
        if word == b"include_next" and (quote or bracket):
            nexts.add(_text(quote or bracket))
        elif quote:
            quoted.add(_text(quote))
        elif bracket:
            bracketed.add(_text(bracket))
        if name:
            computed.add(_text(name))
    asked = {_text(name) for name in (*_ASKED.findall(data), *_ASKED_QUOTED.findall(data))}
    tested: set[str] = set()
    for line in _CONDITION.findall(data):
        if b"(" in line:
            asked.update(map(_text, _IN_CONDITION.findall(line)))
            tested.update(map(_text, _BY_NAME.findall(line)))
    macros = tuple((_text(m), _text(q or b), bool(q)) for m, q, b in _DEFINED.findall(data))
    incbins = set(map(_text, _INCBIN.findall(data))) if b".incbin" in data else set()
    if b".include" in data:
        incbins.update(_text(escaped or raw) for escaped, raw in _ASM_INCLUDE.findall(data))
    return Directives(
        quoted=frozenset(quoted),
        bracketed=frozenset(bracketed),
        nexts=frozenset(nexts | asked),
        computed=frozenset(computed),
        tested=frozenset(tested),
        macros=macros,
        dated=b"__TIMESTAMP__" in data and bool(_DATED.search(data)),
        incbins=frozenset(incbins),
    )


Macros = Mapping[str, frozenset[tuple[str, bool]]]
"""Values of macros that may be a header's name: macro to names, each with whether it is quoted."""


def absent_names(
    files: Mapping[str, Directives], macros: Macros, search: SearchPath, exists: Callable[[str], bool]
) -> tuple[set[str], tuple[str, ...]]:
    """Names that must stay absent, and in words what could not be followed, with what to do behind ``->``.

    ``files`` are of one closure, with their directives; ``exists`` tells whether a file is there now.
    """
    absent: set[str] = set()
    for path, directives in files.items():
        folder = posixpath.dirname(path)
        near = (folder, *search.quoted, *search.bracketed)
        quoted, bracketed = set(directives.quoted), set(directives.bracketed)
        for macro in directives.computed | directives.tested:
            for name, is_quoted in macros.get(macro, ()):
                (quoted if is_quoted else bracketed).add(name)
        for name in quoted:
            _until_found(name, near, exists, absent)
        for name in bracketed:
            _until_found(name, search.bracketed, exists, absent)
        for name in directives.nexts:
            absent.update(c for c in _candidates(name, near) if not exists(c))
    _shadows(files, search, exists, absent)
    return absent, _unfollowed(files, macros.keys())


def absent_forced(names: Iterable[str], search: SearchPath, exists: Callable[[str], bool]) -> set[str]:
    """The same for names of ``-include``, which are looked for in the working folder first.

    In the place of the first header gcc takes a precompiled one beside it, without a look at the header, and
    lists neither.
    """
    absent: set[str] = set()
    for name in names:
        for candidate in _candidates(name, ("", *search.quoted, *search.bracketed)):
            if not exists(candidate + PRECOMPILED):
                absent.add(candidate + PRECOMPILED)
            if exists(candidate):
                break
            absent.add(candidate)
    return absent


def named_macros(
    files: Iterable[Directives], definitions: Iterable[str]
) -> dict[str, frozenset[tuple[str, bool]]]:
    """Every value that a macro is given in ``files`` or by the ``-D`` options ``definitions``."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for directives in files:
        for macro, name, quoted in directives.macros:
            found.setdefault(macro, set()).add((name, quoted))
    for definition in definitions:
        macro, _, value = definition.partition("=")
        value = value.replace("\\", "")
        if len(value) > 2 and value[0] + value[-1] in ('""', "<>"):
            found.setdefault(macro, set()).add((value[1:-1], value[0] == '"'))
    return {macro: frozenset(values) for macro, values in found.items()}


def find_libraries(
    command: Sequence[str], suffixes: Sequence[str], exists: Callable[[str], bool]
) -> tuple[list[str], set[str]]:
    """What the ``-l`` options of a link command name in its ``-L`` folders: files, and names tried before.

    The linker's built-in folders are not searched here: what ld finds there, its own list tells.
    """
    folders = [word[2:] for word in command if word.startswith("-L") and len(word) > 2]
    found: list[str] = []
    absent: set[str] = set()
    for word in command:
        if not word.startswith("-l") or len(word) < 3:
            continue
        for candidate in (f"{folder}/lib{word[2:]}{suffix}" for folder in folders for suffix in suffixes):
            if exists(candidate):
                found.append(candidate)
                break
            absent.add(candidate)
    return found, absent


def group_by_folder(names: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names by their folder, both sorted: one listing of a folder answers for all of its names."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, base = posixpath.split(name)
        folders.setdefault(folder, []).append(base)
    return tuple((folder, tuple(sorted(set(bases)))) for folder, bases in sorted(folders.items()))


def _candidates(name: str, folders: Iterable[str]) -> Iterable[str]:
    if name.startswith("/"):
        return (name,)
    return (f"{folder}/{name}" if folder else name for folder in folders)


def _until_found(name: str, folders: Iterable[str], exists: Callable[[str], bool], absent: set[str]) -> None:
    """Add the places tried before the first hit."""
    for candidate in _candidates(name, folders):
        if exists(candidate):
            return
        absent.add(candidate)


def _shadows(
    files: Iterable[str], search: SearchPath, exists: Callable[[str], bool], absent: set[str]
) -> None:
    """Each file found in one search folder would be hidden by one of that name in an earlier folder.

    This holds however its name was spelled, so it covers names that macros put together.
    """
    order = (*search.quoted, *search.bracketed)
    prefixes = [(n, p + "/") for n, f in enumerate(order) for p in {f, search.real.get(f, f)} if n]
    for path in files:
        for position, prefix in prefixes:
            if path.startswith(prefix):
                name = path[len(prefix) :]
                absent.update(c for c in _candidates(name, order[:position]) if not exists(c))


def _unfollowed(files: Mapping[str, Directives], known: Collection[str]) -> tuple[str, ...]:
    unknown = []
    for path, directives in files.items():
        for macro in sorted(directives.tested.difference(known)):
            unknown.append(
                f"{path}: __has_include({macro}): the macro's value cannot be followed -> write the name"
            )
        if directives.dated:
            unknown.append(
                f"{path}: __TIMESTAMP__ puts a time stamp into the code, which no content tells -> remove it"
            )
        if "" in directives.incbins:
            unknown.append(
                f"{path}: .incbin or .include without a name in quotes cannot be followed -> write one"
            )
    return tuple(unknown)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
