"""What `verify` finds in objects of a real nvcc: spills, stamps, symbols, texts, old device links."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from compiles import MAIN, NVCC, PART, nvcc
from small_project import freshproof

from orchestrator.freshness import judge
from orchestrator.model import Evidence, Expectations, Kind, Link, Target
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.elf import read_elf
from orchestrator.objects.stamp import read_stamps
from orchestrator.verify import observe_contents

pytestmark = pytest.mark.toolchain

CALLED = """
__device__ __noinline__ float again(float *p, int n) {
    float r[40];
    #pragma unroll
    for (int i = 0; i < 40; i++) r[i] = p[i * 32 + n];
    float s = n > 0 ? again(p + 1, n - 1) : 0.f;
    #pragma unroll
    for (int i = 0; i < 40; i++) s += r[i] * r[(i + 7) % 40];
    return s;
}
__device__ __noinline__ float once(float x) { return x * x + 1; }
extern "C" __global__ void spilling(float *p, int n) { p[threadIdx.x] = again(p, n); }
extern "C" __global__ void clean(float *p, int n) { p[threadIdx.x] = once(p[n]); }
"""


@pytest.mark.parametrize("mode", ["whole", "relocatable", "linked"])
def test_spills_of_called_functions_are_never_none(tmp_path: Path, mode: str) -> None:
    """ptxas marks those of kernels alone, and counts no stack of a recursion: unknown is not zero."""
    (tmp_path / "called.cu").write_text(CALLED)
    flags = {"whole": ["-cubin"], "relocatable": ["-cubin", "-rdc=true"], "linked": ["-c", "-rdc=true"]}
    told = nvcc(tmp_path, *flags[mode], "-arch=sm_90", "-Xptxas=-v", "called.cu", "-o", "called")
    assert re.search(r"[1-9]\d* bytes spill stores", told)
    if mode == "linked":
        shutil.move(tmp_path / "called", tmp_path / "called.o")
        nvcc(tmp_path, "-dlink", "-cubin", "-arch=sm_90", "called.o", "-o", "called")
    functions = {one.name: one for one in read_cubin((tmp_path / "called").read_bytes()).functions}
    unknown = {name for name, one in functions.items() if one.spill_stores is None}
    recursive = {name for name, one in functions.items() if one.recursive}
    name = "_Z5againPfi"
    assert unknown == ({"spilling"} if mode == "whole" else {name})
    assert recursive == ({"spilling"} if mode == "whole" else {"spilling", name})
    assert (functions["clean"].spill_stores, functions["clean"].recursive) == (0, False)
    target = Target("called", Kind.CUBIN, ("called.cu",), expect=Expectations(no_spills=True))
    observed = observe_contents((tmp_path / "called").read_bytes(), target, "0" * 64, None)
    assert [(o.code, o.observed) for o in observed if o.code == "spills"] == [("spills", None)]
    shown = freshproof(tmp_path, "inspect", "called").stdout
    assert re.search(r"^spilling .*>=\d", shown, re.MULTILINE) or mode == "relocatable"


STAMPED = """
extern "C" { extern __attribute__((visibility("default"))) const char freshproof_stamp_host[76];
__attribute__((used)) const char freshproof_stamp_host[76] =
    "freshproof:0000000000000000000000000000000000000000000000000000000000000000";
int exported(int x) { return x + 1; } }
static int hidden(int x) { return x * 3; }
int (*keep)(int) = hidden;
const char *text = "host_text_abc";
"""
RECIPE = "fedcba9876543210" * 4


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A host library as targets of that kind are made, with a stamp."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "host.cpp").write_text(STAMPED)
    command = ["-x", "c++", "-O2", "-shared", "-Xcompiler=-fPIC", "-cudart", "none", "host.cpp", "-o", "h.so"]
    nvcc(folder, *command)
    data = (folder / "h.so").read_bytes()
    (stamp,) = read_stamps(read_elf(data))
    return data[: stamp.offset] + RECIPE.encode() + data[stamp.offset + 64 :]


HOST = Target(
    "host",
    Kind.SHARED_LIBRARY,
    ("host.cpp",),
    expect=Expectations(symbols=("exported",), texts_present=("host_text_abc",), max_code_bytes=4000),
)


def findings(data: bytes, target: Target) -> list[tuple[str, str | None]]:
    observations = observe_contents(data, target, f"sha256:{RECIPE}", None)
    verdict = judge(Evidence(target.name, frozenset({Link.CONTENTS}), observations))
    return [(finding.code, finding.observed) for finding in verdict.findings]


def test_a_host_library_and_its_mutations(library: bytes) -> None:
    assert findings(library, HOST) == []
    other = library.replace(RECIPE.encode(), b"f" * 64)
    assert findings(other, HOST) == [("stamp-differs", f"sha256:{'f' * 64}")]
    renamed = library.replace(b"freshproof_stamp_host\0", b"freshproof_stamp_hose\0")
    assert findings(renamed, HOST) == [("stamp-missing", "absent")]
    hidden = replace(HOST, expect=replace(HOST.expect, symbols=("exported", "hidden")))
    assert findings(library, hidden) == [("symbol-missing", "absent")]
    quiet = library.replace(b"host_text_abc", b"host_text_xyz")
    assert findings(quiet, HOST) == [("text-absent", "absent")]
    small = replace(HOST, expect=replace(HOST.expect, max_code_bytes=10))
    assert [code for code, _observed in findings(library, small)] == ["code-too-large"]
    assert [code for code, _o in findings(library, replace(HOST, kind=Kind.EXECUTABLE))] == ["kind-differs"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "x * global_value",
            "x * global_value * 3",
            "_Z15shared_functioni for sm_90: linked from other code",
        ),
        ("global_value = 5", "global_value = 6", "global_value for sm_90: linked with another initial value"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}", "constants for sm_90: linked with another initial value"),
    ],
)
def test_a_new_part_beside_an_old_device_link(tmp_path: Path, old: str, new: str, told: str) -> None:
    """T50: it links without error and runs the old code."""
    for name, text in (("main", MAIN), ("part", PART)):
        (tmp_path / f"{name}.cu").write_text(text)
        nvcc(tmp_path, "-c", "-rdc=true", "-arch=sm_90", f"{name}.cu", "-o", f"{name}.o")
    nvcc(tmp_path, "-dlink", "-arch=sm_90", "main.o", "part.o", "-o", "link.o")
    target = Target("program", Kind.EXECUTABLE, ("main.cu",))

    def linked() -> list[str | None]:
        libraries = [f"-L{folder}" for folder in toolkit_libraries()]
        objects = ["main.o", "part.o", "link.o"]
        command = [
            "g++",
            *objects,
            "-o",
            "program",
            *libraries,
            "-lcudart_static",
            "-ldl",
            "-lrt",
            "-lpthread",
        ]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
        data = (tmp_path / "program").read_bytes()
        return [
            o.observed for o in observe_contents(data, target, "0" * 64, None) if o.link is Link.DEVICE_LINK
        ]

    assert linked() == ["linked from these parts"]
    (tmp_path / "part.cu").write_text(PART.replace(old, new))
    nvcc(tmp_path, "-c", "-rdc=true", "-arch=sm_90", "part.cu", "-o", "part.o")
    assert linked() == [told]


def toolkit_libraries() -> list[Path]:
    """Where libcudart_static.a lies: nvcc tells in its dry run."""
    run = subprocess.run([NVCC, "--dryrun", "x.cu"], capture_output=True, text=True, timeout=60, check=False)
    told = re.findall(r'-L"?([^"\s]+)"?', run.stderr)
    return [Path(folder) for folder in dict.fromkeys(told)]
