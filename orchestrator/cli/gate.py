"""``freshproof gate``: refuse a command unless what it relies on is proven fresh."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import click

from orchestrator.cli.behind import NOT_STARTED, CommandBehind, command_of, given_environment
from orchestrator.cli.completion import target_and_product_names
from orchestrator.cli.failure import error_document
from orchestrator.cli.safe_text import one_line, visible
from orchestrator.command_loads import folders_of_artifacts, stale_loaded, stale_loads
from orchestrator.errors import BrokenRun, ConfigurationError, FreshproofError, Missing, Refused
from orchestrator.foreign.admission import (
    Checked,
    check_all,
    check_command,
    check_loaded,
    check_named,
    cut_off_note,
    decide,
    empty_record_note,
    folders_of_code,
    gpu_arch,
    has_targets,
    open_record,
    split_names,
)
from orchestrator.foreign.loaded import run_watched
from orchestrator.foreign.made import Build
from orchestrator.foreign.store import Store
from orchestrator.gate import admit
from orchestrator.identity import compare_again
from orchestrator.model import Admission, State, Verdict
from orchestrator.targets import FILE
from orchestrator.verdict_report import verdict_fields, verdict_lines
from orchestrator.workspace import Workspace, find_root


@click.command(cls=CommandBehind, short_help="Run a command only if the targets are proven fresh.")
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]... [-- COMMAND...]", shell_complete=target_and_product_names
)
@click.option("--pid", "pids", multiple=True, type=int, help="Ask also that this process runs them.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON document with every finding; an admitted COMMAND has the output to itself.",
)
@click.pass_context
def command(ctx: click.Context, targets: tuple[str, ...], pids: tuple[int, ...], as_json: bool) -> int:
    """Check the TARGETS (default: all) against their sources, tools and plan as they are now. A product of a
    build recorded by `freshproof run` is a target, too, by its path or file name.

    Every file is read in full; no time stamp is trusted. Before a COMMAND starts, the libraries that the
    loader would take for it are looked at, too: an older copy of a target, found through LD_LIBRARY_PATH or
    RUNPATH, is refused by name. Where a build was recorded by `freshproof run`, its products are checked too:
    with a COMMAND those that it is known to load. Then COMMAND runs while what it really loads is watched,
    and all is judged once more at its end: if something changed, or something else was loaded, the run is
    void.

    With --pid, a process that runs already must map the file of each target named, and none that was
    replaced; with no target named, of each whose product is loaded as it is (libraries, programs, cubins).
    Name those that it runs: cubins are read, not mapped, and then nothing shows which one runs.

    Exit codes: 5 refused; with a COMMAND 125 when it was not started, 6 when its run is void, else its own.
    """
    behind = command_of(ctx)
    if not behind:
        return _answer(targets, pids, as_json)
    if pids:
        raise click.UsageError("--pid asks about a process that runs already; it takes no COMMAND")
    try:
        return _run_behind(behind, targets, as_json)
    except FreshproofError as error:
        click.echo(f"error: {visible(error.what)}\n  -> {visible(error.remedy)}", err=True)
        if as_json:
            click.echo(error_document(error.what, error.remedy, NOT_STARTED))
        return NOT_STARTED


def _run_behind(behind: tuple[str, ...], targets: tuple[str, ...], as_json: bool) -> int:
    """Judge, run the command, judge again; its exit code. Raises if it was not started."""
    if shutil.which(behind[0]) is None:
        raise Missing(
            f"{behind[0]}: there is no such program to run", remedy="build it, or check its name and the PATH"
        )
    if note := cut_off_note(Path.cwd()):
        click.echo(one_line(f"note: {note}"), err=True)
    recorded = open_record(Path.cwd())
    targets, products = split_names(targets, recorded, Path.cwd())
    admission = None if products and not targets else _admission(targets)
    before = check_command(*recorded, behind, os.environ, products) if recorded else None
    decided = decide(admission, before)
    if not decided.admitted:
        _show(list(decided.verdicts), False, as_json)
        return NOT_STARTED
    if others := _stale_loads(admission, behind):
        _show(others, False, as_json)
        return NOT_STARTED
    folders = folders_of_code(recorded[1]) if recorded else ()
    if admission is not None:
        folders = (*folders, *folders_of_artifacts(Workspace(find_root(Path.cwd()))))
    code, loaded, blind = run_watched(behind, given_environment(), Path.cwd(), folders)
    if blind:
        click.echo(f"void: {visible(blind)}", err=True)
        return BrokenRun.exit_code
    held = _still_holds(targets, loaded, admission, recorded, before)
    return code if held else BrokenRun.exit_code


def _stale_loads(admission: Admission | None, behind: tuple[str, ...]) -> list[Verdict]:
    """Files that the command would load in place of the targets' current code."""
    if admission is None or not admission.verdicts:
        return []
    return list(stale_loads(Workspace(find_root(Path.cwd())), admission.verdicts, behind, os.environ))


def _answer(targets: tuple[str, ...], pids: tuple[int, ...], as_json: bool) -> int:
    _check_pids(pids)
    if note := cut_off_note(Path.cwd()):
        click.echo(one_line(f"note: {note}"), err=True)
    recorded = open_record(Path.cwd())
    targets, products = split_names(targets, recorded, Path.cwd())
    if products and pids:
        raise click.UsageError("--pid asks about targets of targets.toml, not about recorded products")
    admission = None if products and not targets else _admission(targets)
    checked = _checked(recorded, products)
    processes = _process_verdicts(targets, pids)
    decided = decide(admission, checked)
    admitted = decided.admitted and all(v.state is State.FRESH for v in processes)
    if note := empty_record_note(admission, checked):
        click.echo(f"note: {visible(note)}", err=True)
    _show([*decided.verdicts, *processes], admitted, as_json)
    return 0 if admitted else Refused.exit_code


def _checked(recorded: tuple[Store, Build] | None, products: tuple[str, ...]) -> Checked | None:
    """On the recorded products named; without names on all."""
    if recorded is None:
        return None
    gpu = gpu_arch(os.environ)
    return (
        check_named(*recorded, products, os.environ, gpu)
        if products
        else check_all(*recorded, os.environ, gpu)
    )


def _check_pids(pids: tuple[int, ...]) -> None:
    if pids:
        from orchestrator.processes import check_process

        for pid in pids:
            check_process(pid)


def _process_verdicts(targets: tuple[str, ...], pids: tuple[int, ...]) -> tuple[Verdict, ...]:
    """On the processes: whether each runs the artifacts of every target asked about, as they are recorded."""
    if not pids:
        return ()
    from orchestrator.audit import originals_of
    from orchestrator.processes import process_verdict
    from orchestrator.situation import read_project

    workspace = Workspace(find_root(Path.cwd()))
    project = read_project(workspace)
    asked = [target for target in project.targets if not targets or target.name in targets]
    originals = originals_of(workspace, admit(workspace.root, targets).verdicts)
    return tuple(process_verdict(asked, originals, pid, named=bool(targets)) for pid in pids)


def _admission(targets: tuple[str, ...]) -> Admission | None:
    """On the project's own targets; `None` where only another build system builds."""
    if not targets and not has_targets(Path.cwd()):
        if open_record(Path.cwd()):
            return None
        raise ConfigurationError(
            f"nothing was recorded in {Path.cwd()} or above it, and there is no {FILE}",
            remedy="go to the project's folder, or build it behind `freshproof run --`",
        )
    return admit(Path.cwd(), targets)


def _still_holds(
    targets: tuple[str, ...],
    loaded: tuple[str, ...],
    admission: Admission | None,
    recorded: tuple[Store, Build] | None,
    before: Checked | None,
) -> bool:
    """Judge again after the command; say on standard error why its run is void."""
    try:
        now = None if admission is None else _admission(targets)
        after = check_loaded(*recorded, before, loaded, os.environ) if recorded and before else None
        decided = decide(now, after)
        others = _other_code_ran(admission, now, loaded) if admission and now else []
    except FreshproofError as error:
        click.echo(f"void: {visible(error.what)}", err=True)
        return False
    if decided.admitted and not others:
        return True
    found = [verdict for verdict in (*decided.verdicts, *others) if verdict.findings]
    click.echo("void: what this run used is no longer, or never was, what was admitted", err=True)
    click.echo("\n".join(map(one_line, verdict_lines(found))), err=True)
    return False


def _other_code_ran(before: Admission, now: Admission, loaded: tuple[str, ...]) -> list[Verdict]:
    """Of the targets' code: another artifact since, or another copy that was loaded."""
    workspace = Workspace(find_root(Path.cwd()))
    found = list(stale_loaded(workspace, now.verdicts, loaded))
    if now.admitted:
        found.append(compare_again(workspace.root, before.artifacts, now.artifacts, None))
    return [verdict for verdict in found if verdict.findings]


def _show(verdicts: list[Verdict], admitted: bool, as_json: bool) -> None:
    if as_json:
        document = {
            "schema": "freshproof/gate/1",
            "admitted": admitted,
            "targets": [verdict_fields(verdict) for verdict in verdicts],
        }
        click.echo(json.dumps(document))
        return
    click.echo("\n".join(map(one_line, verdict_lines(verdicts))))
    click.echo("admitted" if admitted else "refused")
