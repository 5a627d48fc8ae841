"""A disk that is full, a tree that cannot be written, a file that may not be read: with a real nvcc."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.build import Result, build
from orchestrator.gate import admit
from orchestrator.workspace import Workspace

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
ENVIRON = {"PATH": f"{Path(NVCC).parent}:/usr/bin:/bin"}
TARGETS = 'schema = 1\n[target.k]\nkind = "cubin"\narch = "sm_90"\nsources = ["k.cu"]\n'


def project(root: Path) -> Path:
    """A project of one cubin."""
    (root / "manifests").mkdir(parents=True)
    (root / "manifests" / "targets.toml").write_text(TARGETS)
    (root / "k.cu").write_text('#include "v.cuh"\nextern "C" __global__ void k(int *p) { *p = V; }\n')
    (root / "v.cuh").write_text("#define V 1\n")
    return root


def freshproof(root: Path, *words: str) -> tuple[int, str]:
    """The command, and what it said on both outputs."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *words], cwd=root, env={**os.environ, **ENVIRON},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


@pytest.fixture
def disk(tmp_path):
    """Mounts a disk of 8 MiB and gives its folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def leave(disk: Path, kib: int) -> None:
    """Fill the disk but for so much."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    status = os.statvfs(disk)
    ballast.write_bytes(bytes(status.f_bavail * status.f_frsize - kib * 1024))


def half_written(root: Path) -> list[Path]:
    """What a step that did not come to its end left below build."""
    there = [p for p in (root / "build").rglob("*") if p.name != ".gitignore"]
    return [p for p in there if p.name.startswith(".") or p.parent.name == "work"]


def test_a_full_disk_is_said_and_the_next_build_is_right(disk, tmp_path):
    """Room for less and less of it: for the record, for what ptxas writes, for what the preprocessor does."""
    root = project(disk / "project")
    for kib in (2600, 2450, 1300, 4):
        leave(disk, kib)
        code, said = freshproof(root, "build")
        assert code in (7, 8), said
        assert "free some space" in said
        assert half_written(root) == []
        assert not admit(root, [], ENVIRON).admitted
    (disk / "ballast").unlink()
    assert freshproof(root, "build")[0] == 0
    assert admit(root, [], ENVIRON).admitted
    elsewhere = project(tmp_path / "elsewhere")
    assert freshproof(elsewhere, "build")[0] == 0
    assert (root / "build/bin/k.cubin").read_bytes() == (elsewhere / "build/bin/k.cubin").read_bytes()


def test_what_nvcc_says_of_a_full_disk_is_understood(tmp_path):
    """Where no disk can be mounted: a compiler that says so."""
    root = project(tmp_path / "project")
    tools = tmp_path / "tools"
    tools.mkdir()
    script = f"""#!/bin/sh
case "$*" in *dryrun*|*version*) exec {NVCC} "$@";; esac
echo half > build/work/k/k.cubin
echo "ptxas fatal : cannot write: No space left on device"; exit 1
"""
    (tools / "nvcc").write_text(script)
    (tools / "nvcc").chmod(0o755)
    (outcome,) = build(Workspace(root), [], {"PATH": f"{tools}:/usr/bin:/bin"}).outcomes
    assert outcome.result is Result.FAILED
    assert "ptxas fatal" in outcome.message
    assert "free some space" in outcome.remedy
    assert half_written(root) == []
    assert freshproof(root, "gate")[0] == 5
    assert freshproof(root, "build")[0] == 0


def test_a_disk_that_fills_up_after_a_build_takes_nothing_away(disk):
    root = project(disk / "project")
    assert freshproof(root, "build")[0] == 0
    before = (root / "build/bin/k.cubin").read_bytes()
    shutil.rmtree(root / "build" / "cache")
    leave(disk, 0)
    assert freshproof(root, "build")[0] == 0
    (root / "v.cuh").write_text("#define V 2\n")
    code, said = freshproof(root, "build")
    assert code in (7, 8)
    assert "free some space" in said
    assert (root / "build/bin/k.cubin").read_bytes() == before
    assert freshproof(root, "gate")[0] == 5


def test_in_a_tree_that_cannot_be_written_all_questions_are_answered(disk):
    root = project(disk / "project")
    assert freshproof(root, "build")[0] == 0
    shutil.rmtree(root / "build" / "cache")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in (("gate",), ("build", "--explain"), ("build", "--plan"), ("verify",)):
        assert freshproof(root, *words)[0] == 0, words
    for words in (("build",), ("clean", "k")):
        code, said = freshproof(root, *words)
        assert code == 8
        assert "Read-only file system" in said
        assert "copy of the tree" in said


@contextmanager
def an_ordinary_user():
    """Root may read everything; nobody may not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("closed", ["v.cuh", "first"])
def test_a_header_or_folder_that_may_not_be_read_is_named_and_never_fresh(closed):
    with tempfile.TemporaryDirectory(prefix="freshproof-") as folder:
        root = project(Path(folder) / "project")
        (root / "first").mkdir()
        (root / "manifests/targets.toml").write_text(TARGETS + 'include = ["first"]\n')
        assert [o.result for o in build(Workspace(root), [], ENVIRON).outcomes] == [Result.BUILT]
        Path(folder).chmod(0o755)
        (root / closed).chmod(0)
        with an_ordinary_user():
            admission = admit(root, [], ENVIRON)
        (root / closed).chmod(0o755)
        (verdict,) = admission.verdicts
        assert not admission.admitted
        assert {f.state for f in verdict.findings} == {"unproven"}
        assert {f.subject.split("/")[0] for f in verdict.findings} == {closed}
        assert all("Permission denied" in f.message for f in verdict.findings)
