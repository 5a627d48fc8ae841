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


def test_two_builds_at_once_are_both_recorded(bare):
    rule = "{0}.o: {0}.cu\n\tnvcc -arch=sm_90 -c {0}.cu -o {0}.o\n"
    files = {
        "Makefile": rule.format("a")
        + "\ttouch ../begun; until test -e ../go; do sleep 0.05; done\n"
        + rule.format("b"),
        "a.cu": "__global__ void a() {}\n",
        "b.cu": "__global__ void b() {}\n",
    }
    project = bare(files, ("make",), ("./k",))
    first = start(project, "run", "--", "make", "a.o")
    until(project.root.parent / "begun")
    second = start(project, "run", "--", "make", "b.o")
    assert second.stderr is not None
    waiting = second.stderr.readline()
    assert waiting == "note: another recorded build is at work in this project; waiting for it\n"
    (project.root.parent / "go").touch()
    first.communicate(timeout=60)
    second.communicate(timeout=60)
    assert first.returncode == second.returncode == 0
    code, states, said = project.verify()
    assert code == 0, said
    assert {"a.o": "fresh", "b.o": "fresh"}.items() <= states.items()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_made_before_an_interrupt_is_recorded_and_counts(bare, number):
    rule = "{0}.o: {0}.cu\n\tnvcc -arch=sm_90 -c {0}.cu -o {0}.o\n"
    files = {
        "Makefile": "all: a.o wait b.o\nwait:\n\ttouch ../begun; exec sleep 60\n"
        + rule.format("a")
        + rule.format("b"),
        "a.cu": "__global__ void a() {}\n",
        "b.cu": "__global__ void b() {}\n",
    }
    project = bare(files, ("make",), ("./k",))
    process = start(project, "run", "--", "make")
    until(project.root.parent / "begun")
    if number == signal.SIGINT:  # as a terminal does; make waits for what got none
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, 125), said
    _code, states, said = project.verify()
    assert states["a.o"] == "fresh", said
    assert "b.o" not in states
    project.edit("a.cu", "{}", "{ }  // other")
    assert project.verify()[1]["a.o"] == "stale"
