"""``freshproof clean``: remove what builds left behind, and say what that was."""

from __future__ import annotations

import json
from pathlib import Path

import click

from orchestrator.clean import clean, clean_old
from orchestrator.workspace import Workspace, find_root


@click.command(short_help="Remove artifacts, records and logs; say what was removed.")
@click.argument("targets", nargs=-1)
@click.option("--old", is_flag=True, help="Only artifacts that no record names any more.")
@click.option("--all", "everything", is_flag=True, help="Also the fetched toolkit and the records of runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(targets: tuple[str, ...], old: bool, everything: bool, as_json: bool) -> None:
    """Remove what was built of TARGETS (default: all targets).

    Fails with exit code 1 when a target named has nothing here, and checks that what it removed is gone.
    """
    workspace = Workspace(find_root(Path.cwd()))
    if bool(targets) + old + everything > 1:
        raise click.UsageError("TARGETS, --old and --all exclude each other")

    def note(text: str) -> None:
        click.echo(f"note: {text}", err=True)

    if old:
        removed = clean_old(workspace, note)
    else:
        removed = clean(workspace, targets, everything=everything, note=note)
    if as_json:
        click.echo(json.dumps({"schema": "freshproof/clean/1", "removed": removed}))
        return
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo("nothing to remove")
