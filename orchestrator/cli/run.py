"""``freshproof run -- BUILD``: run a build of any build system, and record what made what from what."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from orchestrator.cli.behind import NOT_STARTED, CommandBehind, become, command_of, given_environment
from orchestrator.cli.failure import error_document
from orchestrator.cli.safe_text import one_line, visible
from orchestrator.cli.terminal import error_console, new_table, print_table
from orchestrator.errors import FreshproofError
from orchestrator.foreign.admission import has_targets, store_for_build
from orchestrator.foreign.judge import Judge
from orchestrator.foreign.kept import Kept, kept_for
from orchestrator.foreign.made import Build
from orchestrator.foreign.observe import file_clock_ns, observe, recorded_by_ancestor
from orchestrator.foreign.outputs import failed_compiles
from orchestrator.foreign.provenance import sources_of
from orchestrator.foreign.receipt import look
from orchestrator.foreign.record import Observed, Recorder
from orchestrator.foreign.report import (
    SourceRow,
    idle_options,
    product_lines,
    shown,
    source_rows,
    stamp_lines,
)
from orchestrator.foreign.stamping import Stamper
from orchestrator.foreign.stamps import Stamps, with_build
from orchestrator.foreign.standing import standing_ends
from orchestrator.foreign.store import FOLDER, Damaged, Store
from orchestrator.model import Verdict
from orchestrator.verdict_report import verdict_fields
from orchestrator.workspace import HELD, Workspace, exclusive, find_root


@click.command(
    cls=CommandBehind,
    options_metavar="[OPTIONS] -- COMMAND...",
    short_help="Run any build, and record what made what from what.",
)
@click.option("--json", "as_json", is_flag=True, help="Write what was recorded as JSON to standard error.")
@click.option("--quiet", is_flag=True, help="Say nothing after the build.")
@click.option("--stamp", is_flag=True, help="Put a stamp into each object that nvcc makes; see below.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, quiet: bool, stamp: bool) -> int:
    """Run COMMAND (make, ninja, cmake --build, cargo build, pip install ...) as it is and watch what it does.

    Its output and exit code pass through. Each compile, archive and link is recorded with everything that it
    read; `freshproof verify` and `freshproof gate` judge by that record. The record lies in .freshproof/ in
    the project. What is said afterwards goes to standard error.

    With --stamp each relocatable object gets a note, .note.freshproof, as soon as nvcc has written it. It
    names the step by a digest, and the sources; linkers carry it into libraries and programs, where
    `freshproof inspect` reads it. Equal steps give equal notes. What ccache and its like would keep, cubins,
    fat binaries and PTX get none. A stamp names a step and proves nothing: verdicts are the same without.

    Exit codes: COMMAND's own; 125 when it was not started.
    """
    behind = command_of(ctx)
    if not behind:
        raise click.UsageError("name the build behind `--`, such as: freshproof run -- make")
    folder = os.path.realpath(os.curdir)
    store = store_for_build(folder)
    if recorded_by_ancestor(store.root, os.environ):
        return become(behind)  # the outer one records
    stamper = Stamper(str(store.root)) if stamp else None
    try:
        with (
            store.exclusive(_note),
            _tree_held(Path(folder)) as environ,
            _noted(store, behind),
            kept_for(str(store.root)) as kept,
        ):
            observed = _observe(behind, folder, store, environ, stamper, kept)
            return _record(store, observed, stamper, as_json, quiet)
    except FreshproofError as error:
        click.echo(f"error: {visible(error.what)}", err=True)
        if error.remedy:
            click.echo(f"  -> {visible(error.remedy)}", err=True)
        if as_json:
            click.echo(error_document(error.what, error.remedy, NOT_STARTED), err=True)
        return NOT_STARTED


@contextmanager
def _noted(store: Store, behind: tuple[str, ...]) -> Iterator[None]:
    """Leave a note while the build is at work, for the case that this process is killed."""
    if cut_off := store.cut_off(locked=True):
        _note(f"{visible(cut_off)}; where the build system leaves that alone, clean first")
    store.begin(behind)
    try:
        yield
    finally:
        store.end()


def _note(text: str) -> None:
    click.echo(f"note: {text}", err=True)


@contextmanager
def _tree_held(folder: Path) -> Iterator[dict[str, str]]:
    """Keep benchmarks and builds of targets out of the tree, if it has targets; the build's environment."""
    if not has_targets(folder):
        yield given_environment()
        return
    workspace = Workspace(find_root(folder))
    with exclusive(workspace, _note):
        yield {**given_environment(), HELD: str(workspace.root)}


def _observe(
    behind: tuple[str, ...],
    folder: str,
    store: Store,
    environ: dict[str, str],
    stamper: Stamper | None,
    kept: Kept,
) -> Observed:
    before = look([str(store.root)])
    began = file_clock_ns()
    answer = stamper.answer if stamper else None
    code, events, lost = observe(behind, environ, Path(folder), store.root, answer, kept)
    return Observed(behind, folder, code, events, lost, began, before, dict(os.environ))


def _record(store: Store, observed: Observed, stamper: Stamper | None, as_json: bool, quiet: bool) -> int:
    began = time.monotonic()
    try:
        earlier = store.read()
    except Damaged as error:
        _note(f"{visible(str(error))}; it begins anew")
        earlier = None
    if earlier is not None and earlier.root != str(store.root):
        _note(f"what was recorded in {visible(earlier.root)} says nothing of this place; it begins anew")
        earlier = None
    recorder = Recorder(store, earlier or Build(str(store.root)))
    build, outputs = recorder.record(observed)
    stamps = stamper.of_build(outputs) if stamper else None
    if stamps:
        store.write_stamps(with_build(store.read_stamps(), stamps, build))
    judge = Judge(store, build, os.environ, recorder.digests)
    compiles = {path: judge.verdict(path) for path, made in build.made.items() if sources_of(made)}
    counting, leftover = standing_ends(build)
    rows = source_rows(build, {output.path for output in outputs}, compiles, leftover)
    verdicts = [(path, judge.product(path)) for path in counting]
    if as_json:
        document = _document(build, rows, verdicts, leftover)
        click.echo(json.dumps({**document, **(_stamps_fields(stamps) if stamps else {})}), err=True)
    elif not quiet:
        failed = failed_compiles(observed.events)
        _show(build, rows, verdicts, leftover, failed, time.monotonic() - began)
        for line in stamp_lines(build, stamps) if stamps else ():
            click.echo(one_line(line), err=True)
    return observed.code


def _show(
    build: Build,
    rows: list[SourceRow],
    verdicts: list[tuple[str, Verdict]],
    leftover: tuple[str, ...],
    failed: tuple[tuple[str, str], ...],
    seconds: float,
) -> None:
    compiled = sum(row.what.startswith("compiled") for row in rows)
    sources = {row.source for row in rows} | {shown(build, source) for source, _how in failed}
    of_all = max(len(sources), len(rows))  # one source may be compiled more than once
    ended = f"the build ended with exit code {build.code}; " if build.code else ""
    told = f"{compiled} of {of_all} CUDA compiles ran; recorded in {seconds:.1f} s"
    if build.root != build.folder:
        told += f", in {visible(build.root)}/{FOLDER}"
    click.echo(f"freshproof: {ended}{told}", err=True)
    for source, how in failed:
        click.echo(one_line(f"  {shown(build, source)}: its compile {how}"), err=True)
    for text in build.lost:
        click.echo(f"  not known of this build: {visible(text)}", err=True)
    if rows:
        print_table(error_console(), _table(rows))
    for line in (*product_lines(build, verdicts), *idle_options(build)):
        click.echo(one_line(line), err=True)
    if leftover:
        names = ", ".join(path.removeprefix(f"{build.root}/") for path in leftover)
        click.echo(f"  left over from earlier builds and not used: {one_line(names)}", err=True)


def _stamps_fields(stamps: Stamps) -> dict[str, object]:
    given = [{"stamp": one.stamp, "path": one.path, "sources": one.sources} for one in stamps.given]
    left = [{"path": path, "reason": why} for path, why in stamps.left.items()]
    return {"stamped": given, "not_stamped": left}


def _table(rows: list[SourceRow]) -> Table:
    table = new_table("  CUDA source", "In this build", "Why", "Product")
    for row in rows:
        cells = (f"  {row.source}", row.what, row.why, row.product)
        table.add_row(*(escape(one_line(cell)) for cell in cells))
    return table


def _document(
    build: Build, rows: list[SourceRow], verdicts: list[tuple[str, Verdict]], leftover: tuple[str, ...]
) -> dict[str, object]:
    sources = [
        {"source": row.source, "state": row.what, "reason": row.why, "product": row.product} for row in rows
    ]
    return {
        "schema": "freshproof/run/1",
        "command": build.command,
        "exit_code": build.code,
        "unseen": build.lost,
        "sources": sources,
        "products": [verdict_fields(verdict) for _path, verdict in verdicts],
        "left_over": leftover,
        "same_device_code": [line.strip() for line in idle_options(build)],
    }
