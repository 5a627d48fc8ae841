"""How the end of a command by an error is told: to a person, and to a program."""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import click

from orchestrator.cli.safe_text import one_line, visible
from orchestrator.errors import FreshproofError, Missing

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Output:
    """Standard output that remembers whether anything was written: one JSON document is enough."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.used = False

    def write(self, text: str) -> int:
        """As of the stream."""
        self.used = self.used or bool(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether ``--json`` was given, and not to a command behind ``--``."""
    own = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
    return "--json" in own


def error_document(what: str, remedy: str, exit_code: int) -> str:
    """An error as one JSON document on one line."""
    fields = {"schema": "freshproof/error/1", "error": what, "remedy": remedy, "exit_code": exit_code}
    return json.dumps(fields)


def error_lines(error: FreshproofError, title: str = "error") -> list[str]:
    """An error as a person reads it: what, the lines of other programs, what to do next."""
    lines = [
        f"{title}: {one_line(error.what)}",
        *(f"  {visible(line)}" for line in error.details.splitlines()),
    ]
    return [*lines, *([f"  -> {one_line(error.remedy)}"] if error.remedy else [])]


def usage_lines(error: click.ClickException) -> list[str]:
    """A wrong command line as click tells it, with the words of that command line on one line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    usage = [context.get_usage(), f"Try '{context.command_path} --help' for help.", ""] if context else []
    return [*usage, f"Error: {one_line(error.format_message())}"]


def is_full(error: OSError) -> bool:
    """Whether a standard stream could not take what was written; errors on files name the file."""
    return error.filename is None and error.errno in _DISK_FULL


def lacks(error: MemoryError | OSError) -> Missing | None:
    """What this machine or its limits do not give, where an error says that; else it is another error."""
    if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        limited = (
            "" if limit == resource.RLIM_INFINITY else f", and the limit is {limit >> 20:,} MiB of addresses"
        )
        return Missing(
            f"out of memory: this process came to {used:,} MiB{limited}",
            remedy="free memory, raise the limit (ulimit -v), or take a smaller input",
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return Missing(
            f"too many open files: the limit is {limit} a process",
            remedy="raise it (ulimit -n), or close programs that hold files open",
        )
    return None


def open_standard_streams() -> None:
    """A standard stream that the caller closed leads nowhere. Else Python has no object for it, and the next
    file that is opened would take its place and receive what is meant for people.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def leave_full_output(error: OSError) -> int:
    """Say that the output is lost, if that can be said; returns the exit code."""
    with suppress(OSError):
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        print("  -> free some space where the output goes, and run it again", file=sys.stderr)
        sys.stderr.flush()
    leave_stream(1)
    leave_stream(2)
    return Missing.exit_code


def leave_stream(descriptor: int) -> None:
    """What is still in the buffer of a stream that takes nothing goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
