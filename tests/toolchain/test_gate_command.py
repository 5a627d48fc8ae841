"""`gate -- COMMAND` for targets that this tool builds: all is judged again when the command has ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_project import build_project, freshproof

pytestmark = pytest.mark.toolchain

SOURCES = {
    "src/answer.h": "#define ANSWER 42\n",
    "src/host.cu": '#include <answer.h>\nextern "C" int answer() { return ANSWER; }\n',
    "src/device.cu": 'extern "C" __global__ void kernel(int *p) { *p = 42; }\n',
    "manifests/targets.toml": """schema = 1
[project]
name = "small"
source-roots = ["src"]
[target.host]
kind = "shared-library"
sources = ["src/host.cu"]
include = ["first", "src"]
[target.device]
kind = "cubin"
arch = "sm_90"
sources = ["src/device.cu"]
""",
}
LOADS = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1] + sys.argv[2]).answer())"
READS = "import sys; print(len(open(sys.argv[1] + sys.argv[2], 'rb').read()))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gate")
    (root / "first").mkdir()
    return build_project(root, SOURCES)


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "project", symlinks=True)


def artifact(project: Path, target: str) -> Path:
    (link,) = (project / "build" / "bin").glob(f"{target}.*")
    return link.resolve()


def gate(project: Path, *command: str, targets: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return freshproof(project, "gate", *targets, "--", *command)


def test_a_command_that_used_what_was_admitted_keeps_its_code_and_output(project: Path) -> None:
    library, cubin = map(str, (artifact(project, "host"), artifact(project, "device")))
    done = gate(project, sys.executable, "-c", LOADS, library, "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")
    assert gate(project, sys.executable, "-c", READS, cubin, "").returncode == 0
    assert gate(project, "sh", "-c", "kill -9 $$").returncode == 137


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("echo '#define ANSWER 43' > src/answer.h", "src/answer.h: its content changed"),
        ("echo '#define ANSWER 43' > first/answer.h", "first/answer.h"),
        ("rm build/manifests/host.json", "host"),
        ("printf x >> $(readlink -f build/bin/host.so)", "host"),
    ],
)
def test_a_change_while_the_command_runs_voids_the_run(project: Path, change: str, said: str) -> None:
    for path in (project / "build/artifacts").rglob("*"):
        path.chmod(0o755)
    done = gate(project, "sh", "-c", f"{change}; exit 3")
    assert done.returncode == 6
    assert done.stderr.startswith("void: ")
    assert said in done.stderr


def test_a_build_while_the_command_runs_voids_the_run(project: Path) -> None:
    (project / "again.sh").write_text(
        "echo '#define ANSWER 43' > src/answer.h\n"
        f"PYTHONPATH={os.pathsep.join(sys.path)} {sys.executable} -m orchestrator build host\n"
    )
    done = gate(project, "sh", "again.sh")
    assert done.returncode == 6
    assert "another artifact was built" in done.stderr


def test_an_older_copy_that_the_program_finds_by_itself_voids_the_run(project: Path, tmp_path: Path) -> None:
    copy = shutil.copy(artifact(project, "host"), tmp_path / "old.so")
    older = artifact(project, "device")
    (project / "src/answer.h").write_text("#define ANSWER 43\n")
    (project / "src/device.cu").write_text('extern "C" __global__ void kernel(int *p) { *p = 43; }\n')
    assert freshproof(project, "build").returncode == 0
    done = gate(project, sys.executable, "-c", LOADS, str(tmp_path / "old"), ".so")
    assert (done.returncode, done.stdout) == (6, "42\n")
    assert f"{copy} was loaded, and is not the current host" in done.stderr
    done = gate(project, sys.executable, "-c", READS, str(older.parent), "/" + older.name)
    assert done.returncode == 6
    assert f"{older} was loaded, and is not the current device" in done.stderr
