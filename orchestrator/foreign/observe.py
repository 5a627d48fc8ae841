"""Runs a build with the observer in all of its processes. Its output and exit code pass through untouched."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import Missing
from orchestrator.foreign.events import Event, Torn, read_events
from orchestrator.foreign.kept import Kept
from orchestrator.foreign.lists import parse_rules
from orchestrator.foreign.native import library
from orchestrator.foreign.stamping import Asked, listening

_SEPARATES = re.compile(r"[\s:$]")
_LOG = "FRESHPROOF_OBSERVER_LOG"
_ROOT = "root"
"""File beside the log that names the project whose build is recorded."""


def recorded_by_ancestor(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether this process is part of a build of ``root`` that is being recorded."""
    log = environ.get(_LOG)
    try:
        return log is not None and Path(log).with_name(_ROOT).read_bytes() == os.fsencode(root)
    except OSError:
        return False


def observe(
    argv: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    root: Path,
    answer: Callable[[Asked], None] | None = None,
    kept: Kept | None = None,
) -> tuple[int, tuple[Event, ...], tuple[str, ...]]:
    """Run a build of the project at ``root``; returns its exit code, the programs that it started, and what
    was lost, in words. With ``answer`` each nvcc that ended well waits until that has returned. Into ``kept``
    goes what is put back in place of files that the build removed.

    Raises `Missing` if it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="freshproof-") as private:
        observer = _preloadable(library("observe"), Path(private))
        log = Path(private) / "events"
        log.touch()
        log.with_name(_ROOT).write_bytes(os.fsencode(root))
        preload = ":".join(filter(None, (str(observer), environ.get("LD_PRELOAD", ""))))
        sanitizer = ":".join(filter(None, (environ.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0")))
        environment = {
            **environ,
            "LD_PRELOAD": preload,
            "ASAN_OPTIONS": sanitizer,  # its runtime need not be the first library of programs in the build
            "FRESHPROOF_OBSERVER": str(observer),
            _LOG: str(log),
        }
        with listening(f"{log}.stamps", answer) if answer else contextlib.nullcontext():
            code = run_through(argv, environment, folder)
        try:
            events = tuple(_with_list(e, log) for e in read_events(log.read_bytes()))
            return code, kept.put_back(log, events) if kept else events, ()
        except (OSError, Torn) as error:
            return code, (), (str(error),)


def _preloadable(path: Path, private: Path) -> Path:
    """The library by a name that LD_PRELOAD can hold: it takes blanks and colons for the ends of names.

    Raises `Missing`.
    """
    if not _SEPARATES.search(str(path)):
        return path
    if _SEPARATES.search(str(private)):
        raise Missing(
            f"{private}: the loader takes no library from a folder of this name",
            remedy="set TMPDIR to a folder without blanks, colons and dollar signs",
        )
    return Path(shutil.copy(path, private))


def _with_list(event: Event, log: Path) -> Event:
    """The event with what the program wrote down of what it read, or was seen to open."""
    beside = f"{log}.{event.pid}.{event.started_ns}"
    with contextlib.suppress(OSError, ValueError):
        event = replace(event, read=tuple(map(sys.intern, parse_rules(Path(beside).read_bytes()))))
    with contextlib.suppress(OSError):
        names = os.fsdecode(Path(f"{beside}.opened").read_bytes()).split("\0")[:-1]
        event = replace(event, opened=tuple(dict.fromkeys(names)))
    return event


def run_through(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Run a command on this terminal to its end; its exit code as a shell gives it.

    The terminal sends an interrupt to both; this process waits for how the command takes it. One that came
    from elsewhere is handed on, and so is a request to terminate. Raises `Missing` if the command cannot be
    started.
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
        if number != signal.SIGINT or not _is_in_the_foreground():
            process.send_signal(number)

    handlers: dict[int, Callable[[int, object], None] | int] = {
        signal.SIGINT: hand_on,
        signal.SIGTERM: hand_on,
        signal.SIGHUP: hand_on,
    }
    heard = {
        n: h for n, h in handlers.items() if n != signal.SIGINT or signal.getsignal(n) is not signal.SIG_IGN
    }
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_the_foreground() -> bool:
    """Whether a terminal sends its interrupts to this process, and so to all of its group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def file_clock_ns() -> int:
    """Now, by the clock that file systems stamp files with."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - 10_000_000
