"""``freshproof gate``: refuse a command unless the targets it relies on are proven fresh."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from orchestrator.errors import FreshproofError, Refused
from orchestrator.gate import admit
from orchestrator.model import Admission, State
from orchestrator.verdict_report import verdict_fields, verdict_lines
from orchestrator.workspace import find_root

NOT_STARTED = 125
"""Exit code when there is a COMMAND and it did not begin."""

_BEHIND = "freshproof.command"


class _WithCommand(click.Command):
    """Takes what follows ``--`` for a command, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])


@click.command(cls=_WithCommand, short_help="Run a command only if the targets are proven fresh.")
@click.argument("targets", nargs=-1, metavar="[TARGET]... [-- COMMAND...]")
@click.option("--pid", "pids", multiple=True, type=int, help="Ask also that this process runs them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document with every finding.")
@click.pass_context
def command(ctx: click.Context, targets: tuple[str, ...], pids: tuple[int, ...], as_json: bool) -> int:
    """Check the TARGETS (default: all) against their sources, tools and plan as they are now.

    Every file is read in full; no time stamp is trusted. With a COMMAND, it takes this command's place when
    all are fresh. With --pid, a running process must map the targets' files, and none that was replaced. Exit
    codes: 5 refused; with a COMMAND 125 when it was not started, else its own.
    """
    behind: tuple[str, ...] = ctx.meta[_BEHIND]
    if not behind:
        admission = _ask(targets, pids)
        _show(admission, as_json)
        return 0 if admission.admitted else Refused.exit_code
    try:
        admission = _ask(targets, pids)
    except FreshproofError as error:
        click.echo(f"error: {error.what}\n  -> {error.remedy}", err=True)
        return NOT_STARTED
    if not admission.admitted:
        _show(admission, as_json)
        return NOT_STARTED
    return _become(behind)


def _ask(targets: tuple[str, ...], pids: tuple[int, ...]) -> Admission:
    """What the gate says of the targets, and of the processes."""
    admission = admit(Path.cwd(), targets)
    if not pids:
        return admission
    from orchestrator.audit import originals_of, process_verdict

    originals = originals_of(find_root(Path.cwd()), targets)
    verdicts = (*admission.verdicts, *(process_verdict(originals, pid) for pid in pids))
    fresh = all(verdict.state is State.FRESH for verdict in verdicts)
    return Admission(verdicts, admission.artifacts if fresh else ())


def _become(argv: tuple[str, ...]) -> int:
    """Give this process to the command; returns only if that fails."""
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        click.echo(f"error: cannot run {argv[0]}: {error.strerror}", err=True)
        return NOT_STARTED


def _show(admission: Admission, as_json: bool) -> None:
    if as_json:
        document = {
            "schema": "freshproof/gate/1",
            "admitted": admission.admitted,
            "targets": [verdict_fields(verdict) for verdict in admission.verdicts],
        }
        click.echo(json.dumps(document))
        return
    click.echo("\n".join(verdict_lines(admission.verdicts)))
    click.echo("admitted" if admission.admitted else "refused")
