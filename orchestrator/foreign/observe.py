"""Runs a build with the observer in all of its processes. Its output and exit code pass through untouched."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.errors import Missing
from orchestrator.foreign.events import Event, Torn, read_events
from orchestrator.foreign.native import library


def observe(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path
) -> tuple[int, tuple[Event, ...], tuple[str, ...]]:
    """Run a build; returns its exit code, the programs that it started, and what was lost, in words.

    Raises `Missing` if it cannot be started.
    """
    observer = library("observe")
    with tempfile.TemporaryDirectory(prefix="freshproof-") as private:
        log = Path(private) / "events"
        log.touch()
        preload = ":".join(filter(None, (str(observer), environ.get("LD_PRELOAD", ""))))
        environment = {
            **environ,
            "LD_PRELOAD": preload,
            "FRESHPROOF_OBSERVER": str(observer),
            "FRESHPROOF_OBSERVER_LOG": str(log),
        }
        code = run_through(argv, environment, folder)
        try:
            return code, read_events(log.read_bytes()), ()
        except (OSError, Torn) as error:
            return code, (), (str(error),)


def run_through(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Run a command on this terminal to its end; its exit code as a shell gives it.

    The terminal sends an interrupt to both; this process waits for how the command takes it. A request to
    terminate is handed on. Raises `Missing` if the command cannot be started.
    """
    try:
        process = subprocess.Popen(argv, env=dict(environment), cwd=folder)
    except OSError as error:
        raise Missing(
            f"cannot run {argv[0]}: {error.strerror}", remedy="check its name and the PATH"
        ) from None
    with _handing_on(process):
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _handing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def hand_on(number: int, _frame: object) -> None:
        process.send_signal(number)

    handlers: dict[int, Callable[[int, object], None] | int] = {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGTERM: hand_on,
        signal.SIGHUP: hand_on,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def file_clock_ns() -> int:
    """Now, by the clock that file systems stamp files with."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - 10_000_000
