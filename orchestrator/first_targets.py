"""A first targets.toml for a project that has none, from the CUDA sources that it holds.

Pure. It reads sources as text and guesses kinds by what they define; its author corrects the rest.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping

from orchestrator.lookup import read_directives
from orchestrator.model import Kind
from orchestrator.targets import unit_of, unsafe_path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MAIN = re.compile(r"\bint\s+main\s*\(")
_ATTRIBUTE = r"(?:__\w+__\s*(?:\([^)]*\)\s*)?)*"
_KERNEL = re.compile(rf"__global__\s+{_ATTRIBUTE}void\s+{_ATTRIBUTE}(\w+)")
_C_KERNEL = re.compile(r'extern\s+"C"\s+' + _KERNEL.pattern)
_LONGEST = 90
"""Characters of a name, with room for a number behind it."""
_LAUNCH = re.compile(r"<<<")


def write_targets(name: str, sources: Mapping[str, str], others: Iterable[str]) -> str:
    """The text of a targets.toml for ``sources`` (path to text of each .cu file).

    ``others`` are all further files of the project, among which headers are looked for. Sources whose names
    nvcc must not be given are left out, with a comment that says so.
    """
    files = {*sources, *others}
    tops = {path.split("/")[0] if "/" in path else "." for path in sources}
    lines = [
        "# Written by `freshproof init`: correct kinds, flags and include folders where they are wrong.",
        "schema = 1",
        "",
        "[project]",
        f"name = {_quoted(name)}",
        f"source-roots = {_list(['.'] if '.' in tops else sorted(tops))}",
    ]
    taken: set[str] = set()
    for path in sorted(sources):
        reason = unsafe_path(path) or ("" if _is_text(path) else "is not UTF-8")
        lines.append("")
        lines += [f"# left out: {path!a} {reason}"] if reason else _target(path, sources[path], files, taken)
    return "\n".join(lines) + "\n"


def _target(path: str, text: str, files: set[str], taken: set[str]) -> list[str]:
    bare = _COMMENT.sub(" ", text)
    kernels = _C_KERNEL.findall(bare)
    if _MAIN.search(bare):
        kind = Kind.EXECUTABLE
    elif kernels and len(kernels) == len(_KERNEL.findall(bare)) and not _LAUNCH.search(bare):
        kind = Kind.CUBIN
    else:
        kind = Kind.OBJECT
    lines = [f"[target.{_name(path, taken)}]", f'kind = "{kind}"', f"sources = {_list([path])}"]
    include = _include_folders(path, text, files)
    if include:
        lines.append(f"include = {_list(include)}")
    lines.append('flags = ["-O3"]')
    if kind is Kind.CUBIN:
        lines.append(f"expect.kernels = {_list(kernels)}")
    return lines


def _name(path: str, taken: set[str]) -> str:
    """The shortest end of the path that is a name of its own, else one with a number."""
    parts = posixpath.splitext(path)[0].split("/")
    name = ""
    for count in range(1, len(parts) + 1):
        name = _allowed("-".join(parts[-count:]))
        if name and unit_of(name) not in taken:
            taken.add(unit_of(name))
            return name
    name, number = (name, 2) if name else ("target", 1)
    while unit_of(f"{name}-{number}") in taken:
        number += 1
    taken.add(unit_of(f"{name}-{number}"))
    return f"{name}-{number}"


_LETTERS = {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O"} | {
    "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "þ": "th", "Þ": "Th", "ð": "d", "µ": "u",
}  # fmt: skip
"""Letters that Unicode does not take apart into a plain one and its marks."""


def _allowed(text: str) -> str:
    """What a target's name may hold of ``text``, letters without their marks; perhaps nothing."""
    apart = unicodedata.normalize("NFKD", "".join(_LETTERS.get(c, c) for c in text))
    bare = "".join(c for c in apart if not unicodedata.combining(c))
    return re.sub(r"[^A-Za-z0-9_-]+", "-", bare).strip("-").lstrip("_-")[:_LONGEST]


def _include_folders(path: str, text: str, files: set[str]) -> list[str]:
    """Folders that hold what a source includes and does not have beside it."""
    folders: dict[str, None] = {}
    directives = read_directives(text.encode("utf-8", "surrogateescape"))
    for name in sorted(directives.quoted | directives.bracketed):
        if posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) in files:
            continue
        holders = [file.removesuffix(f"/{name}") for file in files if file.endswith(f"/{name}")]
        usable = [folder for folder in holders if not unsafe_path(folder) and _is_text(folder)]
        if usable:
            folders.setdefault(min(usable, key=lambda folder: (folder.count("/"), folder)))
    return list(folders)


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(map(_quoted, values)) + "]"


def _quoted(text: str) -> str:
    """A TOML basic string."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def _is_text(path: str) -> bool:
    """Whether a file's name is UTF-8; names that are not carry surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in path)
