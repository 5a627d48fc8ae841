"""``freshproof clean``: remove what builds left behind, and say what that was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from orchestrator.clean import clean, clean_old
from orchestrator.cli.completion import target_names
from orchestrator.cli.safe_text import visible
from orchestrator.errors import AnswerIsNo
from orchestrator.foreign.admission import has_targets
from orchestrator.foreign.store import find_store
from orchestrator.workspace import Workspace, find_root


@click.command(short_help="Remove artifacts, records and logs; say what was removed.")
@click.argument("targets", nargs=-1, shell_complete=target_names)
@click.option("--old", is_flag=True, help="Only artifacts that no record names any more.")
@click.option("--all", "everything", is_flag=True, help="Also the fetched toolkit and the records of runs.")
@click.option("--recorded", is_flag=True, help="Only what `freshproof run` recorded of other builds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(targets: tuple[str, ...], old: bool, everything: bool, recorded: bool, as_json: bool) -> None:
    """Remove what was built of TARGETS (default: all targets).

    What `freshproof run` recorded lies in .freshproof/ and stays, unless asked for with --recorded; what
    other build systems made is theirs to remove. Fails with exit code 1 when a target named, or a record
    asked for, is not there, and checks that what it removed is gone.
    """
    if bool(targets) + old + everything + recorded > 1:
        raise click.UsageError("TARGETS, --old, --all and --recorded exclude each other")

    def note(text: str) -> None:
        click.echo(f"note: {text}", err=True)

    asked = targets or old or everything
    if recorded or (not asked and not has_targets(Path.cwd()) and find_store(Path.cwd())):
        removed = [_remove_record(note)]
        _tell(removed, as_json)
        return
    workspace = Workspace(find_root(Path.cwd()))
    if old:
        removed = clean_old(workspace, note)
    else:
        removed = clean(workspace, targets, everything=everything, note=note)
    _tell(removed, as_json)
    if not targets and not old and find_store(Path.cwd()):
        note("the record of a build by `freshproof run` is kept; `freshproof clean --recorded` removes it")


def _remove_record(note: Callable[[str], None]) -> str:
    """Remove the nearest record; returns its folder. Raises `AnswerIsNo` if there is none."""
    store = find_store(Path.cwd())
    if store is None:
        raise AnswerIsNo(
            "no build was recorded here or in a folder above",
            remedy="`freshproof run -- BUILD` records one, in the top folder of the git tree",
        )
    with store.exclusive(note):
        store.remove()
    return str(store.folder)


def _tell(removed: Sequence[str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": "freshproof/clean/1", "removed": removed}))
        return
    for path in removed:
        click.echo(f"removed {visible(path)}")
    if not removed:
        click.echo("nothing to remove")
