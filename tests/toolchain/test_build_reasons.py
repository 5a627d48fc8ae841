"""`build --explain` and the summary of a build, on a real project: every reason, or why it is fresh."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
TARGETS = """schema = 1
[target.k]
kind = "cubin"
arch = "sm_90"
sources = ["k.cu"]
include = ["first"]
[target.k.variants.quiet]
defines = ["UNREAD=1"]
[target.h]
kind = "shared-library"
sources = ["h.cu"]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("reasons")
    (root / "manifests").mkdir()
    (root / "manifests" / "targets.toml").write_text(TARGETS)
    (root / "k.cu").write_text('#include "v.cuh"\nextern "C" __global__ void k(int *p) { *p = V; }\n')
    (root / "h.cu").write_text('#include "v.cuh"\nextern "C" int f() { return V; }\n')
    (root / "v.cuh").write_text("#define V 1\n")
    code, said = run(root, "build", "k", "h")
    assert code == 0, said
    return root


@pytest.fixture
def root(built, tmp_path) -> Path:
    shutil.copytree(built, tmp_path / "tree", symlinks=True)
    return tmp_path / "tree"


def run(root: Path, *words: str, **variables: str) -> tuple[int, str]:
    environment = {**os.environ, "PATH": f"{Path(NVCC).parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *words], cwd=root, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


def test_a_target_that_was_never_built_and_one_that_is_fresh_are_explained(root):
    _code, said = run(root, "build", "--explain", "k.quiet", "h")
    assert "k.quiet: unproven\n  plan: never built here\n    -> freshproof build" in said
    assert "h: fresh\n  as recorded: artifact, contents, inputs, plan, toolchain" in said


def test_all_reasons_of_one_target_are_explained_and_the_summary_counts_them(root):
    (root / "v.cuh").write_text("#define V 2\n")
    (root / "first").mkdir()
    (root / "first" / "cuda_runtime.h").write_text("#include_next <cuda_runtime.h>\n")
    text = TARGETS.replace('"sm_90"', '"sm_80"')
    (root / "manifests" / "targets.toml").write_text(text)
    _code, said = run(root, "build", "--explain", "k", NVCC_APPEND_FLAGS="-DX")
    for reason in (
        "recorded sm_90\n    now      sm_80",
        "recorded unset\n    now      -DX",
        "v.cuh: its content changed",
        "first/cuda_runtime.h: was looked for and not found when this was compiled, and is there now",
    ):
        assert reason in said
    last = run(root, "build", "k", NVCC_APPEND_FLAGS="-DX")[1].splitlines()[-2:]
    assert "built    k" in last[0]
    assert "sm_90 -> sm_80 (+" in last[0]
    assert last[1].startswith("1 built, 0 fresh, 0 failed in ")


def test_a_stable_name_that_leads_elsewhere_is_explained_and_set_right(root):
    link = root / "build" / "bin" / "k.cubin"
    other = root / "build" / "artifacts" / "older.cubin"
    other.write_bytes(link.read_bytes() + b"\0")
    link.unlink()
    link.symlink_to("../artifacts/older.cubin")
    for words in (("build", "--explain", "k"), ("gate", "k")):
        said = run(root, *words)[1]
        assert "k: stale" in said
        assert "build/bin/k.cubin: leads to" in said
    assert run(root, "build", "k")[1].splitlines()[-2].endswith("its stable link was set right")
    assert run(root, "gate", "k")[0] == 0


def test_a_variable_of_the_driver_is_explained_and_is_no_reason_to_build(root):
    _code, said = run(root, "build", "--explain", "k", CUDA_FORCE_PTX_JIT="1")
    assert "-> unset CUDA_FORCE_PTX_JIT" in said
    assert "0 built, 1 fresh" in run(root, "build", "k", CUDA_FORCE_PTX_JIT="1")[1]


def test_a_damaged_record_is_explained_with_its_file(root):
    path = root / "build" / "manifests" / "k.json"
    path.write_bytes(path.read_bytes()[:-100])
    _code, said = run(root, "build", "--explain", "k")
    assert "build/manifests/k.json cannot be read: its bytes are not those that were written" in said


def test_variants_whose_flags_do_nothing_are_reported(root):
    said = run(root, "build")[1]
    assert "k and k.quiet have the same device code: what tells them apart does nothing" in said


def test_what_was_done_is_in_the_last_lines_however_long_the_log_is(root):
    """One line a target and the counts come last, also behind a compiler that says a lot."""
    tools = root / "tools"
    tools.mkdir()
    (tools / "nvcc").write_text(f'#!/bin/sh\nseq 5000 >&2\nexec {NVCC} "$@"\n')
    (tools / "nvcc").chmod(0o755)
    (root / "h.cu").write_text('extern "C" int f() { return 7; }\n')
    code, said = run(root, "build", "k", "h", PATH=f"{tools}:/usr/bin:/bin")
    assert code == 0
    tail = said.splitlines()[-15:]
    assert sum("built    k " in line or "built    h " in line for line in tail) == 2
    assert tail[-1].startswith("2 built, 0 fresh, 0 failed")
    assert len(said.splitlines()) < 20
    assert (root / "build" / "logs" / "h.log").read_text().count("\n") > 5000


def test_json_of_explain_holds_the_same_findings(root):
    (root / "v.cuh").write_text("#define V 2\n")
    document = json.loads(run(root, "build", "--explain", "--json")[1])
    assert document["schema"] == "freshproof/explain/1"
    states = {target["target"]: target["state"] for target in document["targets"]}
    assert states == {"k": "stale", "k.quiet": "unproven", "h": "stale"}


ODD = "x\n  fresh    k.cu", "\x1b[2Jy.cu", os.fsdecode(b"\xffz.cuh")


def test_names_of_files_cannot_write_lines_of_their_own(root):
    """A line feed that would pass for a line of the summary, an escape code, a byte that is no text."""
    for name in ODD:
        (root / name).write_text("")
    (root / "first").mkdir()
    (root / "first" / "x\ny.h").write_text("#define W 2\n")
    text = TARGETS.replace('"first"]', '"first"]\nflags = ["-include", "first/x\\ny.h", "-DW=\\u001b[2J"]', 1)
    (root / "manifests" / "targets.toml").write_text(text)
    for words in (("build",), ("build", "--explain"), ("build", "--plan"), ("clean",)):
        said = run(root, *words)[1]
        assert "\x1b" not in said
        assert "\n  fresh    k.cu" not in said
        assert not any(line.startswith("y.h") for line in said.splitlines())
    assert r"$'first/x\x0ay.h'" in run(root, "build", "--plan", "k")[1]


def test_what_a_compiler_says_cannot_act_on_the_terminal(root):
    (root / "h.cu").write_text('#error "\x1b[2J gone"\n')
    code, said = run(root, "build", "h")
    assert code == 7
    assert r"\x1b[2J gone" in said
    assert "\x1b" not in said


def test_an_edit_of_host_code_alone_leaves_the_device_code_and_that_is_said(root):
    """Such as a cudaHostRegister that is taken out: stale, though every kernel is what it was."""
    kernel = "__global__ void k(int *p) { *p = 1; }\nint launch(int *p) { %sk<<<1, 1>>>(p); return 0; }\n"
    (root / "k.cu").write_text(kernel % "cudaHostRegister(p, 4096, 0); ")
    text = 'schema = 1\n[target.o]\nkind = "object"\narch = "sm_90"\nsources = ["k.cu"]\n'
    (root / "manifests" / "targets.toml").write_text(text)
    assert run(root, "build")[0] == 0
    (root / "k.cu").write_text(kernel % "")
    assert run(root, "gate")[0] == 5
    assert "input changed: k.cu (device code unchanged)" in run(root, "build")[1]
    (root / "k.cu").write_text((kernel % "").replace("= 1", "= 2"))
    assert "unchanged" not in run(root, "build")[1]


def test_what_is_left_of_a_target_that_is_no_longer_defined_is_said(root):
    text = TARGETS[: TARGETS.index("[target.h]")]
    (root / "manifests" / "targets.toml").write_text("\ufeff" + text)
    assert "note: h is no longer defined; `freshproof clean h` removes" in run(root, "build", "k")[1]
    assert run(root, "clean", "h")[0] == 0
    assert "no longer defined" not in run(root, "build", "k")[1]
    (root / "manifests" / "targets.toml").write_text("schema = 1\n")
    assert "defines no target" in run(root, "build")[1]
