"""The watch on a real terminal (a pseudo-terminal): what it shows, keys, a new size, Ctrl-C, a stop."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import psutil
import pytest

pytestmark = pytest.mark.toolchain

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\r\a]")
SECONDS = 120


class Terminal:
    """A program that leads a session on a terminal of its own."""

    def __init__(self, root, *words, path, size=(30, 100), **variables):
        self.pid, self.descriptor = pty.fork()
        if not self.pid:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(root)
            environ = {**os.environ, "PATH": path, "TERM": "xterm-256color", **variables}
            for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
                if name not in variables:
                    environ.pop(name, None)
            os.execve(sys.executable, [sys.executable, "-m", "orchestrator", "watch", *words], environ)
        self.resize(*size)
        self.said = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.descriptor, keys)

    def until(self, text, since=0):
        """Read until ``text`` was shown after position ``since``; what was shown since, without controls."""
        end = time.monotonic() + SECONDS
        while text not in self.shown(since):
            assert time.monotonic() < end, self.said
            assert self.read(), f"it ended: {self.said}"
        return self.shown(since)

    def shown(self, since=0):
        return CONTROLS.sub("", self.said[since:])

    def read(self):
        if not select.select([self.descriptor], [], [], 1.0)[0]:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:  # how Linux tells that nobody is on the other side
            return False
        self.said += data.decode("utf-8", "replace")
        return bool(data)

    def code(self):
        """Its exit code, once it ended."""
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def echoes(self):
        return bool(termios.tcgetattr(self.descriptor)[3] & termios.ECHO)


@pytest.fixture
def terminal():
    made = []

    def start(root, *words, **more):
        made.append(Terminal(root, *words, **more))
        return made[-1]

    yield start
    for one in made:
        if psutil.pid_exists(one.pid):
            os.kill(one.pid, signal.SIGKILL)
        os.close(one.descriptor)


def save(it, text):
    (it.root / "inc" / "h0.cuh").write_text(text)


def test_a_session_of_edits_keys_and_a_new_size(tree, terminal):
    it = tree(1, 1)
    one = terminal(it.root, "--bell", path=it.path)
    one.until("q: quit")
    shown = one.until("done in")
    assert "watching 1 target" in shown
    assert "built    u0" in shown and "\x1b[" in one.said, "colours"
    while "\a" not in one.said:  # the bell
        assert one.read()
    assert not one.echoes()
    at = len(one.said)
    save(it, "// new\n")
    shown = one.until("done in", at)
    assert "inc/h0.cuh changed -> u0" in shown and "building u0" in shown
    at = len(one.said)
    one.press(b"\n")
    assert "nothing to build" in one.until("done in", at)
    at = len(one.said)
    one.resize(10, 40)
    one.until("watching", at)
    shown = one.shown(at)
    assert max(map(len, shown.splitlines())) <= 40
    at = len(one.said)
    one.press(b"q")
    assert one.code() == 0


def test_interrupted_by_its_key_it_leaves_the_terminal_as_it_was(tree, terminal):
    it = tree(1, 1)
    one = terminal(it.root, path=it.path)
    one.until("done in")
    it.slow(60_000)
    save(it, "// new\n")
    one.until("building u0")
    while len(it.compiles()) < 2:
        time.sleep(0.01)
    one.press(b"\x03")
    assert one.code() == 130
    assert one.said.endswith("\x1b[?25h") or "\x1b[?25h" in one.said[-200:], "the cursor is shown again"
    assert not any(psutil.pid_exists(pid) for pid in it.compiles())
    assert "Traceback" not in one.said


def test_stopped_and_continued_it_goes_on(tree, terminal):
    it = tree(1, 1)
    one = terminal(it.root, path=it.path)
    one.until("done in")
    os.kill(one.pid, signal.SIGSTOP)  # the leader of a session is not stopped by the key
    while psutil.Process(one.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    save(it, "// while it was stopped\n")
    os.kill(one.pid, signal.SIGCONT)
    one.until("inc/h0.cuh changed -> u0")
    one.until("done in")
    one.press(b"\x03")
    assert one.code() == 130


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_codes_can_be_refused_and_keys_are_heard_all_the_same(tree, terminal, variables):
    it = tree(1, 1)
    one = terminal(it.root, path=it.path, **variables)
    one.until("done in")
    one.until("Enter or r: look at everything, q: quit")
    at = len(one.said)
    one.press(b"r")
    one.until("nothing to build", at)
    one.press(b"q")
    assert one.code() == 0
    assert "\x1b" not in one.said


def test_a_terminal_that_is_closed_ends_it(tree, terminal):
    it = tree(1, 1)
    one = terminal(it.root, "--", "sleep", "600", path=it.path)
    one.until("command")
    family = psutil.Process(one.pid).children(recursive=True)
    os.close(one.descriptor)
    one.descriptor = os.open(os.devnull, os.O_RDONLY)
    os.waitpid(one.pid, 0)
    assert not psutil.wait_procs(family, timeout=30)[1]


def test_without_a_terminal_lines_are_plain(tree):
    it = tree(1, 1)
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "watch"],
        cwd=it.root,
        env={**os.environ, "PATH": it.path},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = []
        while not said or not said[-1].startswith("watching"):
            said.append(process.stdout.readline())
        save(it, "#error\n")
        while "not done" not in said[-1]:
            said.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    text = "".join(said)
    assert "\x1b" not in text
    assert "    inc/h0.cuh(1): error: it says so\n" in text and "failing: u0" in text
