"""Flags of nvcc that a build sets itself, or that would have nvcc do something else than build. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_OUTPUT = "the output's path carries its digest"
_LIST = "the dependency list is written by every build"
_KIND = "the target's `kind` says it"
_RELOCATABLE = 'write kind = "object" and the flag `-rdc=true` for it'
_FOLDER = "each build has a private folder"
_RUN = "a build runs nothing"
_PLAN = "use `freshproof build --plan`"
_ARCH = "set `arch`"
_QUESTION = "nvcc answers a question then, and compiles nothing"

_REASONS: Mapping[str, tuple[str, ...]] = {
    _OUTPUT: ("-o", "--output-file", "-odir", "--output-directory"),
    _LIST: (
        "-M", "--generate-dependencies", "-MM", "--generate-nonsystem-dependencies",
        "-MD", "--generate-dependencies-with-compile",
        "-MMD", "--generate-nonsystem-dependencies-with-compile",
        "-MF", "--dependency-output", "-MT", "--dependency-target-name",
        "-MP", "--generate-dependency-targets",
    ),
    _KIND: (
        "-c", "--compile", "-cubin", "--cubin", "-fatbin", "--fatbin", "-ptx", "--ptx",
        "-dlink", "--device-link",
        "-lib", "--lib", "-link", "--link", "-shared", "--shared", "-E", "--preprocess", "-x", "--x",
        "-cuda", "--cuda", "-optix-ir", "--optix-ir", "-ltoir", "--ltoir",
    ),
    _RELOCATABLE: ("-dc", "--device-c"),
    'write kind = "object" for it': ("-dw", "--device-w"),
    _FOLDER: (
        "-keep", "--keep", "-keep-dir", "--keep-dir", "-save-temps", "--save-temps",
        "-objtemp", "--objdir-as-tempdir", "-clean", "--clean-targets",
    ),
    _RUN: ("-run", "--run"),
    _PLAN: ("-dryrun", "--dryrun"),
    _ARCH: ("-arch", "--gpu-architecture"),
    _QUESTION: (
        "-h", "--help", "-V", "--version", "-code-ls", "--list-gpu-code", "-arch-ls", "--list-gpu-arch",
    ),
}  # fmt: skip
_OWNED = {flag: reason for reason, flags in _REASONS.items() for flag in flags}


def find_owned(words: Sequence[str]) -> tuple[str, str] | None:
    """The first of ``words`` that cannot be set, with the reason or what to write instead."""
    for before, word in zip(("", *words), words, strict=False):
        reason = _OWNED.get(word.split("=", 1)[0])
        handed_on = before.startswith("-X")
        if reason and not (handed_on and reason == _QUESTION):  # the linker has a -h of its own
            return word, reason
    return None
