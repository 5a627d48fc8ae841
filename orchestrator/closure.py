"""The closure of an action, read from the disk after its command has run.

Everything that the compile read, with digests; everything that it looked for and did not find; and in words
what could not be followed. A file that changed while the command ran makes the whole closure untrustworthy:
the change time of its inode tells, also when the content was put back.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import depfile, lookup
from orchestrator.commands import Commands, library_folders, list_commands
from orchestrator.digests import Digests, Unreadable
from orchestrator.directives_memory import DirectivesMemory
from orchestrator.errors import BuildFailed
from orchestrator.lookup import Directives, SearchPath
from orchestrator.manifest import make_common
from orchestrator.meanwhile import ChangedMeanwhile, check_files, check_ways
from orchestrator.model import Absent, Action, Closure, Common, Digest, Material, Origin, Target
from orchestrator.options import (
    FOLDERS_READ,
    added_words,
    all_options_files,
    chosen_inside,
    files_named,
    handed_on,
    untold,
    words_inside,
)
from orchestrator.plan import depfile as compile_list
from orchestrator.plan import link_depfile, output, work_folder
from orchestrator.regular_file import read_file
from orchestrator.tidy import forget_folders, tidy
from orchestrator.toolchain import Toolchain, include_search

_SWALLOWED = "a wrapper around nvcc or the host compiler may swallow -MD; see the log"


@dataclass(frozen=True, slots=True)
class Lists:
    """Where the tools of an action wrote what they read. Paths are full, or relative to the root."""

    compiled: str | None
    linked: str | None
    private: str
    """Start of the names of files that are the command's own."""
    shared_folders: bool = False
    """Other commands write into the project's folders at the same time, so a new state of a folder means
    something only where nothing was put into it or taken out.
    """
    names: tuple[str, ...] = ()
    """What the compile read, where that is known without a list of nvcc's."""

    @classmethod
    def of(cls, target: Target) -> Lists:
        """Those of a target of our own."""
        return cls(compile_list(target), link_depfile(target), work_folder(target) + "/")


@dataclass(frozen=True, slots=True)
class Asked:
    """What some files of a closure ask the preprocessor for."""

    absent: set[str]
    unknown: tuple[str, ...]
    """In words, what could not be followed."""
    aliases: tuple[str, ...]
    """Links through which files of the closure were found, where the compiler lists the files alone; and
    precompiled headers, which it does not list.
    """


@dataclass(slots=True)
class ClosureReader:
    """Reads closures below one root; what it learns of a file or a search path serves later targets."""

    root: Path
    digests: Digests
    memory: DirectivesMemory = field(default_factory=DirectivesMemory)
    _searches: dict[tuple[str, ...], SearchPath] = field(default_factory=dict)
    _commands: dict[tuple[str, ...], Commands] = field(default_factory=dict)
    _asked: dict[object, Asked] = field(default_factory=dict)
    _commons: dict[object, Common] = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)
    _headers: dict[Toolchain, dict[str, Material]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        forget_folders()

    def read(
        self,
        action: Action,
        toolchain: Toolchain,
        started_ns: int,
        *,
        last: bool,
        lists: Lists | None = None,
    ) -> Closure:
        """The closure of an action whose command began after ``started_ns`` (of the file system's clock).

        A file that is gone since is taken for a change, or the ``last`` time for one that the command itself
        makes and removes. ``lists`` are the target's own unless given. Raises `ChangedMeanwhile`, and
        `BuildFailed` if the tools left no usable list.
        """
        lists = lists or Lists.of(action.target)
        return _Reading(self, action, toolchain, started_ns, last, lists).closure()

    def directives(self, name: str, digest: Digest) -> Directives:
        """Include directives of a file whose content has this digest."""
        return self.memory.of(self.digests.locate(name), digest)

    def directives_now(self, name: str) -> Directives | None:
        """Include directives of a file as it is now; `None` if it cannot be read."""
        try:
            digest = self.digests.current(name)
            return None if digest is None else self.directives(name, digest)
        except (OSError, Unreadable):
            return None

    def search(self, options: tuple[str, ...], environment: Mapping[str, str]) -> SearchPath:
        """Where a preprocessor with these options looks."""
        if options not in self._searches:
            quoted, bracketed = include_search(options, environment, str(self.root))
            real = {f: os.path.realpath(self.digests.locate(f)) for f in (*quoted, *bracketed)}
            self._searches[options] = SearchPath(quoted, bracketed, real)
        return self._searches[options]

    def commands(self, action: Action) -> Commands:
        """The commands behind an action; nvcc is asked once for all that differ in their own names alone."""
        work, mark = work_folder(action.target), "\0"
        own = self.own_names(action)
        key = tuple(mark if w in own else w.replace(work, mark) for w in action.argv)
        key += tuple(f"{name}={value.replace(work, mark)}" for name, value in action.environment)
        if key not in self._commands:
            self._commands[key] = list_commands(action, self.root).renamed(work, mark)
        return self._commands[key].renamed(mark, work)

    def own_names(self, action: Action) -> frozenset[str]:
        """The words of an action's command that differ between targets built alike."""
        return frozenset((*action.target.sources, output(action.target)))

    def headers(self, toolchain: Toolchain) -> dict[str, Material]:
        """Headers that compiles with this toolchain read, as materials: most targets read the same."""
        return self._headers.setdefault(toolchain, {})

    def real(self, name: str) -> str:
        """The file's full path without links."""
        if name not in self._real:
            self._real[name] = os.path.realpath(self.digests.locate(name))
        return self._real[name]

    def asked_by_headers(self, key: object, find: Callable[[], Asked]) -> Asked:
        """What the headers of toolkit and system look for: found once for all targets that read the same."""
        if key not in self._asked:
            self._asked[key] = find()
        return self._asked[key]

    def common(self, materials: tuple[Material, ...], asked: object, absent: Callable[[], Absent]) -> Common:
        """The common part of closures with these materials, whose headers gave the answers to ``asked``."""
        key = tuple((m.path, m.digest) for m in materials), asked
        if key not in self._commons:
            self._commons[key] = make_common(materials, absent())
        return self._commons[key]


class _Reading:
    """One closure."""

    def __init__(
        self,
        reader: ClosureReader,
        action: Action,
        toolchain: Toolchain,
        started_ns: int,
        last: bool,
        lists: Lists,
    ) -> None:
        self._reader = reader
        self._digests = reader.digests
        self._action = action
        self._toolchain = toolchain
        self._started_ns = started_ns
        self._last = last
        self._lists = lists
        self._root = f"{reader.root}/"
        self._work = lists.private
        self._there: dict[str, bool] = {}
        self._own: dict[str, Material] = {}
        self._common: dict[str, Material] = {}
        self._lost: list[str] = []
        self._headers = reader.headers(toolchain)

    def closure(self) -> Closure:
        action = self._action
        commands = self._reader.commands(action)
        headers = [n for n in self._compiled() if not n.startswith(self._work)]
        self._take(headers, is_header=True)
        sources = {name: self._directives(name) for name in headers if name not in self._lost}
        libraries, tried = self._libraries(commands)
        linked = self._listed(self._lists.linked, depfile.parse_ld)
        incbins = sorted({name for d in sources.values() for name in d.incbins if name})
        options, literal = all_options_files(action.options_files, self._exists, self._read)
        inside = words_inside(options, self._read)
        words = (*action.argv[1:], *added_words(action.environment), *inside)
        named = [name for name in files_named(words) if self._exists(name)]
        literal.update(name for name in files_named(words) if not self._exists(name))
        others = (*map(self._shorten, (*options, *named)), *incbins, *action.members, *linked, *libraries)
        self._take((n for n in others if not n.startswith(self._work)), is_header=False)
        folders = [
            f"{name}: what an option reads in this folder cannot be followed -> name the file in the option"
            for name in sorted({w.partition("=")[2] for w in handed_on(words) if w.startswith(FOLDERS_READ)})
            if os.path.isdir(self._digests.locate(name))
        ]
        folders += [
            f"{word}: chooses programs, and stands in an options file -> write it into `flags`"
            for word in chosen_inside(inside)
        ]
        folders += [
            f"{word}: the file that it reads cannot be followed -> name it with its path in the option"
            for word in sorted({*untold(words)})
        ]
        own, common, unknown = self._looked_for(commands, sources)
        self._check_unchanged()
        lost = tuple(
            f"{name}: the compile names it, and there is no such file: it is gone, or #line names it"
            " -> put it there, or let #line name a file that is there"
            for name in self._lost
        )
        return Closure(
            materials=tuple(self._own[name] for name in sorted(self._own)),
            absent=self._grouped(own | tried | literal),
            common=common,
            unknown=(*lost, *folders, *unknown, *self._strangers(commands)),
        )

    def _read(self, name: str) -> bytes:
        return read_file(self._digests.locate(name))

    def _strangers(self, commands: Commands) -> Iterable[str]:
        """Programs that ran and are none of the toolchain's, whose digests are therefore not known."""
        known = {self._reader.real(path) for _role, path in self._toolchain.components}
        for program in commands.programs if commands.search_path else ():
            named = os.path.join(self._root, program) if "/" in program else program
            full = shutil.which(named, path=commands.search_path)
            if full is None or self._reader.real(full) not in known:
                yield (
                    f"{program}: runs in this compile, and nvcc did not tell so beforehand"
                    " -> name it with -ccbin in `flags`, not in an options file"
                )

    def _compiled(self) -> tuple[str, ...]:
        """What the compile read, its source among it."""
        target = self._action.target
        compiled = tuple(dict.fromkeys(map(self._shorten, self._lists.names)))
        compiled = compiled or self._listed(self._lists.compiled, depfile.parse_nvcc)
        for source in target.sources:
            if os.path.normpath(source) not in compiled:
                raise BuildFailed(
                    f"{target.name}: the dependency list of the compile does not name {source}",
                    remedy=_SWALLOWED,
                )
        return compiled

    def _listed(self, path: str | None, parse: Callable[[bytes], tuple[str, ...]]) -> tuple[str, ...]:
        """Names of a dependency list, tidied; none for a step that writes no list."""
        if path is None:
            return ()
        try:
            names = parse(read_file(self._reader.root / path))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            what = f"the dependency list {path} cannot be used: {reason}"
            raise BuildFailed(what, remedy=_SWALLOWED) from None
        return tuple(dict.fromkeys(self._shorten(name) for name in names))

    def _shorten(self, name: str) -> str:
        """Without detours, and relative to the root where it lies below it."""
        if name.startswith("/"):
            return tidy(name).removeprefix(self._root)
        if "./" in name or "//" in name:
            return tidy(self._root + name).removeprefix(self._root)
        return name

    def _take(self, names: Iterable[str], *, is_header: bool) -> None:
        """Make materials of files, the toolkit's and the system's apart from the rest."""
        action = self._action
        libraries = library_folders(action.argv)
        for name in names:
            if name in self._own or name in self._common:
                continue
            try:
                digest = self._digests.current(name)
            except Unreadable as error:
                raise ChangedMeanwhile(str(error)) from None
            if digest is None:
                self._lose(name)
            elif name in action.members:
                self._own[name] = Material(name, digest, Origin.MEMBER, "")
            else:
                known = self._headers.get(name) if is_header else None
                if known is None or known.digest != digest:
                    full = self._digests.locate(name)
                    origin, in_recipe = _origin(name, full, self._toolchain, libraries, is_header)
                    known = Material(name, digest, origin, in_recipe)
                    if is_header:
                        self._headers[name] = known
                side = self._common if known.origin in (Origin.TOOLKIT, Origin.SYSTEM) else self._own
                side[name] = known

    def _lose(self, name: str) -> None:
        if not self._last:
            raise ChangedMeanwhile(f"{name}: is gone since the compile")
        self._lost.append(name)

    def _directives(self, name: str) -> Directives:
        material = self._own.get(name) or self._common[name]
        try:
            return self._reader.directives(name, material.digest)
        except OSError as error:
            raise ChangedMeanwhile(f"{name}: {error.strerror}") from None

    def _libraries(self, commands: Commands) -> tuple[list[str], set[str]]:
        """What -l options name in -L folders, and the names tried before."""
        found: list[str] = []
        tried: set[str] = set()
        for command, suffixes in commands.links:
            files, missed = lookup.find_libraries(command, suffixes, self._exists)
            found += map(self._shorten, files)
            tried |= missed
        return found, tried

    def _looked_for(
        self, commands: Commands, sources: Mapping[str, Directives]
    ) -> tuple[set[str], Common, tuple[str, ...]]:
        """Absent names that the own files ask for, the common part, and what is unknown."""
        own_files = {name: d for name, d in sources.items() if name in self._own}
        common_files = {name: d for name, d in sources.items() if name in self._common}
        contents = tuple((name, self._common[name].digest) for name in common_files)
        named = {m for d in common_files.values() for m in (*d.computed, *d.tested)}
        own: set[str] = set()
        asked: dict[object, Asked] = {}
        unknown: dict[str, None] = {}
        for options, forced, definitions in commands.preprocessors:
            search = self._reader.search(options, dict(self._action.environment))
            macros = lookup.named_macros(sources.values(), definitions)
            mine = self._ask(own_files, macros, search, sources, forced)
            own |= mine.absent
            relevant = {m: macros[m] for m in sorted(named & macros.keys())}
            key = (contents, options, tuple(relevant.items()))
            asked[key] = self._reader.asked_by_headers(
                key,
                lambda m=relevant, s=search: self._ask(common_files, m, s, sources),  # type: ignore[misc]
            )
            unknown.update(dict.fromkeys((*mine.unknown, *asked[key].unknown)))
            self._take((*mine.aliases, *asked[key].aliases), is_header=True)
        materials = tuple(self._common[name] for name in sorted(self._common))
        common = self._reader.common(
            materials, tuple(asked), lambda: self._grouped(set().union(*(a.absent for a in asked.values())))
        )
        return own, common, tuple(unknown)

    def _ask(
        self,
        files: Mapping[str, Directives],
        macros: lookup.Macros,
        search: SearchPath,
        closure: Iterable[str],
        forced: Iterable[str] = (),
    ) -> Asked:
        """What ``files`` and ``-include`` options ask for; ``closure`` are all headers that were read."""
        hits: dict[str, None] = {}

        def exists(name: str) -> bool:
            there = self._exists(name)
            if there:
                hits[self._shorten(name)] = None
            return there

        absent, unknown = lookup.absent_names(files, macros, search, exists)
        absent |= lookup.absent_forced(forced, search, exists)
        return Asked(absent, unknown, self._aliases(hits, closure))

    def _aliases(self, hits: Iterable[str], closure: Iterable[str]) -> tuple[str, ...]:
        """Those of the names found that lead to a file of the closure, or stand for one, and are not in it.

        gcc lists a system header by the shorter of its name and its path without links. A folder of the
        toolkit or the compiler that is a link as a whole is no alias: their own programs would tell.
        """
        strange = [name for name in hits if name not in self._own and name not in self._common]
        real = {self._reader.real(name) for name in closure} if strange else set()
        builtin = (*self._toolchain.toolkit_includes, *self._toolchain.system_includes)
        aliases = []
        for name in strange:
            leads_to, full = self._reader.real(name), self._digests.locate(name)
            plain = {self._reader.real(f) + full[len(f) :] for f in builtin if full.startswith(f + "/")}
            if name.endswith(lookup.PRECOMPILED) or (leads_to in real and leads_to not in plain):
                aliases.append(name)
        return tuple(aliases)

    def _grouped(self, names: Iterable[str]) -> Absent:
        short = (self._shorten(name) for name in names)
        return lookup.group_by_folder(name for name in short if not name.startswith(self._work))

    def _exists(self, name: str) -> bool:
        """Whether a file is there. One that is there since the start only was perhaps not found."""
        if name not in self._there:
            try:
                status = os.stat(self._digests.locate(name))
            except OSError:
                self._there[name] = False
                return False
            self._there[name] = not stat.S_ISDIR(status.st_mode)
            ours = self._shorten(name).startswith(self._work)
            if self._there[name] and status.st_ctime_ns >= self._started_ns and not ours:
                raise ChangedMeanwhile(f"{name}: appeared or was written while the command ran")
        return self._there[name]

    def _check_unchanged(self) -> None:
        """No file, and no link or folder on the way to one, changed since the command began."""
        shared = self._lists.shared_folders
        check_files(self._digests, (*self._own, *self._common), self._started_ns)
        followed = [name for name in self._own if shared or not name.startswith("/")]
        check_ways(self._digests, followed, self._started_ns, shared=shared)


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
