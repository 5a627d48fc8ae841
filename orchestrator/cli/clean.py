"""``freshproof clean``: remove what builds left behind, and say what that was."""

from __future__ import annotations

import json
from pathlib import Path

import click

from orchestrator.clean import clean
from orchestrator.workspace import Workspace, find_root


@click.command(short_help="Remove artifacts, records and logs; say what was removed.")
@click.argument("targets", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Also the fetched toolkit and the records of runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(targets: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Remove what was built of TARGETS (default: all targets).

    Fails with exit code 1 when a target named has nothing here, and checks that what it removed is gone.
    """
    workspace = Workspace(find_root(Path.cwd()))
    if targets and everything:
        raise click.UsageError("--all and TARGETS exclude each other")
    removed = clean(
        workspace, targets, everything=everything, note=lambda text: click.echo(f"note: {text}", err=True)
    )
    if as_json:
        click.echo(json.dumps({"schema": "freshproof/clean/1", "removed": removed}))
        return
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo("nothing to remove")
