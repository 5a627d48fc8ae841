"""What the makefiles that CMake wrote would run for each product: its own rule, its target's flags and files
of words, and every command of the project's own that makes something for that target.

What goes into a product and was made by a step of a compiler, archiver or linker has a plan of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.canonical import digest_document
from orchestrator.model import Digest

_CONTROL = re.compile(r"build\.make|flags\.make|cmake_clean_target\.cmake|d?link\.txt|.+\.rsp")
_OF_LINKS = re.compile(r"d?link\.txt|objects\d*\.rsp|cmake_clean_target\.cmake")
_DEPENDS = re.compile(r"^(\S+)/all: (\S+)/all$", re.MULTILINE)
_RULE = re.compile(r"([^\s:#=]+):(?: |$)")
_ECHO = "-E cmake_echo_color "
_OF_TARGETS = ("-E cmake_link_script ", "-E cmake_symlink_library ", "-E cmake_symlink_executable ")
_SCRIPT = re.compile(r" -P (?!\S*/cmake_clean(?:_target)?\.cmake)")

Plans = dict[str, tuple[Digest, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class _Target:
    folder: str
    """Relative to the folder of the build."""
    files: Mapping[str, str]
    rules: Mapping[str, tuple[str, ...]]

    def custom(self) -> dict[str, tuple[str, ...]]:
        """The rules that the project wrote itself."""
        return {
            name: lines
            for name, lines in self.rules.items()
            if not name.startswith(f"{self.folder}/")
            and not any(word in line for line in lines for word in _OF_TARGETS)
        }


def plans(tree: str, outputs: Iterable[str]) -> Plans:
    """For each of ``outputs`` (full paths) a digest of what makes it, and the files that say so.

    Left out is what no target of ``tree`` makes, and what a script of CMake takes part in: what that does is
    in no makefile. Raises `OSError` if CMake's files are not there.
    """
    top = Path(tree)
    needs: dict[str, set[str]] = {}
    for target, needed in _DEPENDS.findall((top / "CMakeFiles/Makefile2").read_text("utf-8", "replace")):
        needs.setdefault(target, set()).add(needed)
    listed = (top / "CMakeFiles/TargetDirectories.txt").read_text("utf-8", "replace").splitlines()
    targets = {folder: _read(top, folder) for folder in (os.path.relpath(name, tree) for name in listed)}
    owners = {
        os.path.normpath(os.path.join(tree, name)): (target, name)
        for target in targets.values()
        for name in target.rules
    }
    found: Plans = {}
    for output in outputs:
        if output in owners:
            target, name = owners[output]
            others = [targets.get(folder) for folder in _reach(target.folder, needs)]
            rows = list(_rows(target, name, [one for one in others if one]))
            if all(others) and not any(_SCRIPT.search(text) for row in rows for text in row):
                files = [f"{tree}/{one.folder}/{file}" for one in others if one for file in one.files]
                found[output] = digest_document(rows), tuple(files)
    return found


def _rows(target: _Target, name: str, others: Iterable[_Target]) -> Iterator[list[str]]:
    is_object = name.startswith(f"{target.folder}/")
    yield [name, *target.rules[name]]
    for file, text in target.files.items():
        if file != "build.make" and not (is_object and _OF_LINKS.fullmatch(file)):
            yield [file, text]
    for other in sorted(others, key=lambda one: one.folder):
        for made, lines in sorted(other.custom().items()):
            yield [made, *lines]


def _read(top: Path, folder: str) -> _Target:
    try:
        names = sorted(name for name in os.listdir(top / folder) if _CONTROL.fullmatch(name))
    except OSError:
        names = []
    files = {name: (top / folder / name).read_text("utf-8", "surrogateescape") for name in names}
    rules: dict[str, list[str]] = {}
    at = ""
    for line in files.get("build.make", "").splitlines():
        if line.startswith("\t"):
            if _ECHO not in line:
                rules.setdefault(at, []).append(line.strip())
        elif rule := _RULE.match(line):
            at = rule[1]
    return _Target(folder, files, {name: tuple(lines) for name, lines in rules.items()})


def _reach(start: str, below: Mapping[str, set[str]]) -> set[str]:
    reached, queue = {start}, [start]
    while queue:
        new = below.get(queue.pop(), set()) - reached
        reached |= new
        queue += new
    return reached
