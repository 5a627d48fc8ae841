"""A project in which every way of reading a file occurs, its toolkit, and wrappers in front of its nvcc."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from small_project import edit, lay_out

from orchestrator.build import build
from orchestrator.gate import admit
from orchestrator.model import State
from orchestrator.workspace import Workspace

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SOURCES = {
    "src/k.cu": """\
#include "a.cuh"
#include HDR
#include "other.cu"
#if __has_include("maybe.cuh")
#include "maybe.cuh"
#endif
#ifndef __CUDA_ARCH__
inline int host_only() { return 1; }
#endif
extern "C" __global__ void k(int *p) { p[threadIdx.x] = A + C + H + F + other(); }
""",
    "src/other.cu": "__device__ inline int other() { return 7; }\n",
    "src/host.cu": '#include "a.cuh"\nextern "C" int f() { return A + C; }\n',
    "inc/a.cuh": '#include "b.cuh"\n#define A 1\n',
    "inc/b.cuh": '#include "deep/c.cuh"\n',
    "inc/deep/c.cuh": "#define C 3\n",
    "inc/h.cuh": "#define H 4\n",
    "inc/forced.cuh": "#define F 5\n",
    "src/unread.cuh": "#define U\n",
    "manifests/targets.toml": """\
schema = 1
[project]
name = "cases"
source-roots = ["src", "inc"]
[target.k]
kind = "cubin"
arch = "sm_90"
sources = ["src/k.cu"]
include = ["first", "inc"]
flags = ["-include", "forced.cuh", "-DHDR=<h.cuh>"]
expect.kernels = ["k"]
[target.host]
kind = "shared-library"
sources = ["src/host.cu"]
include = ["first", "inc"]
""",
}
ASKING = 'case "$*" in *dryrun*|*version*) exec "$REAL" "$@";; esac'
"""Lines of a wrapper that let pass what compiles nothing."""


class Tree:
    """A project on disk, with its own PATH."""

    NVCC, SOURCES, TARGETS, ASKING = NVCC, SOURCES, SOURCES["manifests/targets.toml"], ASKING

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": f"{Path(NVCC).parent}:/usr/bin:/bin", "HOME": str(root)}

    def write(self, name: str, text: str) -> None:
        lay_out(self.root, {name: text})

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file's content alone: its size and time stamps stay."""
        assert len(old) == len(new)
        edit(self.root / name, old, new)

    def build(self, *names: str, **more):
        return build(Workspace(self.root), names, self.environ, jobs=2, **more)

    def results(self, *names: str) -> dict[str, str]:
        return {outcome.target: str(outcome.result) for outcome in self.build(*names).outcomes}

    def findings(self, *names: str) -> dict[str, set[tuple[str, str]]]:
        """What the gate finds, by target: code and subject."""
        admission = admit(self.root, names, self.environ)
        assert admission.admitted == all(v.state is State.FRESH for v in admission.verdicts)
        assert bool(admission.artifacts) == admission.admitted
        return {v.target: {(f.code, f.subject) for f in v.findings} for v in admission.verdicts}

    def bytes_of(self, name: str) -> bytes:
        return (self.root / "build" / "bin" / name).read_bytes()

    def manifest(self, target: str) -> dict:
        return json.loads((self.root / "build" / "manifests" / f"{target}.json").read_text())

    def own_toolkit(self) -> Path:
        """A copy of the toolkit, as links, in front of the PATH; returns its folder."""
        real = Path(NVCC).resolve()
        if real.read_bytes()[:2] == b"#!":
            real = Path("/usr/local/cuda/bin/nvcc").resolve()
        top = self.root / "cuda"
        subprocess.run(["cp", "-rs", f"{real.parents[1]}/.", str(top)], check=True)
        for link in [p for p in top.rglob("*") if p.is_symlink() and p.is_dir()]:
            inside = top / link.resolve().relative_to(real.parents[1])
            link.unlink()
            link.symlink_to(inside)
        if not (top / "nvvm" / "lib64").exists():  # as from PyPI, where nvlink does not find libnvvm
            (top / "nvvm" / "lib64").mkdir()
            (top / "nvvm" / "lib64" / "libnvvm.so").symlink_to((top / "lib" / "libnvvm.so.4").resolve())
        self.environ["PATH"] = f"{top}/bin:/usr/bin:/bin"
        return top

    def own(self, path: Path) -> Path:
        """Turn a link of such a copy into a file of its own. Never touches what lies outside of the tree."""
        path = path.parent.resolve() / path.name
        assert path.is_relative_to(self.root.resolve())
        assert path.is_symlink()
        data, mode = path.read_bytes(), path.stat().st_mode
        path.unlink()
        path.write_bytes(data)
        path.chmod(mode)
        return path

    def wrapper(self, text: str) -> Path:
        """A script called nvcc in front of the PATH; ``$REAL`` is the real one."""
        path = self.root / "wrap" / "nvcc"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nREAL={NVCC}\n{text}\n")
        path.chmod(0o755)
        self.environ["PATH"] = f"{path.parent}:/usr/bin:/bin"
        return path
