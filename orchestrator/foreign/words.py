"""Command lines of compilers, linkers and archivers, read for what they take in and what they make. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

COMPILED = (".cu", ".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".m", ".mm", ".S", ".s", ".ptx", ".ii", ".i")
LINKED = (".o", ".obj", ".a", ".so", ".cubin", ".fatbin", ".ltoir", ".lo", ".rlib")

_NVCC_MODES = {
    "-c": ".o", "--compile": ".o", "-dc": ".o", "--device-c": ".o", "-dw": ".o", "--device-w": ".o",
    "-cubin": ".cubin", "--cubin": ".cubin", "-ptx": ".ptx", "--ptx": ".ptx",
    "-fatbin": ".fatbin", "--fatbin": ".fatbin", "-ltoir": ".ltoir", "--ltoir": ".ltoir",
    "-dlink": "_dlink.o", "--device-link": "_dlink.o", "-lib": ".a", "--lib": ".a", "-link": "", "--link": "",
}  # fmt: skip
"""What each phase option makes a product's name end in; no such option links."""
_JOINS = frozenset({"-dlink", "--device-link", "-lib", "--lib", "-link", "--link"})
_MAKES_NOTHING = frozenset({
    "-E", "--preprocess", "-M", "-MM", "--generate-dependencies", "--generate-nonsystem-dependencies",
    "--dryrun", "-dryrun", "--version", "-V", "--help", "-h", "-###", "-v", "-fsyntax-only", "-S",
    "--list-gpu-arch", "--list-gpu-code", "-dumpversion", "-dumpmachine", "-dumpfullversion",
})  # fmt: skip
_TAKES_A_NAME = frozenset({
    "-o", "--output-file", "-MF", "--dependency-output", "-MT", "--dependency-target-name", "-MQ",
    "-include", "--pre-include", "-imacros", "-optf", "--options-file", "-ccbin", "--compiler-bindir",
    "-keep-dir", "--keep-dir", "-odir", "--output-directory", "-Xlinker", "--linker-options", "-Xcompiler",
    "--compiler-options", "-Xnvlink", "-Xarchive", "-Xptxas", "-I", "-isystem", "-L", "-D", "-U", "-x",
    "-T", "-iquote", "-idirafter", "-install_name", "-Xcudafe", "-Xfatbin", "-Xnvvm",
})  # fmt: skip
_ABOUT_LISTS = frozenset({
    "-MD", "-MMD", "-MP", "-MG", "--generate-dependencies-with-compile",
    "--generate-nonsystem-dependencies-with-compile", "--generate-dependency-targets",
})  # fmt: skip
OUTPUT_OPTIONS = frozenset({
    "-MF", "--dependency-output", "-MT", "--dependency-target-name", "-MQ", "-o", "--output-file", "-odir",
    "--output-directory",
})  # fmt: skip
"""Their values say where a compile writes."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a command line says. Names are as written."""

    mode: str
    """``compile``, ``join`` (device link, archive, link) or empty: it makes nothing."""
    sources: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    lists: str | None = None
    """Where it writes the names of what it read."""
    unresolved: tuple[str, ...] = ()
    """Libraries that are in none of the folders searched, now."""
    tried: tuple[str, ...] = ()
    """Where a library would have been found before it was."""


def read_nvcc(argv: Sequence[str]) -> Command:
    """A command of nvcc."""
    words = [word.split("=", 1)[0] if word.startswith("--") else word for word in argv[1:]]
    phases = [word for word in words if word in _NVCC_MODES]
    phase = phases[-1] if phases else "-link"
    if not _MAKES_NOTHING.isdisjoint(set(words) - {"-v", "-h"}) and "-MD" not in words:
        return Command("")
    return _compiler(argv, phase, _NVCC_MODES[phase], "" if phase in _JOINS else "compile")


def read_host(argv: Sequence[str]) -> Command:
    """A command of gcc, g++, clang, clang++ or their like."""
    if not _MAKES_NOTHING.isdisjoint(argv[1:]) and "-c" not in argv:
        return Command("")
    compiles = "-c" in argv
    return _compiler(
        argv, "-c" if compiles else "-link", ".o" if compiles else "", "compile" if compiles else ""
    )


def _compiler(argv: Sequence[str], phase: str, ending: str, mode: str) -> Command:
    values = dict(_named(argv))
    given = list(_positional(argv))
    sources = tuple(word for word in given if word.endswith(COMPILED))
    objects = tuple(word for word in given if word.endswith(LINKED))
    if not sources and not objects:
        return Command("")
    output = values.get("-o") or values.get("--output-file")
    if output:
        outputs: tuple[str, ...] = (output,)
    elif mode == "compile":
        folder = values.get("-odir") or values.get("--output-directory") or ""
        outputs = tuple(posixpath.join(folder, _stem(source) + ending) for source in sources)
    else:
        outputs = ("a" + ending if ending else "a.out",)
    lists = values.get("-MF") or values.get("--dependency-output")
    if lists is None and not _ABOUT_LISTS.isdisjoint(argv) and len(outputs) == 1:
        lists = posixpath.splitext(outputs[0])[0] + ".d"
    return Command(mode or "join", sources, objects, outputs, lists)


def asking(argv: Sequence[str], lists: str) -> tuple[str, ...]:
    """The command that asks a compiler for what the compile ``argv`` reads, written to ``lists``."""
    objects = {word for word in _positional(argv) if word.endswith(LINKED)}
    dropped = {*_ABOUT_LISTS, *_NVCC_MODES, *objects}
    kept = (word for word in without_outputs(argv[1:]) if word not in dropped)
    return (argv[0], *kept, "-M", "-MF", lists)


def without_outputs(words: Sequence[str]) -> Iterator[str]:
    """The words of a compile but for where it writes."""
    left = iter(words)
    for word in left:
        if word in OUTPUT_OPTIONS:
            next(left, None)
        elif word.split("=", 1)[0] not in OUTPUT_OPTIONS and not (
            word.startswith("-o") and not word.startswith(("-odir", "-opt"))
        ):
            yield word


def _named(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options with the name that they take."""
    for before, word in pairwise(argv):
        if before in _TAKES_A_NAME:
            yield before, word
        option, found, value = word.partition("=")
        if found and option in _TAKES_A_NAME:
            yield option, value
        elif word.startswith("-o") and len(word) > 2 and not found and word not in ("-odir", "-optf"):
            yield "-o", word[2:]


def _positional(argv: Sequence[str]) -> Iterator[str]:
    for before, word in pairwise(argv):
        if before not in _TAKES_A_NAME and not word.startswith(("-", "@")):
            yield word


def _stem(source: str) -> str:
    return posixpath.splitext(posixpath.basename(source))[0]


_LD_TAKES = frozenset({
    "-m", "-z", "-e", "--entry", "-T", "--script", "-plugin", "--plugin", "-dynamic-linker",
    "--dynamic-linker", "-rpath", "--rpath", "-rpath-link", "--rpath-link", "-soname", "--soname", "-h",
    "-u", "--undefined", "-y", "-Map", "-A", "-b", "--format", "-F", "-f", "-G", "-a", "-R", "-init", "-fini",
    "--defsym", "--wrap", "-flavor", "--version-script", "--dynamic-list", "--exclude-libs", "-plugin-opt",
    "--dependency-file", "--hash-style", "-I",
})  # fmt: skip


def read_ld(argv: Sequence[str], exists: Callable[[str], bool]) -> Command:
    """A command of a linker; what ``-l`` names is looked up as the linker does."""
    folders: list[str] = []
    inputs: list[tuple[str, bool]] = []
    output, static = "a.out", False
    words = iter(argv[1:])
    for word in words:
        if word in ("-o", "--output"):
            output = next(words, output)
        elif word == "--library-path" or word.startswith("-L"):
            folders.append(word[2:] if word[2:] and word[1] == "L" else next(words, ""))
        elif word in ("-l", "--library"):
            inputs.append(("-l" + next(words, ""), static))
        elif word in ("-Bstatic", "-static", "-dn", "-non_shared"):
            static = True
        elif word in ("-Bdynamic", "-dy", "-call_shared"):
            static = False
        elif word in _LD_TAKES:
            next(words, None)
        elif word.startswith("-l") or not word.startswith("-"):
            inputs.append((word, static))
    found = {one: _library(*one, folders, exists) for one in inputs}
    names = tuple(dict.fromkeys(name for name, _tried in found.values() if name))
    lost = tuple(word for (word, _static), (name, _tried) in found.items() if name is None)
    tried = tuple(dict.fromkeys(name for _name, missed in found.values() for name in missed))
    return Command("join", objects=names, outputs=(output,), unresolved=lost, tried=tried)


def _library(
    word: str, static: bool, folders: Sequence[str], exists: Callable[[str], bool]
) -> tuple[str | None, list[str]]:
    """The file that a word of a link names, and where it was looked for before."""
    if not word.startswith("-l"):
        return word, []
    if word.startswith("-l:"):
        names: tuple[str, ...] = (word[3:],)
    else:
        names = (f"lib{word[2:]}.a",) if static else (f"lib{word[2:]}.so", f"lib{word[2:]}.a")
    return _first((posixpath.join(folder, name) for folder in folders for name in names), exists)


def _first(candidates: Iterable[str], exists: Callable[[str], bool]) -> tuple[str | None, list[str]]:
    """The first that is there, and those before it."""
    missed: list[str] = []
    for candidate in candidates:
        if exists(candidate):
            return candidate, missed
        missed.append(candidate)
    return None, missed


def read_ar(argv: Sequence[str]) -> Command:
    """A command of ar that puts members into an archive."""
    words = [word for word in argv[1:] if word not in ("--thin", "-T", "-X64", "-X32") and word[:2] != "--"]
    if len(words) < 3 or not set("rq") & set(words[0].lstrip("-")):
        return Command("")
    words = words[1:]
    while len(words) > 1 and words[0].startswith("-"):
        words = words[1:]
    return Command("join", objects=tuple(words[1:]), outputs=(words[0],))


_IN_IMAGE = re.compile(r"(?:^|,)file=([^,]+)")
_OF_DEVICE_TOOLS = (".ptx", ".cubin", ".fatbin", ".o", ".a", ".ltoir")


def read_device_tool(argv: Sequence[str]) -> Command:
    """A command of ptxas, fatbinary or nvlink that a build runs by itself."""
    output, inputs = "", []
    for before, word in pairwise(argv):
        option, found, value = word.partition("=")
        if before in ("-o", "--output-file", "-create", "--create"):
            output = word
        elif option in ("-o", "--output-file", "-create", "--create") and found:
            output = value
        elif word.startswith("-"):
            inputs += _IN_IMAGE.findall(value)
        elif word.endswith(_OF_DEVICE_TOOLS):
            inputs.append(word)
        else:
            inputs += _IN_IMAGE.findall(word)
    return Command("join", objects=tuple(inputs), outputs=(output,)) if output and inputs else Command("")


def read_rustc(argv: Sequence[str], exists: Callable[[str], bool]) -> Command:
    """A command of rustc as cargo gives it."""
    values = list(_rustc_options(argv))
    last = dict(values)
    if "--crate-name" not in last or "--print" in last or ("--out-dir" not in last and "-o" not in last):
        return Command("")
    if "link" not in last.get("--emit", "link"):
        return Command("")
    codegen = dict(v.split("=", 1) for n, v in values if n in ("-C", "--codegen") and "=" in v)
    name = last["--crate-name"] + codegen.get("extra-filename", "")
    folder = last.get("--out-dir", "")
    kinds = [k for n, v in values if n == "--crate-type" for k in v.split(",")] or ["bin"]
    if "--test" in argv:
        kinds = ["bin"]
    outputs = [last["-o"]] if "-o" in last else [posixpath.join(folder, _rust_name(name, k)) for k in kinds]
    sources = tuple(word for word in argv[1:] if word.endswith(".rs"))[:1]
    libraries = list(_rust_libraries(values, exists))
    return Command(
        "compile",
        sources=sources,
        objects=tuple(dict.fromkeys(path for path, _tried in libraries if path)),
        outputs=tuple(outputs),
        tried=tuple(dict.fromkeys(name for _path, tried in libraries for name in tried)),
        lists=posixpath.join(folder, f"{name}.d") if "dep-info" in last.get("--emit", "") else None,
    )


def _rustc_options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = iter(argv[1:])
    for word in words:
        if word in ("-C", "-l", "-L", "-o", "--extern", "--codegen", "--cfg"):
            yield word, next(words, "")
        elif word.startswith("--"):
            option, found, value = word.partition("=")
            takes = option in ("--crate-name", "--crate-type", "--out-dir", "--emit", "--print", "--edition")
            yield option, value if found or not takes else next(words, "")
        elif word[:2] in ("-C", "-l", "-L") and len(word) > 2:
            yield word[:2], word[2:]


def _rust_name(name: str, kind: str) -> str:
    forms = {"bin": "{}", "staticlib": "lib{}.a", "lib": "lib{}.rlib", "rlib": "lib{}.rlib"}
    return forms.get(kind, "lib{}.so").format(name)


def _rust_libraries(
    values: Iterable[tuple[str, str]], exists: Callable[[str], bool]
) -> Iterator[tuple[str | None, list[str]]]:
    """Native libraries and crates that go into a crate, and where each was looked for before."""
    values = list(values)
    folders = [v.split("=", 1)[-1] for n, v in values if n == "-L"]
    for option, value in values:
        if option == "-l":
            kind, found, name = value.partition("=")
            name = name if found else kind
            endings = (".a", ".so") if kind.startswith("static") else (".so", ".a")
            path, missed = _first(
                (posixpath.join(f, f"lib{name}{e}") for f in folders for e in endings), exists
            )
            yield path, missed if path else []
        elif option == "--extern" and "=" in value:
            path = value.split("=", 1)[1]
            yield path.removesuffix(".rmeta") + ".rlib" if path.endswith(".rmeta") else path, []
