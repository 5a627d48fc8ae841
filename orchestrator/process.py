"""Runs one command: nothing of our environment but what the action lists, all of its output kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import BuildFailed, Missing


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    """Its exit status; negative for a signal."""
    said: bytes
    """Both outputs, in the order written."""
    seconds: float


def run(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, inherit: Iterable[int] = ()
) -> Ended:
    """Run a command to its end; see `Runner.run`."""
    return Runner().run(argv, environment, folder, inherit)


class Runner:
    """Runs commands from several threads, and can end all of them at once."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._stopped = False
        self._change = threading.Lock()

    def run(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, inherit: Iterable[int] = ()
    ) -> Ended:
        """Run a command to its end. An exception in this thread ends it and everything that it started.

        ``inherit`` are descriptors that it keeps open (the build lock). Raises `Missing` if it cannot be
        started.
        """
        started = time.monotonic()
        process = self._start(argv, environment, folder, inherit)
        try:
            said, _ = process.communicate()
        except BaseException:
            _end(process.pid)
            process.wait()
            raise
        finally:
            with self._change:
                self._running.discard(process.pid)
        return Ended(process.returncode, said, time.monotonic() - started)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: how a command then ended says nothing about it."""
        return self._stopped

    def stop(self) -> None:
        """End every command that is running, with its children, and start no more."""
        with self._change:
            self._stopped = True
            for leader in self._running:
                _end(leader)

    def _start(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, inherit: Iterable[int]
    ) -> subprocess.Popen[bytes]:
        with self._change:
            if self._stopped:
                raise BuildFailed(f"{argv[0]} was not started: interrupted")
            try:
                process = subprocess.Popen(
                    argv, env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, pass_fds=tuple(inherit), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise Missing(f"cannot run {argv[0]}: {error.strerror}", remedy="see to that file") from None
            self._running.add(process.pid)
        return process


def _end(leader: int) -> None:
    """End a command and all that it started; they share its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
