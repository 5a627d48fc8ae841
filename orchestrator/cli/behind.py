"""A command behind ``--``, taken as it stands."""

from __future__ import annotations

import click

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
