"""The whole chain on a small project with a real nvcc: build, verify and bench as a user runs them.

What makes the product worth having is tested here: a benchmark never runs on code that is not the source.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_project import build_project, edit, freshproof

from orchestrator.records import read_record

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "fast" / "fake_worker.py"
SOURCES = {
    "src/add.cu": '#include "add.cuh"\nextern "C" __global__ void add(int *x) { *x = sum(*x, 1); }\n',
    "src/add.cuh": '#pragma once\n#include "deep/step.cuh"\n'
    "#ifdef __CUDACC__\n#define BOTH __host__ __device__\n#else\n#define BOTH\n#endif\n"
    "BOTH inline int sum(int a, int b) { return a + b * STEP; }\n",
    "src/deep/step.cuh": "#pragma once\n#define STEP 3\n",
    "src/host.cu": '#include "add.cuh"\nextern "C" int host_add(int x) { return sum(x, 1); }\n',
    "src/unused.cuh": "// no target includes this\n",
    "manifests/targets.toml": """schema = 1
[project]
name = "small"
source-roots = ["src"]
[target.device-add]
kind = "cubin"
arch = "sm_90"
sources = ["src/add.cu"]
flags = ["-O3"]
expect.kernels = ["add"]
[target.host-add]
kind = "shared-library"
sources = ["src/host.cu"]
flags = ["-O2"]
[workload.small]
command = ["python", "work.py", "honest"]
uses = ["host-add", "device-add"]
samples = 2
""",
}


def bench(root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return freshproof(root, "bench", "small", "--json", **variables)


def records(root: Path) -> list[Path]:
    return sorted((root / "build" / "records").glob("*.jsonl"))


def findings(run: subprocess.CompletedProcess[str]) -> list[dict]:
    """Every finding of a refused benchmark."""
    (result,) = json.loads(run.stdout)["runs"]
    return [finding for verdict in result["verdicts"] for finding in verdict["findings"]]


@pytest.fixture
def project(tmp_path):
    """A small project, just built."""
    return build_project(tmp_path / "small", {**SOURCES, "work.py": FAKE.read_text()})


def artifact(root: Path, suffix: str) -> Path:
    (path,) = (root / "build" / "artifacts").rglob(f"*{suffix}")
    return path


def assert_refused(run: subprocess.CompletedProcess[str], root: Path, code: str, subject: str) -> dict:
    """Exit code 5, nothing timed, and one finding of this code about this subject."""
    assert run.returncode == 5, run.stdout + run.stderr
    assert not records(root)
    matching = [f for f in findings(run) if f["code"] == code and f["subject"].endswith(subject)]
    assert matching, findings(run)
    return matching[0]


def test_what_was_just_built_is_timed(project):
    run = bench(project)
    assert run.returncode == 0, run.stdout + run.stderr
    (result,) = json.loads(run.stdout)["runs"]
    assert (result["state"], result["samples"]) == ("fresh", 2)
    assert {a["target"] for a in result["artifacts"]} == {"host-add", "device-add"}
    assert (project / result["record"]).is_file()
    assert freshproof(project, "verify").returncode == 0


EDITS = [
    ("src/add.cu", "*x, 1", "*x, 2"),
    ("src/add.cuh", "a + b", "a - b"),
    ("src/deep/step.cuh", "STEP 3", "STEP 4"),
    ("src/host.cu", "x, 1", "x, 2"),
]


@pytest.mark.parametrize(("name", "old", "new"), EDITS, ids=[edit[0] for edit in EDITS])
def test_an_edit_that_only_content_shows_is_refused_and_restoring_it_is_not(project, name, old, new):
    digest = f"sha256:{hashlib.sha256((project / name).read_bytes()).hexdigest()}"
    edit(project / name, old, new)
    finding = assert_refused(bench(project), project, "input-changed", name)
    assert finding["recorded"] == digest
    assert finding["observed"] == f"sha256:{hashlib.sha256((project / name).read_bytes()).hexdigest()}"
    edit(project / name, new, old)
    assert bench(project).returncode == 0


def test_after_a_build_the_edited_source_is_timed(project):
    before = artifact(project, ".cubin").read_bytes()
    edit(project / "src/deep/step.cuh", "STEP 3", "STEP 4")
    assert bench(project).returncode == 5
    assert freshproof(project, "build").returncode == 0
    run = bench(project)
    assert run.returncode == 0, run.stdout + run.stderr
    (result,) = json.loads(run.stdout)["runs"]
    (cubin,) = [a for a in result["artifacts"] if a["target"] == "device-add"]
    assert Path(cubin["path"]).read_bytes() != before


def test_nox_refuses_with_the_same_exit_code_and_names_file_and_digests(project):
    shutil.copy(ROOT / "noxfile.py", project)
    nox = [sys.executable, "-m", "nox", "--no-venv", "-s", "bench", "--", "small"]
    run = subprocess.run(nox, cwd=project, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    recorded = hashlib.sha256((project / "src/add.cuh").read_bytes()).hexdigest()
    edit(project / "src/add.cuh", "a + b", "a - b")
    run = subprocess.run(nox, cwd=project, capture_output=True, text=True, timeout=300)
    assert run.returncode == 5, run.stdout + run.stderr
    observed = hashlib.sha256((project / "src/add.cuh").read_bytes()).hexdigest()
    for fact in ("src/add.cuh", recorded, observed):
        assert fact in run.stderr
    assert len(records(project)) == 1


def test_a_flag_changed_after_the_build_is_refused(project):
    edit(project / "manifests/targets.toml", "-O3", "-O1")
    assert bench(project).returncode == 5
    assert not records(project)


def test_a_variable_of_nvcc_set_after_the_build_is_refused(project):
    run = bench(project, NVCC_APPEND_FLAGS="-DX")
    assert run.returncode == 5
    assert any("NVCC_APPEND_FLAGS" in json.dumps(finding) for finding in findings(run))


@pytest.mark.parametrize("name", ["CUDA_FORCE_PTX_JIT", "CUDA_INJECTION64_PATH"])
def test_a_variable_that_makes_the_driver_run_other_code_is_refused(project, name):
    assert_refused(bench(project, **{name: "1"}), project, "loader-variable", name)


@pytest.mark.parametrize("suffix", [".cubin", ".so"])
def test_one_flipped_byte_is_refused(project, suffix):
    path = artifact(project, suffix)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    finding = assert_refused(bench(project), project, "artifact-changed", "")
    assert finding["recorded"] != finding["observed"]
    assert freshproof(project, "verify").returncode == 5


def test_an_older_artifact_in_the_newer_ones_place_is_refused(project):
    older = artifact(project, ".cubin").read_bytes()
    edit(project / "src/add.cu", "*x, 1", "*x, 2")
    assert freshproof(project, "build").returncode == 0
    (newer,) = [p for p in (project / "build/artifacts").rglob("*.cubin") if p.read_bytes() != older]
    newer.chmod(0o644)
    newer.write_bytes(older)
    assert_refused(bench(project), project, "artifact-changed", "")


def test_a_missing_artifact_is_refused(project):
    artifact(project, ".cubin").unlink()
    run = bench(project)
    assert run.returncode == 5
    assert not records(project)


def test_a_kernel_that_is_not_in_the_artifact_is_refused(project):
    edit(project / "manifests/targets.toml", '["add"]', '["sub"]')
    finding = assert_refused(bench(project), project, "kernel-missing", "sub")
    assert finding["link"] == "contents"


def test_a_file_that_no_target_uses_changes_nothing_and_is_named(project):
    (project / "src/unused.cuh").write_text("// edited\n")
    assert bench(project).returncode == 0
    assert "src/unused.cuh" in freshproof(project, "build").stdout


def test_an_edit_of_the_workloads_own_source_is_in_the_record_and_runs(project):
    def sources() -> list[dict]:
        run = bench(project)
        assert run.returncode == 0, run.stdout + run.stderr
        lines = read_record(project / json.loads(run.stdout)["runs"][0]["record"])
        return next(line for line in lines if line["kind"] == "drivers")

    before = sources()
    edit(project / "work.py", '"circuit": "fake"', '"circuit": "edit"')
    after = sources()
    assert before["sources"][0]["digest"] != after["sources"][0]["digest"]
    assert (before["work"]["circuit"], after["work"]["circuit"]) == ("fake", "edit")


def test_a_source_edited_while_the_benchmark_runs_voids_it(project):
    edit(project / "manifests/targets.toml", '"honest"', '"editor"')
    (project / "work.py").write_text(
        (project / "work.py").read_text().replace('if name == "edits-itself"', 'if name == "editor"')
    )
    assert freshproof(project, "build").returncode == 0
    run = bench(project, EDIT_THIS=str(project / "src/deep/step.cuh"))
    assert run.returncode == 5, run.stdout + run.stderr
    assert "input-changed" in [finding["code"] for finding in findings(run)]
    (record,) = records(project)
    assert read_record(record)[-1]["state"] == "void"
