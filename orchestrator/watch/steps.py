"""What runs after a build: programs of their own, so that a newer save can end them with all they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from orchestrator.errors import Missing
from orchestrator.others import Others

_GRACE_SECONDS = 2.0
_PIPE_SECONDS = 0.5
_TURN_SECONDS = 0.05
_PR_SET_CHILD_SUBREAPER = 36
_STARTER = "import sys; sys.path.append({folder!r}); from orchestrator.cli import main; main()"


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step ended."""

    code: int
    """Exit code; negative for a signal."""
    said: str
    """Standard output, where it was kept and not told line by line."""
    others: float = 0.0
    """How many processors other programs used meanwhile, on average."""


def freshproof(*words: str) -> tuple[str, ...]:
    """The command line of this very tool, whatever lies in the folder in which it is started."""
    folder = str(Path(__file__).resolve().parents[2])
    return (sys.executable, "-u", "-P", "-c", _STARTER.format(folder=folder), *words)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and how."""

    argv: tuple[str, ...]
    folder: Path
    document: bool = False
    """Standard output is a document, handed over at the end; else it is told line by line."""
    ends_its_own: bool = False
    """When it is interrupted, it ends in good order what it started."""


class Step:
    """One program at work. Its lines are told from threads as they come."""

    def __init__(self, plan: Plan, *, say: Callable[[str], None], ended: Callable[[StepEnd], None]) -> None:
        """Raises `Missing` if it cannot be started."""
        self._ended, self._ends_its_own = ended, plan.ends_its_own
        self._kept: list[str] = []
        self._others = Others()
        self._done = threading.Event()
        try:
            self._process = subprocess.Popen(
                plan.argv, cwd=plan.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                stderr=subprocess.PIPE if plan.document else subprocess.STDOUT, errors="backslashreplace",
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Missing(f"cannot run {plan.argv[0]}: {error.strerror}", remedy="see to that file") from None
        take = self._kept.append if plan.document else say
        pipes = [(self._process.stdout, take), (self._process.stderr, say)]
        self._readers = [
            threading.Thread(target=_read, args=(pipe, told), daemon=True) for pipe, told in pipes if pipe
        ]
        for thread in (*self._readers, threading.Thread(target=self._follow, daemon=True)):
            thread.start()

    def cut(self) -> None:
        """End it and everything that it started: asked first, killed soon after. Does not wait."""
        started = _descendants(self._process.pid)
        for one in () if self._ends_its_own else started:
            with contextlib.suppress(psutil.Error):
                one.terminate()
        self._process.send_signal(signal.SIGINT)
        threading.Thread(target=self._kill_soon, args=(started,), daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        return self._done.wait(seconds)

    def _kill_soon(self, started: list[psutil.Process]) -> None:
        if not self._ends_its_own:
            psutil.wait_procs(started, timeout=_GRACE_SECONDS)
            end_all(started)
        end = time.monotonic() + _GRACE_SECONDS
        while not self._done.wait(_TURN_SECONDS) and time.monotonic() < end:
            # The gate hears none while its command runs, and would then judge a run that is void anyway.
            if not self._ends_its_own:
                self._process.send_signal(signal.SIGINT)
        if self._process.poll() is None:
            self._process.kill()
        end_all([*started, *self._left_behind()])

    def _left_behind(self) -> list[psutil.Process]:
        """Processes of its session that this process adopted."""
        found = []
        for one in _descendants(os.getpid()):
            with contextlib.suppress(OSError):
                if os.getsid(one.pid) == self._process.pid:
                    found.append(one)
        return found

    def _follow(self) -> None:
        code = self._process.wait()
        for reader in self._readers:  # a child that lives on may hold the pipe open
            reader.join(_PIPE_SECONDS)
        self._done.set()
        self._ended(StepEnd(code, "".join(f"{line}\n" for line in self._kept), self._others.processors()))


def _read(pipe: IO[str], told: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError, OSError), pipe:
        for line in pipe:
            told(line.rstrip("\n"))


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def end_all(processes: Sequence[psutil.Process]) -> None:
    """Kill processes and wait for them; an id that was given to another process since is left alone."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=_GRACE_SECONDS)


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind, so that it can be ended (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children() -> None:
    """Kill every process that descends from this one."""
    end_all(_descendants(os.getpid()))


def forget_orphans(own: Container[int]) -> None:
    """Take note of the end of adopted processes; ``own`` are the numbers of those that others wait for."""
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if process.pid not in own and process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)
