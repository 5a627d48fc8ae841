"""Samples of an ordinary command: one process each, timed from spawn to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import BrokenRun, Missing
from orchestrator.samples import Usage
from orchestrator.worker import ended_how
from orchestrator.workspace import explained


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One run of the command on the orchestrator's clock."""

    started_ns: int
    ended_ns: int
    usage: Usage
    """The command and every child that it waited for."""


def time_process(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, timeout: float
) -> ProcessSample:
    """Run the command once. Raises `Missing` (cannot start) or `BrokenRun` (fails, or takes too long)."""
    with explained(log):
        opened = log.open("ab")
    with opened as output:
        started_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise Missing(f"cannot start {argv[0]}: {error.strerror}") from error
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            _kill_group(process.pid)

        timer = threading.Timer(timeout, expire)
        timer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
            ended_ns = time.monotonic_ns()
        except BaseException:
            _kill_group(process.pid)
            raise
        finally:
            timer.cancel()
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if expired.is_set():
        what = f"{argv[0]} did not end within {timeout:g} s"
        raise BrokenRun(what, remedy="allow more with --timeout SECONDS")
    if code != 0:
        raise BrokenRun(f"{argv[0]} {ended_how(code)}", remedy=f"its output is in {log}")
    usage = Usage(round(used.ru_utime * 1e9), round(used.ru_stime * 1e9), used.ru_minflt, used.ru_majflt)
    return ProcessSample(started_ns, ended_ns, usage)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
