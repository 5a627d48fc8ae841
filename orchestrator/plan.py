"""From a target to its action: the command, its environment and the files that the plan itself writes.

Pure. All paths are relative to the project's root, where the command runs, so that no folder name reaches
the artifact. Every target has a private folder ``build/work/<unit>``: two nvcc runs that share a keep folder
corrupt each other.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import stamp
from orchestrator.kinds import (
    is_host_library,
    is_stamped,
    is_stamped_on_device,
    kind_flags,
    links,
    product_name,
)
from orchestrator.model import Action, Generated, Kind, Target
from orchestrator.options import added_words, options_files
from orchestrator.targets import unit_of

HONOURED = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")
"""Variables of nvcc's own interface: passed on, and part of the action."""

WORK = "build/work"
"""Below it lie the scratch folders of all targets, relative to the root."""

IGNORED = (
    "PTXAS_FLAGS", "NVVM_FLAGS", "CUDAFE_FLAGS", "FATBINARY_FLAGS", "NVLINK_FLAGS",
    "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES",
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH",
    "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "GCC_COMPARE_DEBUG", "LD_RUN_PATH",
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
)  # fmt: skip
"""Variables that change what nvcc or the host compiler does and stay outside of the allow-list."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the world contributes to a plan, as found now."""

    nvcc: str
    """Full path of the nvcc that is run."""
    search_path: str
    """PATH of the action: only the folders that hold tools of a build."""
    honoured: tuple[tuple[str, str], ...]
    """Those of `HONOURED` that are set."""
    arch: str
    """What ``auto`` and ``native`` stand for."""
    libraries: tuple[str, ...] = ()
    """Folders of the toolkit's libraries that nvcc does not search by itself."""


def work_folder(target: Target) -> str:
    """The target's private folder, relative to the root."""
    return f"{WORK}/{unit_of(target.name)}"


def depfile(target: Target) -> str | None:
    """Where nvcc writes what the compile read; `None` for a target that compiles nothing."""
    return f"{work_folder(target)}/compile.d" if target.sources else None


def link_depfile(target: Target) -> str | None:
    """Where ld writes what the link read; `None` for a kind that ld does not make."""
    return f"{work_folder(target)}/link.d" if links(target) else None


def output(target: Target) -> str:
    """Where the command writes the product, before it gets a path of its own."""
    return f"{work_folder(target)}/{product_name(target)}"


def stable_link(name: str) -> str:
    """The name beside the artifacts at which the newest product is found, and from which others use it."""
    return f"build/bin/{name}"


def plan(target: Target, known: Mapping[str, Target], surroundings: Surroundings) -> Action:
    """The action that builds ``target`` now; ``known`` are all targets by name."""
    arch = _resolve(target.arch, surroundings)
    header = _header(target)
    members = tuple(stable_link(product_name(known[name])) for name in target.uses)
    arguments = (
        *kind_flags(target, clang=_asks_for_clang(target, surroundings)),
        *((f"-arch={arch}",) if arch else ()),
        *target.flags,
        *(f"-I{path}" for path in target.include),
        *(f"-D{definition}" for definition in target.defines),
        *(word for generated in header for word in ("-include", generated.path)),
        *_lists(target),
        "--keep", "--keep-dir", f"{work_folder(target)}/keep",
        "-o", output(target),
        *target.sources,
        *members,
    )  # fmt: skip
    libraries = tuple(f"-L{folder}" for folder in surroundings.libraries) if _wants_libraries(target) else ()
    return Action(
        target=target,
        arch=arch,
        argv=(surroundings.nvcc, *arguments, *libraries),
        recipe_argv=("nvcc", *arguments),
        environment=_environment(target, surroundings),
        generated=header,
        options_files=options_files((*arguments, *added_words(surroundings.honoured))),
        product_name=product_name(target),
        members=members,
    )


def _asks_for_clang(target: Target, surroundings: Surroundings) -> bool:
    """Whether the target's flags, else NVCC_CCBIN, name clang as the host compiler."""
    named = dict(surroundings.honoured).get("NVCC_CCBIN", "")
    for before, flag in zip(("", *target.flags), target.flags, strict=False):
        if before in ("-ccbin", "--compiler-bindir"):
            named = flag
        elif flag.startswith(("-ccbin=", "--compiler-bindir=")):
            named = flag.split("=", 1)[1]
    return posixpath.basename(named).startswith("clang")


def _header(target: Target) -> tuple[Generated, ...]:
    """The stamp's header, for a target that carries a stamp."""
    if not is_stamped(target):
        return ()
    text = stamp.header(unit_of(target.name), on_device=is_stamped_on_device(target))
    return (Generated(f"{work_folder(target)}/stamp.h", text),)


def _lists(target: Target) -> tuple[str, ...]:
    """Flags that make the tools write what they read."""
    compiled, linked = depfile(target), link_depfile(target)
    return (
        *(("-MD", "-MF", compiled) if compiled else ()),
        *(("-Xlinker", f"--dependency-file={linked}") if linked else ()),
    )


def _wants_libraries(target: Target) -> bool:
    """Whether the toolkit's own libraries are linked."""
    return (links(target) or target.kind is Kind.DEVICE_LINK) and not is_host_library(target)


def recipe_environment(environment: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The part of an action's environment that means the same on every machine."""
    return {name: value for name, value in environment if name not in ("PATH", "TMPDIR")}


def _environment(target: Target, surroundings: Surroundings) -> tuple[tuple[str, str], ...]:
    """Everything the command sees. English messages, no user settings, a private folder for scratch files."""
    values = {
        "LC_ALL": "C",
        "PATH": surroundings.search_path,
        "SOURCE_DATE_EPOCH": "0",
        "TMPDIR": f"{work_folder(target)}/tmp",
        **dict(surroundings.honoured),
    }
    return tuple(sorted(values.items()))


def _resolve(arch: str | None, surroundings: Surroundings) -> str | None:
    return surroundings.arch if arch in ("auto", "native") else arch
