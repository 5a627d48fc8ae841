"""Finds nvcc and everything that it runs, as files whose contents can be digested.

The name and version of nvcc are not its identity: an edited nvcc.profile or a swapped ptxas changes the code
while nvcc's own bytes and ``--version`` stay equal. So the toolchain is the whole set: wrapper scripts, nvcc,
its profile, every tool beside it, libdevice, crt, libnvvm, and the host compiler with the programs behind it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.ask import ask
from orchestrator.errors import BuildFailed, Missing
from orchestrator.host_compiler import LOOKED_FOR, behind, host_components, places_looked_at
from orchestrator.model import Absent
from orchestrator.options import SELECTING, handed_on
from orchestrator.plan import HONOURED
from orchestrator.tidy import tidy

PINNED_VERSION = "13.0.88"
_COMPILER_CACHES = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache", "fastbuild"})
_TOOLS = ("nvcc", "gcc", "g++", "as", "ld")
TOOLS = ("gcc", "g++", "as", "ld", "cudafe++", "ptxas", "fatbinary", "nvlink")
"""Programs that nvcc starts by their names."""
_DRIVERS = ("gcc", "g++")
_BESIDE_NVCC = ("nvcc.profile", "cudafe++", "ptxas", "fatbinary", "nvlink", "bin2c", "__nvcc_device_query")


@dataclass(frozen=True, slots=True)
class Nvcc:
    """An nvcc that was found."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Everything that takes part in a compile, by name; digests are taken elsewhere."""

    nvcc: str
    reason: str
    version: str
    search_path: str
    components: tuple[tuple[str, str], ...]
    """Role and path."""
    toolkit_includes: tuple[str, ...]
    """nvcc's own include folders, the main one first."""
    system_includes: tuple[str, ...]
    """The host compiler's built-in include folders."""
    places: tuple[str, ...] = ()
    """Folders in which a file that appears may change all of this, and names of files that would."""


def tools_that_may_appear(toolchain: Toolchain, root: str) -> Absent:
    """Names in the project's own folders at which a tool would take part if it appeared there."""
    inside = [place.removeprefix(f"{root}/") for place in toolchain.places if place.startswith(f"{root}/")]
    names = tuple(sorted({*TOOLS, *LOOKED_FOR}))
    return tuple((place, names) for place in inside)


def find_nvcc(environ: Mapping[str, str], installed: Path) -> Nvcc | None:
    """The nvcc to use: on the PATH, in CUDA_HOME, CUDA_PATH or /usr/local/cuda, or the one ``installed``."""
    for folder in environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "nvcc")
        if folder.startswith("/") and _is_program(path) and not _is_cache(path):
            return Nvcc(path, "first on the PATH")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        path = os.path.join(environ.get(variable) or "/nonexistent", "bin", "nvcc")
        if _is_program(path):
            return Nvcc(path, f"in {variable}; the PATH has none")
    for path, reason in (
        ("/usr/local/cuda/bin/nvcc", "in /usr/local/cuda; the PATH, CUDA_HOME and CUDA_PATH have none"),
        (
            str(installed / "nvidia" / "cu13" / "bin" / "nvcc"),
            "the pinned toolkit from PyPI; no other was found",
        ),
    ):
        if _is_program(path):
            return Nvcc(path, reason)
    return None


def search_path(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The folders of PATH that hold a tool of a build, in their order; and the compiler caches passed over.

    Folders without such a tool cannot matter, so another shell's PATH makes nothing stale. A compiler cache
    in front of the host compiler would answer in its place: its folder is left out.
    """
    kept: dict[str, None] = {}
    caches = []
    for folder in environ.get("PATH", "").split(os.pathsep):
        tools = [p for name in _TOOLS if _is_program(p := os.path.join(folder, name))]
        cached = [p for p in tools if _is_cache(p)]
        if not folder.startswith("/") or not tools or folder in kept:
            continue
        if cached:
            caches.append(cached[0])
        else:
            kept[folder] = None
    for folder in ("/usr/bin", "/bin"):
        kept.setdefault(folder)
    return os.pathsep.join(kept), tuple(caches)


def honoured(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables of nvcc's interface that are set."""
    return tuple((name, environ[name]) for name in HONOURED if environ.get(name))


def discover(
    nvcc: Nvcc,
    path: str,
    variables: tuple[tuple[str, str], ...],
    compiler_flags: tuple[str, ...] = (),
    folder: str = os.sep,
) -> Toolchain:
    """Ask nvcc and the host compiler what they run.

    ``compiler_flags`` are those of a target that choose the host compiler, which may be named relative to
    ``folder``. Raises `Missing` without a C++ compiler, `BuildFailed` when nvcc does not answer as nvcc does.
    """
    environment = {"PATH": path, "LC_ALL": "C", **dict(variables)}
    command = (nvcc.path, "--dryrun", "-shared", *compiler_flags, "probe.cu", "-o", "probe")
    said = ask(command, environment, folder)
    settings = dict(re.findall(r"^#\$ (\w+)=(.*)$", said, re.MULTILINE))
    here = settings.get("_HERE_")
    top = settings.get("TOP", f"{here}/..")
    drivers = _drivers(said, settings.get("PATH", path), folder)
    if here is None or not drivers:
        raise _no_answer(nvcc.path, path, variables, compiler_flags, said)
    includes = _folders(settings.get("INCLUDES", "")) + _folders(settings.get("SYSTEM_INCLUDES", ""))
    commands = [(driver, *handed_on(compiler_flags)) for driver in drivers]
    components = _once(
        [
            *_wrappers(nvcc.path, f"{here}/nvcc"),
            ("nvcc", f"{here}/nvcc"),
            *_toolkit(here, top, settings, includes),
            *(
                part
                for number, driver in enumerate(commands)
                for part in host_components(driver, number, environment, folder)
            ),
        ]
    )
    places = {place for driver in commands for place in places_looked_at(driver, environment, folder)}
    own = {os.path.dirname(path) for _role, path in components}
    version = re.search(r"V(\d+\.\d+\.\d+)", ask((nvcc.path, "--version"), environment))
    return Toolchain(
        nvcc=nvcc.path,
        reason=nvcc.reason,
        version=version.group(1) if version else "unknown",
        search_path=path,
        components=components,
        toolkit_includes=_also_real(includes),
        system_includes=_also_real(builtin_includes(drivers[-1], environment)),
        places=tuple(sorted({*places, *own, *map(os.path.dirname, own)})),
    )


def host_compiler_flags(flags: Iterable[str], added: Iterable[str] = ()) -> tuple[str, ...]:
    """Those of ``flags`` that change which programs run: the host compiler's choice and where it looks.

    ``added`` are words of nvcc's variables: nvcc reads its own among them again, and gcc's count here.
    """
    flags, found = tuple(flags), []
    for part in (*handed_on(flags), *handed_on(tuple(added))):
        if part.startswith(SELECTING):
            found += ["-Xcompiler", part]
    wanted = False
    for flag in flags:
        if wanted or flag.startswith(("-ccbin=", "--compiler-bindir=", "-m32", "-target-dir=")):
            found.append(flag)
        wanted = flag in ("-ccbin", "--compiler-bindir", "-target-dir", "--target-directory")
        if wanted:
            found.append(flag)
    return tuple(found)


def builtin_includes(driver: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The folders that a host compiler searches unasked, those that do not exist included."""
    quoted, bracketed = include_search((driver,), environment, os.sep)
    return (*quoted, *bracketed)


def include_search(
    command: tuple[str, ...], environment: Mapping[str, str], folder: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Search paths (quoted, bracketed) of a preprocessor command, as the compiler itself tells them.

    Folders that do not exist are told apart from their place in the order; they come first, where a file in
    them would be found before any other.
    """
    said = ask((*command, "-E", "-v", "-x", "c++", "/dev/null", "-o", "/dev/null"), dict(environment), folder)
    missing = re.findall(r'^ignoring nonexistent directory "(.*)"$', said, re.MULTILINE)
    found = re.search(
        r'^#include "\.\.\." search starts here:\n(.*?)'
        r"^#include <\.\.\.> search starts here:\n(.*?)^End of search",
        said,
        re.MULTILINE | re.DOTALL,
    )
    if found is None:
        raise BuildFailed(f"`{shlex.join(command)}` did not tell its search path:", details=said.strip())
    quoted, bracketed = (tuple(tidy(line[1:]) for line in part.splitlines()) for part in found.groups())
    return quoted, (*dict.fromkeys(missing), *bracketed)


def _no_answer(
    nvcc: str, path: str, variables: Iterable[tuple[str, str]], flags: Iterable[str], said: str
) -> Missing | BuildFailed:
    """The error for an nvcc that does not tell what it runs, with the settings that may be the cause."""
    said = "\n".join(line for line in said.splitlines() if not line.startswith("#$ ")).strip()
    asked = [*(f"{name}={value}" for name, value in variables), *flags]
    if asked:
        return BuildFailed(
            f"nvcc does not tell what it would run with {shlex.join(asked)}:",
            details=said,
            remedy="correct these settings: the variables of the environment, or `flags` in targets.toml",
        )
    if "host compiler" in said or "No such file" in said or "not found" in said:
        return no_compiler(path, said)
    return BuildFailed(f"{nvcc} did not answer `--dryrun`:", details=said, remedy="try another nvcc")


def no_compiler(path: str, said: str = "") -> Missing:
    """The error for a machine without a host compiler."""
    return Missing(
        f"no C++ compiler for nvcc on the PATH ({path})",
        details=said.strip()[-500:],
        remedy="install one: `apt install g++`, `dnf install gcc-c++` or `conda install gxx`",
    )


def _drivers(said: str, path: str, folder: str) -> list[str]:
    """Host compiler drivers, as full paths, in the order in which the commands name them."""
    found: dict[str, None] = {}
    for line in said.splitlines():
        command = line.removeprefix("#$ ")
        if " -D__CUDA_ARCH_LIST__=" not in command:
            continue
        words = shlex.split(command.split(" -D", 1)[0])
        named = words[0] if words else ""
        full = shutil.which(os.path.join(folder, named) if "/" in named else named, path=path)
        if full:
            found.setdefault(full)
    return list(found)


def _wrappers(found: str, real: str) -> list[tuple[str, str]]:
    """Scripts and links between the name that is run and the real nvcc, in order."""
    wrappers = [name for name in behind(found) if os.path.realpath(name) != os.path.realpath(real)]
    return [(f"wrapper/{place}", name) for place, name in enumerate(wrappers)]


def _toolkit(
    here: str, top: str, settings: Mapping[str, str], includes: Iterable[str]
) -> Iterable[tuple[str, str]]:
    """The files beside and below nvcc that take part."""
    cicc = settings.get("CICC_PATH", f"{top}/nvvm/bin")
    libdevice = settings.get("NVVMIR_LIBRARY_DIR", f"{top}/nvvm/libdevice")
    search = settings.get("PATH", "")  # as nvcc sets it, its own folders first
    for name in _BESIDE_NVCC:
        beside = f"{here}/{name}"
        found = beside if name == "nvcc.profile" else shutil.which(name, path=search) or beside
        if os.path.exists(found):
            yield name, found
    yield "cicc", f"{cicc}/cicc"
    folders = [(libdevice, "libdevice"), (f"{here}/crt", "crt")]
    folders += [(f"{top}/nvvm/lib64", "libnvvm"), (f"{top}/nvvm/lib", "libnvvm")]
    folders += [(f"{include}/crt", "include/crt") for include in includes]
    for folder, role in folders:
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                if os.path.isfile(f"{folder}/{name}"):
                    yield f"{role}/{name}", f"{folder}/{name}"


def _also_real(folders: Iterable[str]) -> tuple[str, ...]:
    """Folders, tidied, and their names without links: gcc lists system headers under the shorter one."""
    return tuple(dict.fromkeys(name for f in folders for name in (tidy(f), os.path.realpath(f))))


def _folders(options: str) -> tuple[str, ...]:
    """Folders of nvcc's INCLUDES and SYSTEM_INCLUDES settings."""
    words = [w.removeprefix("-I").removeprefix("-isystem") for w in shlex.split(options)]
    return tuple(word for word in words if word)


def _once(components: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each file once: gcc and g++ start the same programs."""
    by_path: dict[str, str] = {}
    for role, path in components:
        by_path.setdefault(tidy(path), role)
    return tuple((role, path) for path, role in by_path.items())


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_cache(path: str) -> bool:
    return os.path.basename(os.path.realpath(path)).lower() in _COMPILER_CACHES
