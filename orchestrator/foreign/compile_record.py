"""The manifest of one compile that another build system ran: recorded like an action of our own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator import manifest as manifests
from orchestrator.closure import ClosureReader, Lists
from orchestrator.commands import Commands, split_preprocessor
from orchestrator.depfile import parse_nvcc
from orchestrator.digests import Digests
from orchestrator.errors import BuildFailed, Missing
from orchestrator.evidence import digest_tools
from orchestrator.foreign.lists import parse_rules
from orchestrator.foreign.made import Content
from orchestrator.foreign.outputs import TICK_NS
from orchestrator.foreign.steps import Step, Tool
from orchestrator.foreign.words import asking
from orchestrator.meanwhile import ChangedMeanwhile
from orchestrator.model import Absent, Action, Closure, Kind, Manifest, Product, Target, Tools
from orchestrator.options import options_files
from orchestrator.process import run
from orchestrator.toolchain import (
    Nvcc,
    Toolchain,
    builtin_includes,
    discover,
    honoured,
    host_compiler_flags,
)


class Unclosed(Exception):
    """What the compile read could not be established; the text says why."""


def tool_path(step: Step) -> str:
    """The name by which the step's program was run, in full: tools find their parts from it."""
    if step.wrapper:
        return step.wrapper
    name = step.event.argv[0]
    if "/" in name:
        return os.path.join(step.event.folder, name)
    return shutil.which(name, path=step.event.environment.get("PATH")) or step.event.program


@dataclass(slots=True)
class CompileRecorder:
    """Makes manifests; what it learns of tools and headers serves later ones."""

    digests: Digests
    """Of full paths."""
    _readers: dict[tuple[str, bool], ClosureReader] = field(default_factory=dict)
    _toolchains: dict[object, Toolchain] = field(default_factory=dict)
    _tools: dict[Toolchain, Tools] = field(default_factory=dict)

    def manifest(self, step: Step, path: str, content: Content) -> Manifest:
        """The manifest of ``path``, made by ``step``. Raises `Unclosed`."""
        try:
            toolchain = self._toolchain(step)
            closure = self._closure(step, toolchain)
        except ChangedMeanwhile as error:
            raise Unclosed(str(error)) from None
        except (BuildFailed, Missing) as error:
            raise Unclosed(error.what) from None
        tools = self._tools_of(toolchain)
        return _manifest(_action(step), step, path, content, closure, tools, toolchain)

    def tools(self, step: Step) -> Tools:
        """The programs behind a step by content. Raises `BuildFailed`, `Missing`."""
        return self._tools_of(self._toolchain(step))

    def _tools_of(self, toolchain: Toolchain) -> Tools:
        if toolchain not in self._tools:
            self._tools[toolchain] = digest_tools(toolchain.components, self.digests)
        return self._tools[toolchain]

    def _toolchain(self, step: Step) -> Toolchain:
        """Of a step: `discover` is asked in the same way when the step is judged."""
        environment = step.event.environment
        if step.tool is Tool.HOST:
            key: object = tool_path(step), step.programs, environment.get("PATH", "")
            if key not in self._toolchains:
                self._toolchains[key] = _host_toolchain(step)
            return self._toolchains[key]
        flags = host_compiler_flags(step.event.argv)
        asked = tool_path(step), environment.get("PATH", ""), honoured(environment), flags
        if asked not in self._toolchains:
            self._toolchains[asked] = discover(Nvcc(asked[0], "seen in the build"), *asked[1:])
        return self._toolchains[asked]

    def _closure(self, step: Step, toolchain: Toolchain) -> Closure:
        folder, is_host = step.event.folder, step.tool is Tool.HOST
        reader = self._readers.get((folder, is_host))
        if reader is None:
            kind = _HostReader if is_host else ClosureReader
            reader = self._readers[folder, is_host] = kind(Path(folder), Digests(Path(folder)))
        with tempfile.TemporaryDirectory(prefix="freshproof-") as private:
            names = self._names(step, private)
            lists = Lists(None, None, f"{private}/", shared_folders=True, names=names)
            found = reader.read(_action(step), toolchain, step.reads_ns, last=True, lists=lists)
        return _full_paths(found, folder)

    def _names(self, step: Step, private: str) -> tuple[str, ...]:
        """What the compile read: the build's own list, if this compile wrote it, else asked for."""
        if step.read is not None:
            return step.read
        if all(source.endswith(".s") for source in step.sources):  # no preprocessor, no list
            return step.sources
        partial = step.tool is Tool.HOST and "-MMD" in step.event.argv
        if step.lists and not partial and len(step.sources) == 1 and _written_by(step.lists, step):
            return _listed(step, step.lists)
        names: dict[str, None] = {}
        for number, source in enumerate(step.sources):  # several would write over each other's list
            path = f"{private}/{number}.d"
            others = {*step.sources} - {source}
            argv = asking([word for word in step.event.argv if word not in others], path)
            environment = {**dict(step.event.settings), "TMPDIR": private}
            ended = run((tool_path(step), *argv[1:]), environment, Path(step.event.folder))
            if ended.code:
                said = ended.said.decode("utf-8", "replace").strip()
                raise Unclosed(f"the compiler did not say what it reads: {said[-300:]}")
            names.update(dict.fromkeys(_listed(step, path)))
        return tuple(names)


def _listed(step: Step, path: str) -> tuple[str, ...]:
    """The names in a list. Raises `Unclosed`."""
    parse = parse_nvcc if step.tool is Tool.NVCC else parse_rules
    try:
        return parse(Path(step.event.folder, path).read_bytes())
    except (OSError, ValueError) as error:
        raise Unclosed(f"the dependency list {path} cannot be used: {error}") from None


class _HostReader(ClosureReader):
    """For compiles by a host compiler, whose command is the preprocessor's as well."""

    def commands(self, action: Action) -> Commands:
        """The command itself."""
        return Commands((split_preprocessor(action.argv),), ())


def _host_toolchain(step: Step) -> Toolchain:
    """The programs that were seen to take part in a host compile."""
    environment = dict(step.event.settings)
    return Toolchain(
        nvcc=tool_path(step),
        reason="seen in the build",
        version="",
        search_path=environment.get("PATH", ""),
        components=tuple((os.path.basename(path), path) for path in step.programs),
        toolkit_includes=(),
        system_includes=builtin_includes(tool_path(step), environment),
    )


def _written_by(path: str, step: Step) -> bool:
    try:
        return os.stat(path).st_mtime_ns + TICK_NS >= step.event.started_ns
    except OSError:
        return False


def _action(step: Step) -> Action:
    folder = step.event.folder + "/"
    sources = tuple(source.removeprefix(folder) for source in step.sources)
    kind = Kind.EXECUTABLE if step.mode == "join" else Kind.OBJECT
    argv = (tool_path(step), *step.event.argv[1:])
    return Action(
        target=Target(name=step.outputs[0], kind=kind, sources=sources),
        arch=None,
        argv=argv,
        recipe_argv=("nvcc", *argv[1:]),
        environment=step.event.settings,
        generated=(),
        options_files=options_files(argv[1:]),
        product_name=os.path.basename(step.outputs[0]),
    )


def _manifest(
    action: Action,
    step: Step,
    path: str,
    content: Content,
    closure: Closure,
    tools: Tools,
    toolchain: Toolchain,
) -> Manifest:
    took = (step.ended_ns or step.event.started_ns) - step.event.started_ns
    return Manifest(
        target=path,
        kind=action.target.kind,
        arch=None,
        argv=action.argv,
        environment=action.environment,
        generated=(),
        closure=closure,
        members=(),
        tools=tools,
        toolkit_version=toolchain.version,
        action_digest=manifests.action_digest(action, closure, tools),
        recipe_digest=manifests.recipe_digest(action, closure, (), tools),
        product=Product(path, content.digest, content.digest, content.size),
        seconds=took / 1e9,
        log="",
    )


def recorded_toolchain(manifest: Manifest, known: dict[object, Toolchain]) -> Toolchain:
    """The toolchain of a recorded compile of nvcc, asked for anew. Raises `BuildFailed`, `Missing`."""
    environment: Mapping[str, str] = dict(manifest.environment)
    key = (
        manifest.argv[0],
        environment.get("PATH", ""),
        honoured(environment),
        host_compiler_flags(manifest.argv),
    )
    if key not in known:
        known[key] = discover(Nvcc(key[0], "seen in the build"), *key[1:])
    return known[key]


def _full_paths(closure: Closure, folder: str) -> Closure:
    """The closure with full names, so that one reader of the disk serves the steps of all folders."""

    def full(name: str) -> str:
        return name if name.startswith("/") else os.path.normpath(os.path.join(folder, name))

    def all_full(absent: Absent) -> Absent:
        grouped: dict[str, set[str]] = {}
        for place, names in absent:
            grouped.setdefault(full(place), set()).update(names)
        return tuple((place, tuple(sorted(names))) for place, names in sorted(grouped.items()))

    common = closure.common
    return replace(
        closure,
        materials=tuple(replace(m, path=full(m.path)) for m in closure.materials),
        absent=all_full(closure.absent),
        common=manifests.make_common(
            [replace(m, path=full(m.path)) for m in common.materials], all_full(common.absent)
        ),
    )
