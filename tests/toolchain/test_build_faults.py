"""Interruptions, two builds at once, and trees in which something cannot be read or written."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
TARGETS = """schema = 1
[target.k]
kind = "cubin"
arch = "sm_90"
sources = ["k.cu"]
[target.h]
kind = "shared-library"
sources = ["h.cu"]
"""


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "targets.toml").write_text(TARGETS)
    (tmp_path / "k.cu").write_text('#include "v.cuh"\nextern "C" __global__ void k(int *p) { *p = V; }\n')
    (tmp_path / "h.cu").write_text('#include "v.cuh"\nextern "C" int f() { return V; }\n')
    (tmp_path / "v.cuh").write_text("#define V 1\n")
    return tmp_path


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    """A command of the tool, under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *words],
        cwd=root,
        env={**os.environ, "PATH": f"{Path(NVCC).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(root: Path, *words: str, seconds: float = 300) -> tuple[int, str]:
    """Exit code and output; one that is still at work after ``seconds`` fails the test."""
    process = start(root, *words)
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise
    return process.returncode, said


def slow_nvcc(root: Path, seconds: float) -> None:
    """An nvcc that takes its time before it compiles."""
    path = root / "slow" / "nvcc"
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *dryrun*|*version*) ;; *) sleep {seconds};; esac\nexec {NVCC} "$@"\n'
    )
    path.chmod(0o755)


def running_below(root: Path) -> list[str]:
    """Commands of processes that work in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(root):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_two_builds_at_once_build_each_target_once(root):
    both = [start(root, "build"), start(root, "build")]
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(text.splitlines()[-1].split(" in ")[0] for text in said) == [
        "0 built, 2 fresh, 0 failed",
        "2 built, 0 fresh, 0 failed",
    ]
    assert run(root, "gate")[0] == 0


def test_an_interrupted_build_leaves_no_compiler_behind(root):
    slow_nvcc(root, 60)
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "build"],
        cwd=root,
        env={**os.environ, "PATH": f"{root}/slow:/usr/bin:/bin"},
        # A shell starts what it puts into the background with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not any("sleep" in command for command in running_below(root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert [c for c in running_below(root) if "sleep" in c or "nvcc" in c] == []
    assert list((root / "build" / "work").iterdir()) == []
    assert run(root, "build")[0] == 0


def test_the_compilers_of_a_killed_build_are_waited_for(root):
    """They would otherwise write into the folder that the next build uses."""
    slow_nvcc(root, 1.5)
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "build", "k"],
        cwd=root,
        env={**os.environ, "PATH": f"{root}/slow:/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
    )
    while not any("sleep" in command for command in running_below(root)):
        time.sleep(0.05)
    process.kill()
    process.wait()
    code, said = run(root, "build", "k")
    assert code == 0
    assert "waiting for it" in said
    assert run(root, "gate", "k")[0] == 0


def test_a_tree_that_cannot_be_written_is_said(root):
    (root / "build").write_text("a file in the place of the folder")
    code, said = run(root, "build")
    assert code == 8
    assert "cannot write" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("how", ["loop", "folder", "pipe"])
def test_an_input_that_turned_into_something_unreadable_is_never_fresh(root, how):
    assert run(root, "build")[0] == 0
    header = root / "v.cuh"
    header.unlink()
    if how == "loop":
        header.symlink_to("v.cuh")
    elif how == "folder":
        header.mkdir()
    else:
        os.mkfifo(header)
    code, said = run(root, "gate")
    assert code == 5
    assert "v.cuh" in said
    assert "Traceback" not in said


PLACES = {
    "v.cuh": {},
    "named.cuh": {"v.cuh": '#define NAME "named.cuh"\n#include NAME\n#define V 1\n'},
    "maybe.cuh": {"v.cuh": '#if __has_include("maybe.cuh")\n#endif\n#define V 1\n'},
    "blob.bin": {"v.cuh": '#define V 1\n__asm__(".incbin \\"blob.bin\\"");\n'},
    "k.cu": {},
    "forced.h": {"flags": '["-include", "forced.h"]'},
    "given.h": {"flags": '["-Xcompiler", "-include,given.h"]'},
    "words.opt": {"flags": '["-optf", "words.opt"]'},
    "my.specs": {"flags": '["-Xcompiler", "-specs=my.specs"]'},
    "manifests/targets.toml": {},
}
"""What is a pipe, and how the project comes to open it."""


@pytest.mark.parametrize("place", PLACES)
def test_nothing_waits_for_a_pipe_in_the_place_of_a_file(root, place):
    for name, text in PLACES[place].items():
        if name == "flags":
            name, text = (
                "manifests/targets.toml",
                TARGETS.replace("[target.h]", f"flags = {text}\n[target.h]"),
            )
        (root / name).write_text(text)
    (root / place).unlink(missing_ok=True)
    os.mkfifo(root / place)
    code, said = run(root, "build", "k", seconds=60)
    assert code in (2, 7)
    assert place in said
    assert "a named pipe" in said or place == "manifests/targets.toml"
    if place == "manifests/targets.toml":
        assert run(root, "init", seconds=60)[0] == 2


def test_a_library_that_is_a_pipe_is_not_waited_for(root):
    text = TARGETS.replace('sources = ["h.cu"]', 'sources = ["h.cu"]\nflags = ["-Llib", "-lx"]')
    (root / "manifests" / "targets.toml").write_text(text)
    (root / "lib").mkdir()
    os.mkfifo(root / "lib" / "libx.so")
    code, said = run(root, "build", "h", seconds=60)
    assert code == 7
    assert "lib/libx.so is a named pipe" in said


def test_pipes_among_the_tools_own_files_are_written_anew(root):
    assert run(root, "build")[0] == 0
    kept = [*(root / "build/manifests").rglob("*.json"), *(root / "build/cache").iterdir()]
    assert len(kept) > 4
    for path in kept:
        path.unlink()
        os.mkfifo(path)
    assert run(root, "gate", seconds=60)[0] == 5
    assert "2 built" in run(root, "build", seconds=60)[1]
    assert run(root, "gate")[0] == 0
    assert all(path.is_file() for path in kept)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b'{"schema": "freshproof/manifest/1"}'])
def test_a_damaged_record_is_unproven_and_built_again(root, damage):
    assert run(root, "build")[0] == 0
    (root / "build" / "manifests" / "k.json").write_bytes(damage)
    code, said = run(root, "gate", "k")
    assert code == 5
    assert "unproven" in said
    assert "1 built, 1 fresh" in run(root, "build")[1]


def test_damaged_shared_records_are_written_again(root):
    assert run(root, "build")[0] == 0
    for path in (root / "build" / "manifests" / "shared").iterdir():
        path.chmod(0o644)
        path.write_bytes(b"")
    assert run(root, "gate")[0] == 5
    assert "2 built" in run(root, "build")[1]
    assert run(root, "gate")[0] == 0


def test_the_lock_is_written_when_asked_for_and_compared_always(root):
    assert "lock" not in run(root, "build")[1]
    assert "wrote manifests/lock.json" in run(root, "build", "--lock")[1]
    assert "matches the lock" in run(root, "build")[1]
    (root / "v.cuh").write_text("#define V 2\n")
    said = run(root, "build")[1]
    assert "differs from the lock: k@sm_90: sources: v.cuh" in said
    (root / "manifests" / "lock.json").write_text("{}")
    code, said = run(root, "build")
    assert code == 2
    assert "not a lock" in said


def test_clean_says_what_it_removes_and_fails_for_what_is_not_there(root):
    assert run(root, "clean", "k")[0] == 1
    assert run(root, "build")[0] == 0
    code, said = run(root, "clean", "k")
    assert code == 0
    assert "removed build/manifests/k.json" in said
    assert not (root / "build" / "manifests" / "k.json").exists()
    assert run(root, "clean", "k")[0] == 1
    assert run(root, "clean", "nothing")[0] == 1
    assert run(root, "clean")[0] == 0
    assert sorted(p.name for p in (root / "build").iterdir()) == [".gitignore", "lock"]
    assert "nothing to remove" in run(root, "clean")[1]


def test_what_the_project_keeps_in_the_same_folders_stays(root):
    """Another build system may use build/ as well."""
    theirs = [root / "build" / name for name in ("bin/program", "bin/link", "logs/run.txt", "CMakeCache.txt")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    (root / "build/artifacts/mine").mkdir(parents=True)
    assert run(root, "build")[0] == 0
    assert not (root / "build" / ".gitignore").exists()
    code, said = run(root, "clean", "--all")
    assert code == 0
    assert "removed build/bin/k.cubin" in said
    assert "removed build/manifests\n" in said
    assert all(path.read_text() == "theirs" for path in theirs)
    left = {str(p.relative_to(root / "build")) for p in (root / "build").rglob("*") if not p.is_dir()}
    assert left == {"bin/program", "bin/link", "logs/run.txt", "CMakeCache.txt", "lock"}
    assert (root / "build/artifacts/mine").is_dir()


@pytest.mark.needs("git")
def test_a_build_leaves_the_work_tree_of_git_clean(root):
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    for words in (("build", "--plan"), ("build", "--explain"), ("gate",)):
        run(root, *words)
        assert not (root / "build").exists()
    assert run(root, "build")[0] == 0
    assert run(root, "gate")[0] == 0
    status = [*git, "status", "--porcelain"]
    assert subprocess.run(status, cwd=root, check=True, capture_output=True).stdout == b""


def test_old_artifacts_go_and_those_in_use_stay(root):
    assert run(root, "build")[0] == 0
    assert "nothing to remove" in run(root, "clean", "--old")[1]
    before = {p.name for p in (root / "build" / "artifacts").iterdir()}
    (root / "v.cuh").write_text("#define V 5\n")
    assert run(root, "build")[0] == 0
    assert run(root, "clean", "--old")[1].count("removed build/artifacts/") == 2
    after = {p.name for p in (root / "build" / "artifacts").iterdir()}
    assert len(after) == 2
    assert not before & after
    assert run(root, "gate")[0] == 0


def test_a_source_that_is_not_there_is_named_with_its_line(root):
    (root / "k.cu").unlink()
    code, said = run(root, "build", "k")
    assert code == 2
    assert "there is no file k.cu" in said
    assert "manifests/targets.toml:5" in said


def test_a_folder_of_sources_that_is_not_there_is_named_with_its_line(root):
    text = TARGETS.replace("schema = 1\n", 'schema = 1\n[project]\nsource-roots = [".", "nowhere"]\n')
    (root / "manifests" / "targets.toml").write_text(text)
    code, said = run(root, "build")
    assert code == 2
    assert "manifests/targets.toml:3: source-roots: there is no folder nowhere" in said


def test_gate_runs_a_command_only_when_all_is_fresh(root):
    assert run(root, "gate", "--", "echo", "ran") == (125, run(root, "gate", "--", "echo", "ran")[1])
    assert run(root, "build")[0] == 0
    code, said = run(root, "gate", "k", "--", "sh", "-c", "echo ran; exit 7")
    assert (code, said) == (7, "ran\n")
    assert run(root, "gate", "--", "no-such-program")[0] == 125
    assert run(root, "gate", "no-such-target", "--", "echo", "ran")[0] == 125
    assert run(root, "gate", "no-such-target")[0] == 2
