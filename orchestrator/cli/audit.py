"""``freshproof audit``: where else the code of targets lies, and which of it would run."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from orchestrator.audit import Audit, originals_of, search
from orchestrator.cli.terminal import (
    FileName,
    add_row,
    items_progress,
    new_table,
    print_table,
    result_console,
    shown,
)
from orchestrator.copies import CopyState, Group
from orchestrator.errors import AnswerIsNo, ConfigurationError, Undecided
from orchestrator.foreign.admission import open_record
from orchestrator.foreign.originals import recorded_originals
from orchestrator.gate import admit
from orchestrator.model import State
from orchestrator.processes import Mapped, Survey, survey_processes
from orchestrator.workspace import Workspace, find_root

_SHORT = 12


@click.command(short_help="Find every copy of your targets' code, and which one would run.")
@click.argument("folders", nargs=-1, type=FileName())
@click.option("--program", "programs", multiple=True, type=FileName(), help="Ask what it uses.")
@click.option("--processes", is_flag=True, help="Look into running processes, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def command(folders: tuple[Path, ...], programs: tuple[Path, ...], processes: bool, as_json: bool) -> int:
    """Search FOLDERS (default: the project and LD_LIBRARY_PATH) for code of the project's targets, and of the
    products of a build that `freshproof run` recorded.

    Files that no target claims are grouped by name, where a name occurs more than once. With --program, say
    which of them is linked into it or would be loaded by it, and why. Earlier artifacts in the project's own
    store count as stale only where a program uses them. With --processes, say which running processes map a
    target's code: told by content, under any name, also where the file was deleted since.

    \b
    Examples:
      freshproof audit --program target/release/app
      freshproof audit /opt/app/lib build --processes

    Exit codes: 1 something is stale; 3 nothing is, but a file could not be read or a program's library was
    not found.
    """
    workspace, recorded = _workspace(), open_record(Path.cwd())
    originals = originals_of(workspace, admit(workspace.root, ()).verdicts) if workspace else ()
    if recorded is not None:
        originals += recorded_originals(*recorded, os.environ, originals)
    places = folders or _default_folders(workspace, recorded[0].root if recorded else Path.cwd())
    with items_progress("audit") as advance:
        audit = search(places, originals, programs, os.environ, advance, workspace)
    survey = survey_processes(originals) if processes else None
    if as_json:
        click.echo(json.dumps(_document(audit, survey), indent=2))
    else:
        _show(result_console(), audit, survey)
    return _exit_code(audit, survey.mapped if survey else ())


def _exit_code(audit: Audit, mapped: Sequence[Mapped]) -> int:
    stale = any(copy.state is CopyState.STALE for group in audit.groups for copy in group.copies)
    if stale or any(one.state is State.STALE for one in mapped):
        return AnswerIsNo.exit_code
    unproven = any(one.state is State.UNPROVEN for one in mapped)
    return Undecided.exit_code if audit.unreadable or audit.unresolved or unproven else 0


def _workspace() -> Workspace | None:
    """The project; `None` outside of one."""
    try:
        return Workspace(find_root(Path.cwd()))
    except ConfigurationError:
        return None


def _default_folders(workspace: Workspace | None, otherwise: Path) -> tuple[Path, ...]:
    root = workspace.root if workspace else otherwise
    listed = os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")
    return (root, *(Path(folder) for folder in listed if folder and Path(folder).is_dir()))


def _show(console: Console, audit: Audit, survey: Survey | None) -> None:
    for group in audit.groups:
        _show_group(console, group)
    for path, fault in audit.unreadable:
        console.print(shown(f"cannot be read: {path}: {fault}"))
    for one in survey.mapped if survey else ():
        state = one.fault or "runs the target's artifact"
        console.print(shown(f"process {one.pid} ({one.program}): {one.path}: {state}"))
    for library in audit.unresolved:
        line = f"would not be loaded: {library.name}, asked for by {library.asked_by}: {library.why}"
        console.print(shown(line))
    states = [copy.state for group in audit.groups for copy in group.copies]
    told = [f"{states.count(state)} {state}" for state in CopyState]
    told.append(f"{audit.files - len(states)} of no target, with a name of their own")
    files = "1 file" if audit.files == 1 else f"{audit.files} files"
    unread = f"; {len(audit.unreadable)} could not be read" if audit.unreadable else ""
    console.print(f"{files} with code: {', '.join(told)}{unread}")
    if survey is not None:
        console.print(_processes_told(survey))


def _processes_told(survey: Survey) -> str:
    states = Counter(one.state for one in survey.mapped)
    processes = len({one.pid for one in survey.mapped})
    told = f"{processes} process{'' if processes == 1 else 'es'} with code of a target; mapped files: "
    told += ", ".join(f"{states[state]} {state}" for state in State)
    return told + (f"; not to be looked into: {survey.unseen}" if survey.unseen else "")


def _show_group(console: Console, group: Group) -> None:
    console.print(f"[bold]{shown(group.name)}[/]")
    table = new_table("  State", "Digest", "File", "Why")
    for copy in group.copies:
        digest = copy.digest.removeprefix("sha256:")[:_SHORT]
        why = "; ".join((copy.why, *copy.used_by))
        add_row(table, f"  {copy.state}", digest, _nearer(copy.path), _nearer(why))
    print_table(console, table)
    console.print()


def _nearer(text: str) -> str:
    """Paths in this folder without it: those of artifacts are long enough."""
    return text.replace(f"{Path.cwd()}/", "")


def _document(audit: Audit, survey: Survey | None) -> dict[str, Any]:
    return {
        "schema": "freshproof/audit/1",
        "groups": [asdict(group) for group in audit.groups],
        "unreadable": [{"path": path, "fault": fault} for path, fault in audit.unreadable],
        "unresolved": [asdict(library) for library in audit.unresolved],
        "processes": [asdict(one) for one in (survey.mapped if survey else ())],
        "processes_unseen": survey.unseen if survey else 0,
        "files": audit.files,
    }
