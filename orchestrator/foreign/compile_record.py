"""The manifest of one compile that another build system ran: recorded like an action of our own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator import manifest as manifests
from orchestrator.closure import ClosureReader, Lists
from orchestrator.commands import Commands, split_preprocessor
from orchestrator.digests import Digests
from orchestrator.directives_memory import DirectivesMemory
from orchestrator.errors import BuildFailed, Missing
from orchestrator.evidence import digest_tools
from orchestrator.foreign.made import Content
from orchestrator.foreign.reads import Reads, Unclosed, tool_path
from orchestrator.foreign.steps import Step, Tool
from orchestrator.meanwhile import ChangedMeanwhile
from orchestrator.model import Absent, Action, Closure, Kind, Manifest, Product, Target, Tools
from orchestrator.options import options_files
from orchestrator.toolchain import (
    Nvcc,
    Toolchain,
    builtin_includes,
    discover,
    honoured,
    host_compiler_flags,
)

_NOWHERE = "//"
"""Begins no name."""


@dataclass(slots=True)
class CompileRecorder:
    """Makes manifests; what it learns of tools and headers serves later ones."""

    digests: Digests
    """Of full paths."""
    reads: Reads = field(default_factory=Reads)
    directives: DirectivesMemory = field(default_factory=DirectivesMemory)
    _readers: dict[tuple[str, bool], ClosureReader] = field(default_factory=dict)
    _last: tuple[Step, Closure] | None = None
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
        if self._last is None or self._last[0] is not step:  # a step of several products has one closure
            self._last = step, self._read(step, toolchain)
        return self._last[1]

    def _read(self, step: Step, toolchain: Toolchain) -> Closure:
        folder, is_host = step.event.folder, step.tool is Tool.HOST
        reader = self._readers.get((folder, is_host))
        if reader is None:
            kind = _HostReader if is_host else _NvccReader
            reader = kind(Path(folder), Digests(Path(folder)), self.directives)
            self._readers[folder, is_host] = reader
        read = self.reads.of(step)
        lists = Lists(None, None, read.private or _NOWHERE, shared_folders=True, names=read.names)
        found = reader.read(_action(step), toolchain, step.reads_ns, last=True, lists=lists)
        return _full_paths(found, folder)


class _NvccReader(ClosureReader):
    """For compiles by nvcc: their commands name sources and products as they like."""

    def own_names(self, action: Action) -> frozenset[str]:
        """The words that name this compile's source and product."""
        names = (*action.target.sources, action.target.name)
        own = {os.path.normpath(os.path.join(self.root, name)) for name in names}
        return frozenset(w for w in action.argv[1:] if os.path.normpath(os.path.join(self.root, w)) in own)


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
