"""Runs one command: nothing of our environment but what the action lists, all of its output kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Missing


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
    """Run a command to its end. An interruption ends it and everything that it started.

    ``inherit`` are descriptors that it keeps open (the build lock). Raises `Missing` if it cannot be started.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            argv, env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, pass_fds=tuple(inherit), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise Missing(f"cannot run {argv[0]}: {error.strerror}", remedy="see to that file") from None
    try:
        said, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return Ended(process.returncode, said, time.monotonic() - started)
