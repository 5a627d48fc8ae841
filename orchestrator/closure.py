"""The closure of an action, read from the disk after its command has run.

Everything that the compile read, with digests; everything that it looked for and did not find; and in words
what could not be followed. A file that changed while the command ran makes the whole closure untrustworthy:
the change time of its inode tells, also when the content was put back.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import depfile, lookup
from orchestrator.digests import Digests, Unreadable
from orchestrator.errors import BuildFailed
from orchestrator.lookup import Directives, SearchPath
from orchestrator.model import Action, Closure, Digest, Material, Origin
from orchestrator.plan import depfile as compile_list
from orchestrator.plan import link_depfile, work_folder
from orchestrator.process import run
from orchestrator.tidy import tidy
from orchestrator.toolchain import Toolchain, include_search

_SETTING = re.compile(r"#\$ \w+=")


class ChangedMeanwhile(Exception):
    """A file of the closure changed while the command ran; the text names it."""


@dataclass(frozen=True, slots=True)
class _LookedFor:
    """What the commands of an action looked for beside what their lists tell."""

    absent: set[str]
    unknown: tuple[str, ...]
    libraries: list[str]


@dataclass(slots=True)
class ClosureReader:
    """Reads closures below one root; what it learns of a file or a search path serves later targets."""

    root: Path
    digests: Digests
    _directives: dict[Digest, Directives] = field(default_factory=dict)
    _searches: dict[tuple[str, ...], SearchPath] = field(default_factory=dict)

    def read(self, action: Action, toolchain: Toolchain, started_ns: int) -> Closure:
        """The closure of an action whose command began after ``started_ns`` (of the file system's clock).

        Raises `ChangedMeanwhile`, and `BuildFailed` if the tools left no usable list.
        """
        target = action.target
        work = work_folder(target) + "/"
        compiled = self._compiled(action)
        linked = self._listed(link_depfile(target), depfile.parse_ld)
        sources = {name: self._read_directives(name) for name in compiled if not name.startswith(work)}
        looked_for = self._look_up(action, sources)
        incbins = sorted({name for d in sources.values() for name in d.incbins if name})
        libraries = [n for n in (*linked, *looked_for.libraries) if not n.startswith(work)]
        others = (*action.options_files, *incbins, *action.members, *libraries)
        materials = self._materials(action, toolchain, sources, others)
        lost = tuple(f"{name}: is gone since the compile" for name in sources if not self._there(name))
        self._check_unchanged([m.path for m in materials], started_ns)
        absent = lookup.group_by_folder(n for n in looked_for.absent if not n.startswith(work))
        return Closure(materials, absent, (*lost, *looked_for.unknown))

    def _compiled(self, action: Action) -> tuple[str, ...]:
        """What the compile read, its source among it."""
        compiled = self._listed(compile_list(action.target), depfile.parse_nvcc)
        for source in action.target.sources:
            if os.path.normpath(source) not in compiled:
                raise BuildFailed(
                    f"{action.target.name}: the dependency list of the compile does not name {source}",
                    remedy="a wrapper around nvcc or the host compiler may swallow -MD; see the log",
                )
        return compiled

    def _listed(self, path: str | None, parse: Callable[[bytes], tuple[str, ...]]) -> tuple[str, ...]:
        """Names of a dependency list, tidied; none for a step that writes no list."""
        if path is None:
            return ()
        try:
            names = parse((self.root / path).read_bytes())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise BuildFailed(
                f"the dependency list {path} cannot be used: {reason}",
                remedy="a wrapper around nvcc or the host compiler may swallow -MD; see the log",
            ) from None
        return tuple(dict.fromkeys(self._shorten(name) for name in names))

    def _shorten(self, name: str) -> str:
        """Relative to the root where it lies below it."""
        if name.startswith("/"):
            name = tidy(name)
            return name.removeprefix(f"{self.root}/")
        folder = os.path.dirname(name)
        if "." in folder.split("/"):
            name = os.path.normpath(name)
        return name.removeprefix("./")

    def _read_directives(self, name: str) -> Directives:
        """Include directives of a file, by its digest; none for a file that is gone."""
        try:
            digest = self.digests.current(name)
            if digest is None:
                return Directives()
            if digest not in self._directives:
                with open(self.digests.locate(name), "rb") as file:
                    self._directives[digest] = lookup.read_directives(file.read())
            return self._directives[digest]
        except (Unreadable, OSError) as error:
            raise ChangedMeanwhile(str(error)) from None

    def _materials(
        self, action: Action, toolchain: Toolchain, sources: Iterable[str], others: Iterable[str]
    ) -> tuple[Material, ...]:
        libraries = _library_folders(action.argv)
        found: dict[str, Material] = {}
        for names, is_header in ((sources, True), (others, False)):
            for name in names:
                try:
                    digest = self.digests.current(name)
                except Unreadable as error:
                    raise ChangedMeanwhile(str(error)) from None
                if digest is None or name in found:
                    continue
                if name in action.members:
                    origin, recipe_name = Origin.MEMBER, ""
                else:
                    full = self.digests.locate(name)
                    origin, recipe_name = _origin(name, full, toolchain, libraries, is_header)
                found[name] = Material(name, digest, origin, recipe_name)
        return tuple(found[name] for name in sorted(found))

    def _look_up(self, action: Action, sources: Mapping[str, Directives]) -> _LookedFor:
        """What was looked for over all commands of the action, found or not."""
        absent: set[str] = set()
        unknown: dict[str, None] = {}
        libraries: list[str] = []
        there: dict[str, bool] = {}

        def exists(name: str) -> bool:
            if name not in there:
                there[name] = self._there(name)
            return there[name]

        seen: set[tuple[str, ...]] = set()
        for command in self._commands(action):
            if "-E" not in command:
                suffixes = (".a",) if os.path.basename(command[0]) == "nvlink" else (".so", ".a")
                found, missed = lookup.find_libraries(command, suffixes, exists)
                libraries += [self._shorten(name) for name in found]
                absent |= {self._shorten(name) for name in missed}
                continue
            options, forced, definitions = _split(command)
            key = (*options, "\0", *forced)
            if key not in seen:
                seen.add(key)
                search = self._search(options, action)
                names, lost = lookup.absent_names(sources, forced, definitions, search, exists)
                absent |= {self._shorten(name) for name in names}
                unknown.update(dict.fromkeys(lost))
        return _LookedFor(absent, tuple(unknown), libraries)

    def _commands(self, action: Action) -> list[tuple[str, ...]]:
        """The commands that nvcc runs for an action, as it tells them itself."""
        argv = (action.argv[0], "--dryrun", *action.argv[1:])
        said = run(argv, dict(action.environment), self.root).said.decode("utf-8", "surrogateescape")
        commands = []
        for line in said.splitlines():
            if line.startswith("#$ ") and not _SETTING.match(line):
                try:
                    commands.append(tuple(shlex.split(line[3:])))
                except ValueError:
                    raise BuildFailed(
                        f"{action.argv[0]} --dryrun tells a command that cannot be read: {line}"
                    ) from None
        commands = [command for command in commands if command]
        if action.target.sources and not any("-E" in command for command in commands):
            raise BuildFailed(
                f"{action.argv[0]} --dryrun tells no preprocessor command", remedy="see the log"
            )
        return commands

    def _search(self, options: tuple[str, ...], action: Action) -> SearchPath:
        if options not in self._searches:
            quoted, bracketed = include_search(options, dict(action.environment), str(self.root))
            folders = (*quoted, *bracketed)
            real = {f: os.path.realpath(self.digests.locate(f)) for f in folders}
            self._searches[options] = SearchPath(quoted, bracketed, real)
        return self._searches[options]

    def _there(self, name: str) -> bool:
        try:
            return not stat.S_ISDIR(os.stat(self.digests.locate(name)).st_mode)
        except OSError:
            return False

    def _check_unchanged(self, names: Iterable[str], started_ns: int) -> None:
        for name in names:
            try:
                changed = os.stat(self.digests.locate(name)).st_ctime_ns
            except OSError:
                raise ChangedMeanwhile(f"{name}: is gone since the compile") from None
            if changed >= started_ns:
                raise ChangedMeanwhile(f"{name}: was written, moved or touched while the command ran")


def _split(command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
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
        elif word in ("-I", "-isystem", "-iquote", "-idirafter", "-isysroot", "-B", "-imultilib"):
            kept += [word, next(words, "")]
        elif word.startswith(("-", "@")) and word not in ("-E", "-M", "-MD", "-MM", "-MMD", "-MP"):
            kept.append(word)
    return tuple(kept), tuple(forced), tuple(definitions)


def _library_folders(argv: Iterable[str]) -> tuple[str, ...]:
    """The folders of -L."""
    found = []
    words = iter(argv)
    for word in words:
        if word in ("-L", "--library-path"):
            found += next(words, "").split(",")
        elif word.startswith("-L"):
            found.append(word[2:])
    return tuple(found)


def _origin(
    name: str, full: str, toolchain: Toolchain, libraries: Iterable[str], is_header: bool
) -> tuple[Origin, str]:
    """Where a file belongs, and its name in the recipe."""
    for folder in toolchain.toolkit_includes:
        if full.startswith(folder + "/"):
            return Origin.TOOLKIT, "toolkit:" + full[len(folder) + 1 :]
    if not name.startswith("/"):
        return Origin.PROJECT, name
    own = toolchain.system_includes if is_header else ()
    if any(name.startswith(folder + "/") for folder in own):
        return Origin.SYSTEM, ""
    if not is_header and not any(name.startswith(folder + "/") for folder in libraries):
        return Origin.SYSTEM, ""
    return Origin.EXTERNAL, name
