"""``freshproof watch``: build, explain, verify and time what a saved file affects."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from orchestrator.cli.behind import CommandBehind, command_of
from orchestrator.cli.completion import target_names, workload_names
from orchestrator.cli.watch_screen import open_screen
from orchestrator.errors import FreshproofError
from orchestrator.situation import read_project
from orchestrator.targets import select
from orchestrator.watch.checks import Options
from orchestrator.watch.session import Session
from orchestrator.workloads import choose_workloads
from orchestrator.workspace import Workspace, find_root


@click.command(cls=CommandBehind, short_help="Rebuild what a saved file affects, until interrupted.")
@click.argument("targets", nargs=-1, metavar="[TARGET]... [-- COMMAND...]", shell_complete=target_names)
@click.option("--verify", is_flag=True, help="Ask the gate about what was built.")
@click.option(
    "--bench",
    metavar="WORKLOAD",
    default="",
    shell_complete=workload_names,
    help="Time this workload when its code was built.",
)
@click.option("--notify", metavar="PROGRAM", default="", help="Run it after each round, with what came out.")
@click.option("--bell", is_flag=True, help="Ring the terminal's bell after each round.")
@click.option("--poll", is_flag=True, help="Look at the files again and again; do not rely on events.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document an event, one a line.")
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    verify: bool,
    bench: str,
    notify: str,
    bell: bool,
    poll: bool,
    as_json: bool,
) -> int:
    """Watch every file that TARGETS (default: all) are built from, and build what a change affects.

    Each round tells what changed, what was built, and what became of each kernel: registers, spills, code.
    Then follow, as asked for: --verify, --bench with the change since the first and the last round, and the
    COMMAND, which runs as behind `freshproof gate`. A newer save ends what is at work and starts anew.

    On a terminal: Enter or r looks at everything again, q quits. Ctrl-C ends with exit code 130. An error in
    targets.toml or a source is shown, and the watch goes on. Exit code 3: another watch is at work here.
    """
    workspace = Workspace(find_root(Path.cwd()))
    _check_names(workspace, targets, bench)
    options = Options(targets, verify, bench, command_of(ctx), tuple(shlex.split(notify)), poll)
    with open_screen(as_json=as_json, bell=bell) as screen:
        session = Session(workspace, options, screen.tell, os.environ)
        screen.bind(session)
        session.run()
    return 0


def _check_names(workspace: Workspace, targets: tuple[str, ...], bench: str) -> None:
    """Raises `ConfigurationError` for a name that targets.toml does not define; if that cannot be read, the
    watch will say so and wait for it.
    """
    try:
        project = read_project(workspace)
    except FreshproofError:
        return
    select(project, targets)
    if bench:
        choose_workloads(project, (bench,), "")
