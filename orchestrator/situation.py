"""What building would do now: targets.toml, environment and tools as they are at this moment, planned.

Build, gate and watch start here, each time anew: a recorded plan is compared with this one, never trusted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.canonical import digest_document, seal, unseal
from orchestrator.digests import signature
from orchestrator.errors import ConfigurationError, Missing
from orchestrator.gpu_arch import find_arch
from orchestrator.model import Action, Project
from orchestrator.openable import check_named
from orchestrator.options import added_words
from orchestrator.plan import IGNORED, Surroundings, plan
from orchestrator.regular_file import read_file
from orchestrator.targets import FILE, owned_flag, parse_targets, select
from orchestrator.toolchain import (
    TOOLS,
    Nvcc,
    Toolchain,
    discover,
    find_nvcc,
    honoured,
    host_compiler_flags,
    search_path,
)
from orchestrator.workspace import Workspace, keep_if_possible


@dataclass(frozen=True, slots=True)
class Situation:
    """The plan as of now."""

    workspace: Workspace
    project: Project
    actions: tuple[Action, ...]
    """One a selected target, those that others use first."""
    toolchains: Mapping[str, Toolchain]
    """By target."""
    arch_reason: str
    """Why ``auto`` stands for what it does; empty if no target asks."""
    notes: tuple[str, ...]
    """Settings of the user's that have no effect here."""


def read_project(workspace: Workspace) -> Project:
    """targets.toml. Raises `ConfigurationError`."""
    try:
        text = read_file(workspace.targets_file).decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {FILE}: {error.strerror}", remedy="see to that file") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{FILE}: byte {error.start} is not UTF-8", remedy="save it as UTF-8"
        ) from None
    return parse_targets(text)


def survey(
    workspace: Workspace,
    names: Sequence[str],
    environ: Mapping[str, str],
    *,
    install: Callable[[Path], None] | None = None,
    remember: bool = False,
) -> Situation:
    """Plan the targets named (all if none is). ``install`` provides a toolkit if there is none.

    ``remember`` allows the answers of nvcc and the host compiler to be taken from an earlier build while the
    files that gave them look untouched; the gate does not. Raises `ConfigurationError`, `Missing`,
    `BuildFailed`.
    """
    project = read_project(workspace)
    targets = select(project, names)
    nvcc = find_nvcc(environ, workspace.toolchain)
    if nvcc is None and install is not None:
        install(workspace.toolchain)
        nvcc = find_nvcc(environ, workspace.toolchain)
    if nvcc is None:
        raise Missing(
            "no nvcc: not on the PATH, in CUDA_HOME, CUDA_PATH or /usr/local/cuda",
            remedy="`freshproof build` fetches one from PyPI",
        )
    path, caches = search_path(environ)
    asks = any(t.arch in ("auto", "native") for t in targets)
    arch, arch_reason = find_arch(environ) if asks else ("", "")
    surroundings = Surroundings(
        nvcc=nvcc.path,
        search_path=path,
        honoured=honoured(environ),
        arch=arch,
        libraries=_libraries(nvcc),
    )
    known = {t.name: t for t in project.targets}
    answers = _Answers(workspace.root, workspace.cache("toolchain.json") if remember else None)
    added = added_words(surroundings.honoured)
    _check_added(surroundings.honoured)
    for target in targets:
        check_named(workspace.root, target, surroundings.honoured)
    toolchains = {
        t.name: answers.ask(nvcc, path, surroundings.honoured, host_compiler_flags(t.flags, added))
        for t in targets
    }
    answers.save()
    return Situation(
        workspace=workspace,
        project=project,
        actions=tuple(plan(t, known, surroundings) for t in targets),
        toolchains=toolchains,
        arch_reason=arch_reason,
        notes=(*_notes(environ), *(f"{c} is a compiler cache and is passed over" for c in caches)),
    )


def _libraries(nvcc: Nvcc) -> tuple[str, ...]:
    """The folder of a toolkit from PyPI in which its static libraries lie, where nvcc does not look."""
    top = Path(nvcc.path).parent.parent
    if (top / "lib" / "libcudart_static.a").is_file() and not (top / "lib64").exists():
        return (str(top / "lib"),) if not (top / "targets").exists() else ()
    return ()


def _check_added(honoured: Sequence[tuple[str, str]]) -> None:
    """What cannot be set in `flags` cannot be set in nvcc's variables. Raises `ConfigurationError`."""
    for name, value in honoured:
        found = owned_flag(added_words([(name, value)]))
        if found:
            raise ConfigurationError(
                f"{name}: `{found[0]}` cannot be set here", remedy=f"{found[1]}; unset {name}"
            )


def _notes(environ: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is set and has no effect on builds: write its flags into {FILE}"
        for name in IGNORED
        if environ.get(name)
    ]


_KEPT = [field.name for field in fields(Toolchain)]
"""What is kept of a toolchain; another release may keep more."""


class _Answers:
    """Toolchains already asked for, in this process and, with a ``file``, by earlier ones."""

    def __init__(self, root: Path, file: Path | None) -> None:
        self._root = root
        self._file = file
        self._kept: dict[str, Any] = _load(file) if file else {}
        self._here: dict[str, Toolchain] = {}
        self._changed = False

    def ask(
        self, nvcc: Nvcc, path: str, variables: tuple[tuple[str, str], ...], flags: tuple[str, ...]
    ) -> Toolchain:
        key = digest_document([_KEPT, __version__, nvcc.path, nvcc.reason, path, variables, flags])
        if key not in self._here:
            found = self._kept_one(nvcc, path, key)
            if found is None:
                found = discover(nvcc, path, variables, flags, str(self._root))
                self._kept[key] = {"toolchain": asdict(found), "seen": _seen(nvcc.path, path, found)}
                self._changed = True
            self._here[key] = found
        return self._here[key]

    def _kept_one(self, nvcc: Nvcc, path: str, key: str) -> Toolchain | None:
        """The answer of an earlier build, if what it depends on looks as it did."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        found = _toolchain(kept["toolchain"])
        return found if kept["seen"] == _seen(nvcc.path, path, found) else None

    def save(self) -> None:
        if self._file is not None and self._changed:
            keep_if_possible(self._file, seal({"toolchains": self._kept}))


def _seen(nvcc: str, path: str, toolchain: Toolchain) -> list[list[Any]]:
    """What the answers depend on: the files asked, the folders in which these look for others, which change
    when a file appears in them, and what the PATH gives for each tool's name.
    """
    own = [str(Path(full).parent) for role, full in toolchain.components if role in ("cicc", "nvcc")]
    looked = os.pathsep.join((*reversed(own), path))  # nvcc puts its own folders first
    found: list[list[Any]] = [[name, shutil.which(name, path=looked)] for name in TOOLS]
    for name in (nvcc, *(full for _role, full in toolchain.components), *toolchain.places):
        try:
            found.append([name, *signature(os.stat(name))])  # noqa: PTH116
        except OSError:
            found.append([name])
    return found


def _toolchain(kept: Mapping[str, Any]) -> Toolchain:
    return Toolchain(
        nvcc=kept["nvcc"],
        reason=kept["reason"],
        version=kept["version"],
        search_path=kept["search_path"],
        components=tuple((role, full) for role, full in kept["components"]),
        toolkit_includes=tuple(kept["toolkit_includes"]),
        system_includes=tuple(kept["system_includes"]),
        places=tuple(kept["places"]),
    )


def _load(file: Path) -> dict[str, Any]:
    """Answers of an earlier build; a damaged file counts as none."""
    try:
        kept: dict[str, Any] = unseal(read_file(file))["toolchains"]
    except (OSError, ValueError, KeyError):
        return {}
    return kept
