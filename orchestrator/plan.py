"""From a target to its action: the command, its environment and the files that the plan itself writes.

Pure. All paths are relative to the project's root, where the command runs, so that no folder name reaches
the artifact. Every target has a private folder ``build/work/<unit>``: two nvcc runs that share a keep folder
corrupt each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import stamp
from orchestrator.model import Action, Generated, Kind, Target
from orchestrator.targets import unit_of

HONOURED = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")
"""Variables of nvcc's own interface: passed on, and part of the action."""

IGNORED = (
    "PTXAS_FLAGS", "NVVM_FLAGS", "CUDAFE_FLAGS", "FATBINARY_FLAGS", "NVLINK_FLAGS",
    "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES",
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH",
    "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "GCC_COMPARE_DEBUG", "LD_RUN_PATH",
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
)  # fmt: skip
"""Variables that change what nvcc or the host compiler does and stay outside of the allow-list."""

_SUFFIX = {Kind.CUBIN: ".cubin", Kind.SHARED_LIBRARY: ".so"}
_KIND_FLAGS: Mapping[Kind, tuple[str, ...]] = {
    Kind.CUBIN: ("-cubin",),
    # Without `-x c++` it links and then fails to load; gnu-unique symbols of two libraries run old code.
    Kind.SHARED_LIBRARY: ("-x", "c++", "-shared", "-cudart", "none", "-Xcompiler", "-fPIC,-fno-gnu-unique"),
}
_LINKS = frozenset({Kind.SHARED_LIBRARY})


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
    arch_reason: str


def work_folder(target: Target) -> str:
    """The target's private folder, relative to the root."""
    return f"build/work/{unit_of(target.name)}"


def product_name(target: Target) -> str:
    """File name of the artifact."""
    return target.name + _SUFFIX[target.kind]


def depfile(target: Target) -> str:
    """Where nvcc writes what the compile read."""
    return f"{work_folder(target)}/compile.d"


def link_depfile(target: Target) -> str | None:
    """Where ld writes what the link read; `None` for a kind that does not link."""
    return f"{work_folder(target)}/link.d" if target.kind in _LINKS else None


def output(target: Target) -> str:
    """Where the command writes the product, before it gets a path of its own."""
    return f"{work_folder(target)}/{product_name(target)}"


def plan(target: Target, surroundings: Surroundings) -> Action:
    """The action that builds ``target`` now."""
    arch = _resolve(target.arch, surroundings)
    work = work_folder(target)
    header = Generated(f"{work}/stamp.h", stamp.header(unit_of(target.name)))
    link = link_depfile(target)
    arguments = (
        *_KIND_FLAGS[target.kind],
        *((f"-arch={arch}",) if arch else ()),
        *target.flags,
        *(f"-I{path}" for path in target.include),
        *(f"-D{definition}" for definition in target.defines),
        "-include", header.path,
        "-MD", "-MF", depfile(target),
        *(("-Xlinker", f"--dependency-file={link}") if link else ()),
        "--keep", "--keep-dir", f"{work}/keep",
        "-o", output(target),
        *target.sources,
    )  # fmt: skip
    return Action(
        target=target,
        arch=arch,
        argv=(surroundings.nvcc, *arguments),
        recipe_argv=("nvcc", *arguments),
        environment=_environment(target, surroundings),
        generated=(header,),
        options_files=options_files(arguments),
        product_name=product_name(target),
    )


def recipe_environment(environment: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The part of an action's environment that means the same on every machine."""
    return {name: value for name, value in environment if name not in ("PATH", "TMPDIR")}


def options_files(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Files of further options that a command names, for nvcc itself or handed on to another tool."""
    found: dict[str, None] = {}
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if before in ("-optf", "--options-file"):
            found.update(dict.fromkeys(argument.split(",")))
            continue
        for option in ("-optf=", "--options-file="):
            if argument.startswith(option):
                found.update(dict.fromkeys(argument.removeprefix(option).split(",")))
        value = argument.split("=", 1)[1] if argument.startswith("-X") and "=" in argument else argument
        for part in value.split(","):
            name = part.strip("\"'").removeprefix("-Wl,")
            if name.startswith("@") and len(name) > 1:
                found.setdefault(name[1:])
    return tuple(found)


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
