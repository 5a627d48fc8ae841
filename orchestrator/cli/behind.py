"""A command behind ``--``, taken as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.cli.safe_text import visible

NOT_STARTED = 125
"""Exit code when there is a command and it did not begin."""

_BEHIND = "freshproof.command"


class CommandBehind(click.Command):
    """Takes what follows ``--`` for a command, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])


def command_of(ctx: click.Context) -> tuple[str, ...]:
    """The command; empty if there is none."""
    found: tuple[str, ...] = ctx.meta[_BEHIND]
    return found


def given_environment() -> dict[str, str]:
    """The environment with which this process was started. In a C locale Python adds LC_CTYPE to it
    (PEP 538), by which compilers would choose other quotation marks.
    """
    environ = dict(os.environ)
    try:
        first = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return environ
    if not any(setting.startswith(b"LC_CTYPE=") for setting in first):
        environ.pop("LC_CTYPE", None)
    return environ


def become(argv: tuple[str, ...]) -> int:
    """Give this process to the command; returns only if that fails."""
    try:
        os.execvpe(argv[0], argv, given_environment())
    except OSError as error:
        click.echo(f"error: cannot run {visible(argv[0])}: {error.strerror}", err=True)
        return NOT_STARTED
