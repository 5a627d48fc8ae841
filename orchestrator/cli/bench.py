"""``freshproof bench``: time workloads whose code is proven fresh, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from orchestrator.bench import Options, admit_all, alone, measure
from orchestrator.cli.completion import workload_names
from orchestrator.cli.safe_text import one_line
from orchestrator.cli.terminal import result_console
from orchestrator.errors import FreshproofError, Refused
from orchestrator.gate import admit
from orchestrator.gpu_arch import architectures
from orchestrator.machine_code import with_machine_code
from orchestrator.model import Admission, Workload
from orchestrator.report import (
    closing_lines,
    heading,
    refusal_fields,
    refusal_lines,
    rows_of,
    run_fields,
    table_cells,
)
from orchestrator.samples import Measured, Refusal
from orchestrator.situation import read_project
from orchestrator.workloads import choose_workloads
from orchestrator.workspace import Workspace, find_root

_TEXT_COLUMNS = ("phase", "clock")


@click.command(short_help="Time workloads whose code is proven fresh.")
@click.argument("workloads", nargs=-1, shell_complete=workload_names)
@click.option("--all", "every", is_flag=True, help="Also the workloads that run only when named.")
@click.option(
    "--samples", type=click.IntRange(min=1), help="Samples to count  [default: the workload's own]."
)
@click.option(
    "--warmups", type=click.IntRange(min=0), help="Runs before them  [default: the workload's own]."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    help="Seconds that one sample, or the workload's start, may take.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document; progress goes to standard error.")
def command(
    workloads: tuple[str, ...],
    every: bool,
    samples: int | None,
    warmups: int | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Time WORKLOADS (default: all that suit this machine) under the gate.

    With a GPU these are the workloads that load GPU code, else the others.
    Everything that a workload's code was built from is checked before the first sample and again after the
    last. Exit codes: 2 a wrong name or targets.toml, 3 another benchmark runs in this tree, 5 refused (stale
    or unproven: no time counts), 6 a result failed its check or the run broke off, 8 something needed is
    missing, 130 interrupted.
    """
    root = find_root(Path.cwd())
    project = read_project(Workspace(root))
    chosen, announcement = choose_workloads(project, workloads, architectures(os.environ), every=every)

    def say(line: str) -> None:
        click.echo(line, err=as_json)

    def options(workload: Workload) -> Options:
        return Options(
            workload.samples if samples is None else samples,
            workload.warmups if warmups is None else warmups,
            timeout,
        )

    if announcement:
        say(announcement)
    show = _Shown(as_json)
    try:
        with alone(root, lambda text: say(f"note: {text}")):
            return _run(root, chosen, options, say, show)
    finally:
        show.end()


class _Shown:
    """What is said of results: at once as text, or gathered into one JSON document."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.runs: list[dict[str, Any]] = []

    def result(self, result: Measured | Refusal) -> None:
        if isinstance(result, Refusal):
            click.echo("\n".join(["", *map(one_line, refusal_lines(result)), ""]), err=True)
        if self.as_json:
            self.runs.append(run_fields(result) if isinstance(result, Measured) else refusal_fields(result))
        elif isinstance(result, Measured):
            _print_run(result)

    def error(self, workload: Workload, error: FreshproofError) -> None:
        fields = {"error": error.what, "remedy": error.remedy, "exit_code": error.exit_code}
        self.runs.append({"workload": workload.name, "state": "broken", **fields})

    def interrupted(self, subject: str) -> None:
        self.runs.append({"workload": subject, "state": "interrupted", "exit_code": 130})

    def end(self) -> None:
        if self.as_json and self.runs:  # without any, an error ends the command and is the document
            click.echo(json.dumps({"schema": "freshproof/bench/1", "runs": self.runs}, indent=2))


def _print_run(run: Measured) -> None:
    """Phases and the unaccounted, under a rule their total, and below what must be said of them."""
    rows = rows_of(run.counted)
    header, *lines, total = table_cells(rows)
    table = Table(box=box.SIMPLE, show_edge=False, show_footer=True, pad_edge=False, header_style="bold")
    for name, last in zip(header, total, strict=True):
        table.add_column(name, last, justify="left" if name in _TEXT_COLUMNS else "right", no_wrap=True)
    for line in lines:
        table.add_row(*map(escape, line))
    console = result_console()
    console.print("", escape(heading(run)), "", Padding.indent(table, 2), "", sep="\n")
    for text in closing_lines(run, rows):
        console.print(Padding.indent(escape(text), 2))
    console.print()


def _run(
    root: Path,
    chosen: Sequence[Workload],
    options: Callable[[Workload], Options],
    say: Callable[[str], None],
    show: _Shown,
) -> int:
    """Run the workloads one after the other; the first that is refused or breaks ends the command."""
    subject = ", ".join(workload.name for workload in chosen)
    try:
        refusal = admit_all(root, chosen, _admit)
        if refusal is not None:
            show.result(refusal)
            return Refused.exit_code
        for workload in chosen:
            subject = workload.name
            result = _run_one(root, workload, options(workload), say, show)
            if isinstance(result, Refusal):
                return Refused.exit_code
    except KeyboardInterrupt:
        say(f"{subject}: interrupted; nothing of this run counts")
        show.interrupted(subject)
        raise
    return 0


def _admit(root: Path, names: Sequence[str]) -> Admission:
    """The gate, and what only a benchmark asks."""
    return with_machine_code(admit(root, names), architectures(os.environ))


def _run_one(
    root: Path, workload: Workload, options: Options, say: Callable[[str], None], show: _Shown
) -> Measured | Refusal:
    try:
        result = measure(root, workload, options, admit=_admit, say=say)
    except FreshproofError as error:
        show.error(workload, error)
        raise
    show.result(result)
    return result
