"""What stands after an interruption is true: a build that was cut off is told; one signal ends what runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

SLOW = {"Makefile": "k.o: k.cu\n\ttouch ../begun; exec sleep 60\n", "k.cu": "__global__ void k() {}\n"}


def start(project, *words: str) -> subprocess.Popen:
    """The tool in a session of its own, which no terminal sends signals to; interrupts are heard."""
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *words],
        cwd=project.root,
        env=project.environ,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def until(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_build_that_was_killed_is_told_until_one_is_recorded(bare):
    project = bare(SLOW, ("make",), ("./k",))
    process = start(project, "run", "--", "make")
    until(project.root.parent / "begun")
    assert "was cut off" not in project.tool("verify").stderr  # it is at work
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    os.killpg(process.pid, signal.SIGKILL)  # make and its shell lived on
    for words in (("verify",), ("gate", "--", "true")):
        said = project.tool(*words).stderr
        assert "(`make`) was cut off, and what it made is not recorded" in said
    project.file("Makefile", "k.o: k.cu\n\tnvcc -arch=sm_90 -c k.cu -o k.o\n")
    assert "was cut off" in project.tool("run", "--", "make").stderr
    assert "was cut off" not in project.tool("verify").stderr
    assert project.tool("verify").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_the_build_and_what_was_seen_is_recorded(bare, number):
    project = bare(SLOW, ("make",), ("./k",))
    process = start(project, "run", "--", "sh", "-c", "touch ../begun; exec sleep 60")
    until(project.root.parent / "begun")
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=30)
    assert process.returncode not in (0, 125)
    assert "the build ended with exit code" in said
    assert "was cut off" not in project.tool("verify").stderr


def test_one_interrupt_ends_the_command_behind_the_gate(bare):
    files = {"Makefile": "k.o: k.cu\n\tnvcc -arch=sm_90 -c k.cu -o k.o\n", "k.cu": "__global__ void k() {}\n"}
    project = bare(files, ("make",), ("./k",))
    project.run()
    process = start(project, "gate", "--", "sh", "-c", "touch ../begun; exec sleep 60")
    until(project.root.parent / "begun")
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
