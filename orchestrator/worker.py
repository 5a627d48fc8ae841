"""A workload's process, seen from outside: started once, asked for samples, timed around each request.

Standard output and error go to a log file; answers arrive on a pipe of their own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from orchestrator.errors import BrokenRun, FreshproofError, Missing, Refused
from orchestrator.protocol import (
    FD_VARIABLE,
    REQUEST_CLOSE,
    Answer,
    Failure,
    Message,
    Ready,
    check_answer,
    parse_message,
    request_sample,
)
from orchestrator.samples import Usage
from orchestrator.workspace import explained

MAX_LINE_BYTES = 16 << 20
"""An answer holds phases, not data; a longer line is a fault of the worker, not a reason to grow."""
_CLOSE_SECONDS = 10.0
_READY = "its ready message"
_BEFORE_READY: Mapping[int, type[FreshproofError]] = {kind.exit_code: kind for kind in (Refused, Missing)}
_NO_PROTOCOL = "if the command does not answer requests for samples, write `worker = false` for its workload"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sampled:
    """One answer with the orchestrator's own view of it."""

    answer: Answer
    sent_ns: int
    received_ns: int
    usage: Usage | None
    """All threads of the worker between request and reply; ``None`` where the kernel does not tell."""


class Worker:
    """A resident worker process. Use as a context manager: leaving it ends the process and its children."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, timeout: float
    ) -> None:
        """Start the process. ``timeout`` bounds, in seconds, each wait for a message. Raises `Missing`."""
        self._log = log
        self._timeout = timeout
        self._buffer = bytearray()
        with explained(log):
            opened = log.open("ab")
        self._fd, theirs = os.pipe()
        try:
            with opened as output:
                self._process = subprocess.Popen(
                    list(argv),
                    env={**env, FD_VARIABLE: str(theirs)},
                    cwd=cwd,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    bufsize=0,
                    pass_fds=(theirs,),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(self._fd)
            raise Missing(f"cannot start {argv[0]}: {error.strerror}") from error
        finally:
            os.close(theirs)
        os.set_blocking(self._fd, False)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    def ready(self) -> Ready:
        """Wait for the first message. Raises `BrokenRun`, or the worker's own failure.

        A worker that could not begin may have no answer to give, only its exit code; that of something
        missing and that of a refusal are handed on as such.
        """
        message = self._receive(_READY)
        if not isinstance(message, Ready):
            raise BrokenRun(f"the worker's first message is {type(message).__name__.lower()}, not ready")
        return message

    def sample(self, index: int, *, warmup: bool) -> Sampled:
        """Ask for one sample and check its answer. Raises `BrokenRun`, or the worker's own failure."""
        before = usage_of(self.pid)
        sent_ns = time.monotonic_ns()
        self._send(request_sample(index, warmup=warmup))
        message = self._receive(f"sample {index}")
        received_ns = time.monotonic_ns()
        after = usage_of(self.pid)
        if not isinstance(message, Answer):
            raise BrokenRun(f"asked for sample {index}, the worker sent another ready message")
        check_answer(message, index, sent_ns, received_ns)
        usage = after - before if before is not None and after is not None else None
        return Sampled(message, sent_ns, received_ns, usage)

    def close(self) -> None:
        """Ask the worker to end, and see that it did. Raises `BrokenRun` when it fails or lingers."""
        self._send(REQUEST_CLOSE)
        try:
            code = self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            raise BrokenRun(f"the worker did not end within {_CLOSE_SECONDS:.0f} s of being asked") from None
        if code != 0:
            raise BrokenRun(f"the worker {ended_how(code)} after its last sample", details=self._log_tail())

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Once it is reaped its id may be another's: signal the group only while the process is ours.
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        os.close(self._fd)

    def _send(self, request: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
        except OSError:
            self._raise_gone("a request")

    def _receive(self, what: str) -> Message:
        line = self._read_line(what)
        try:
            message = parse_message(line)
        except BrokenRun as error:
            raise BrokenRun(error.what, remedy=_NO_PROTOCOL if what == _READY else error.remedy) from None
        if isinstance(message, Failure):
            raise worker_error(message)
        return message

    def _read_line(self, what: str) -> bytes:
        """One line with its end; what is left of it when the worker's end of the pipe closes."""
        deadline = time.monotonic() + self._timeout
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE_BYTES:
                raise BrokenRun(f"the worker's answer for {what} is longer than {MAX_LINE_BYTES} bytes")
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._fd], [], [], remaining)[0]:
                raise BrokenRun(
                    f"the worker was silent for {self._timeout:g} s; waited for {what}",
                    details=self._log_tail(),
                    remedy="allow more with --timeout SECONDS if the work takes that long"
                    + (f"; {_NO_PROTOCOL}" if what == _READY else ""),
                )
            chunk = os.read(self._fd, 1 << 16)
            if not chunk:
                if not self._buffer:
                    self._raise_gone(what)
                end = len(self._buffer) - 1
                break
            self._buffer += chunk
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def _raise_gone(self, what: str) -> NoReturn:
        try:
            code = self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            raise BrokenRun(f"the worker closed its answers while {what} was awaited") from None
        kind = _BEFORE_READY.get(code, BrokenRun) if what == _READY else BrokenRun
        remedy = _NO_PROTOCOL if what == _READY and kind is BrokenRun else ""
        what = f"the worker {ended_how(code)} while {what} was awaited"
        raise kind(what, details=self._log_tail(), remedy=remedy)

    def _log_tail(self, lines: int = 8) -> str:
        text = self._log.read_bytes()[-4096:].decode("utf-8", "replace").splitlines()[-lines:]
        return "\n".join([*(f"| {line}" for line in text), f"(whole log: {self._log})"]) if text else ""


def worker_error(failure: Failure) -> FreshproofError:
    """The worker's own failure, as the error class that has its exit code."""
    for kind in FreshproofError.__subclasses__():
        if kind.exit_code == failure.exit_code:
            return kind(failure.message, remedy=failure.remedy)
    what = f"{failure.message} (the worker's exit code: {failure.exit_code})"
    return BrokenRun(what, remedy=failure.remedy)


def ended_how(code: int) -> str:
    """A process's end in words: its exit code, or the signal that killed it (negative codes)."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"


def usage_of(pid: int) -> Usage | None:
    """What a living process has used so far; ``None`` where /proc does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name may hold spaces and parentheses; the fields begin after its last one (proc(5)).
    fields = stat[stat.rfind(")") + 2 :].split()
    minor, major, user, system = (int(fields[i]) for i in (7, 9, 11, 12))
    tick = 1_000_000_000 // _TICKS_PER_SECOND
    return Usage(user * tick, system * tick, minor, major)
