"""``freshproof compare``: is it faster? Two workloads side by side, or two runs that were recorded."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from orchestrator.bench import alone
from orchestrator.cli.completion import variant_names, workload_names
from orchestrator.cli.safe_text import one_line
from orchestrator.cli.terminal import result_console
from orchestrator.compare.arms import Arm, with_variants
from orchestrator.compare.paired import LEAST_BLOCKS, Answer
from orchestrator.compare.records import RecordsCompared, compare_records, records_fields, records_lines
from orchestrator.compare.report import Compared, answer_line, closing_lines, compared_fields, table_cells
from orchestrator.compare.side_by_side import Options, compare_arms
from orchestrator.compare.stored import find_run, last_two
from orchestrator.errors import AnswerIsNo, ConfigurationError, Refused, Undecided
from orchestrator.gate import admit
from orchestrator.gpu_arch import architectures
from orchestrator.machine_code import with_machine_code
from orchestrator.model import Admission, Project, Workload
from orchestrator.report import refusal_fields, refusal_lines
from orchestrator.samples import Refusal
from orchestrator.situation import read_project
from orchestrator.workloads import choose_workloads
from orchestrator.workspace import Workspace, find_root

_CODES = {
    Answer.IMPROVED: 0,
    Answer.SAME: 0,
    Answer.REGRESSED: AnswerIsNo.exit_code,
    Answer.INCONCLUSIVE: Undecided.exit_code,
    Answer.CONTAMINATED: Undecided.exit_code,
}


@click.command(short_help="Say whether one thing is faster than another.")
@click.argument("names", nargs=-1, required=True, shell_complete=workload_names)
@click.option(
    "--with",
    "variants",
    multiple=True,
    metavar="TARGET.VARIANT",
    shell_complete=variant_names,
    help="Compare one workload with itself, this variant in its target's place; may be repeated.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=1.0,
    show_default=True,
    help="The smallest change that matters, in per cent.",
)
@click.option(
    "--blocks",
    type=click.IntRange(min=LEAST_BLOCKS),
    help="Time so many blocks, and look once  [default: look after 8, 12, 16 and 20].",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    help="Seconds that one sample, or a workload's start, may take.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document; progress goes to standard error.")
def command(
    names: tuple[str, ...],
    variants: tuple[str, ...],
    threshold: float,
    blocks: int | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Say whether B is faster than A.

    \b
    freshproof compare A B                     two workloads, timed now, side by side
    freshproof compare A --with TARGET.VARIANT one workload without and with a variant
    freshproof compare A                       the last two recorded runs of a workload
    freshproof compare RUN RUN                 two recorded runs, by id or path

    What is timed now passes the gate as in `bench`. A block holds two samples of each, A B B A or B A A B,
    in processes of their own; blocks are added until they decide. Exit codes: 0 improved or the same, 1
    regressed, 2 a wrong name, 3 inconclusive, 4 other machines or inputs, 5 refused (stale or unproven), 6 a
    result failed its check or a run does not count, 8 something needed is missing, 130 interrupted.
    """
    root = find_root(Path.cwd())
    if math.isnan(threshold):
        raise click.UsageError("--threshold nan is no number")
    if len(names) > 2 or (variants and len(names) > 1):
        raise click.UsageError("two things are compared: two names, or one and what --with puts into it")
    project = read_project(Workspace(root))
    known = {workload.name: workload for workload in project.workloads}
    if variants or (len(names) == 2 and any(name in known for name in names)):
        first, second = _arms(project, names, variants)
        options = Options(blocks, threshold / 100, timeout)
        return _side_by_side(root, first, second, options, as_json)
    if len(names) == 2:
        runs = (find_run(root, names[0]), find_run(root, names[1]))
        if runs[0].run_id == runs[1].run_id:
            raise ConfigurationError(f"both are the run {runs[0].run_id}", remedy="name two runs")
    elif names[0] not in known and Path(names[0]).is_file():
        raise ConfigurationError(f"{names[0]} is one record; two are compared", remedy="name another record")
    else:
        runs = last_two(root, _workload(project, names[0]).name)
    return _of_records(compare_records(*runs, threshold / 100), as_json)


def _arms(project: Project, names: Sequence[str], variants: Sequence[str]) -> tuple[Arm, Arm]:
    first = _workload(project, names[0])
    second = _workload(project, names[-1])
    return Arm("A", first, {}), Arm("B", second, with_variants(second, variants))


def _workload(project: Project, name: str) -> Workload:
    return choose_workloads(project, (name,), "")[0][0]


def _side_by_side(root: Path, first: Arm, second: Arm, options: Options, as_json: bool) -> int:
    def say(line: str) -> None:
        click.echo(line, err=as_json)

    with alone(root, lambda text: say(f"note: {text}")):
        result = compare_arms(root, first, second, options, admit=_admit, say=say)
    if isinstance(result, Refusal):
        click.echo("\n".join(["", *map(one_line, refusal_lines(result)), ""]), err=True)
        if as_json:
            _print_json(refusal_fields(result))
        return Refused.exit_code
    if as_json:
        _print_json(compared_fields(result))
    else:
        _print(result)
    return _CODES[result.paired.answer]


def _admit(root: Path, names: Sequence[str]) -> Admission:
    return with_machine_code(admit(root, names), architectures(os.environ))


def _print(result: Compared) -> None:
    header, *rows, total = table_cells(result)
    table = Table(box=box.SIMPLE, show_edge=False, show_footer=True, pad_edge=False, header_style="bold")
    for index, (name, last) in enumerate(zip(header, total, strict=True)):
        table.add_column(name, last, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    console = result_console()
    titles = (escape(f"{name}: {side.title}") for name, side in zip("AB", result.sides, strict=True))
    console.print("", *titles, "", Padding.indent(table, 2), "", escape(answer_line(result)), "", sep="\n")
    for text in closing_lines(result):
        console.print(Padding.indent(escape(text), 2))


def _of_records(result: RecordsCompared, as_json: bool) -> int:
    if as_json:
        _print_json(records_fields(result))
    else:
        click.echo("\n".join(map(one_line, records_lines(result))))
    return _CODES[result.answer]


def _print_json(fields: dict[str, Any]) -> None:
    click.echo(json.dumps({"schema": "freshproof/compare/1", **fields}, indent=2))
