"""``freshproof attribute``: which of several variants cost or gain what."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich import box
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from orchestrator.bench import alone
from orchestrator.build import Result, build
from orchestrator.build_report import trouble_lines
from orchestrator.cli.build import BuildScreen
from orchestrator.cli.completion import workload_names
from orchestrator.cli.safe_text import one_line, visible
from orchestrator.cli.terminal import result_console
from orchestrator.compare.attribute import (
    LEAST_BLOCKS,
    Attributed,
    Flag,
    Options,
    arm_of,
    flags_of,
    targets_of,
    time_flags,
    tried,
)
from orchestrator.compare.attribution_report import (
    attributed_fields,
    cells,
    closing_lines,
    no_op_lines,
    opening_line,
)
from orchestrator.errors import AnswerIsNo, BuildFailed, Refused, Undecided
from orchestrator.gate import admit
from orchestrator.gpu_arch import architectures
from orchestrator.machine_code import with_machine_code
from orchestrator.model import Admission, Manifest, Workload
from orchestrator.report import refusal_fields, refusal_lines
from orchestrator.samples import Refusal
from orchestrator.situation import read_project
from orchestrator.variants import same_machine_code
from orchestrator.workloads import choose_workloads
from orchestrator.workspace import Workspace, find_root

_TEXT_COLUMNS = ("flag", "it", "most of it in")
_MOST_DISTURBED = 0.2
_SCHEMA = "freshproof/attribute/1"


@click.command(short_help="Say which of several variants costs or gains what.")
@click.argument("workload", shell_complete=workload_names)
@click.argument("variants", nargs=-1, required=True, metavar="VARIANTS...")
@click.option(
    "--blocks",
    type=click.IntRange(min=LEAST_BLOCKS),
    default=6,
    show_default=True,
    help="How often all is timed.",
)
@click.option(
    "--samples", type=click.IntRange(min=1), default=3, show_default=True, help="Samples of each launch."
)
@click.option(
    "--threshold",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=1.0,
    show_default=True,
    help="The smallest change that matters, in per cent.",
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
    workload: str,
    variants: tuple[str, ...],
    blocks: int,
    samples: int,
    threshold: float,
    timeout: float,
    as_json: bool,
) -> int:
    """Say what each of VARIANTS costs or gains in WORKLOAD, alone and with the others.

    VARIANTS are names such as kernels.wide; a target's name stands for all of its variants. Each is a flag:
    sets of them are built in one target (kernels.wide+fast), and timed under the gate in an order drawn by
    lot. Up to four flags all sets are timed, five or six half of them, more each alone and each left out.

    Exit codes: 0 done, 1 no flag changes the code, 2 a wrong name, 3 other programs were busy, 5 refused
    (stale or unproven), 6 a result failed its check, 7 a set could not be built, 8 something needed is
    missing.
    """
    if math.isnan(threshold):
        raise click.UsageError("--threshold nan is no number")
    workspace = Workspace(find_root(Path.cwd()))
    project = read_project(workspace)
    chosen = choose_workloads(project, (workload,), "")[0][0]
    flags = flags_of(chosen, variants, [target.name for target in project.targets])
    screen = BuildScreen(as_json)
    flags = _built(workspace, chosen, flags, screen)
    options = Options(blocks, samples, threshold / 100, timeout)
    with alone(workspace.root, lambda text: screen.say(f"note: {text}")):
        result = time_flags(workspace.root, chosen, flags, options, admit=_admit, say=screen.say)
    if isinstance(result, Refusal):
        click.echo("\n".join(["", *map(one_line, refusal_lines(result)), ""]), err=True)
        if as_json:
            click.echo(json.dumps({"schema": _SCHEMA, **refusal_fields(result)}, indent=2))
        return Refused.exit_code
    if as_json:
        click.echo(json.dumps({"schema": _SCHEMA, **attributed_fields(result)}, indent=2))
    else:
        _print(result)
    busy = result.disturbed > _MOST_DISTURBED * result.blocks * result.launches
    return Undecided.exit_code if busy else 0


def _built(
    workspace: Workspace, workload: Workload, flags: Sequence[Flag], screen: BuildScreen
) -> tuple[Flag, ...]:
    """The flags that change the code, and all sets of them built. Raises `BuildFailed`, or `AnswerIsNo`."""
    manifests = _build(workspace, tried(workload, flags), screen)
    paths = {name: workspace.root / made.product.path for name, made in manifests.items()}
    active = tuple(flag for index, flag in enumerate(flags) if _matters(workload, flags, index, paths))
    for line in no_op_lines([flag.name for flag in flags if flag not in active]):
        screen.say(line)
    if not active:
        raise AnswerIsNo(
            "no flag changes the code, so there is nothing to time", remedy="see to their defines"
        )
    _build(workspace, targets_of(workload, active), screen)
    return active


def _build(workspace: Workspace, names: Sequence[str], screen: BuildScreen) -> Mapping[str, Manifest]:
    built = build(workspace, names, os.environ, progress=screen.progress())
    failed = [outcome for outcome in built.outcomes if outcome.result is Result.FAILED]
    if failed:
        lines = (line for outcome in failed for line in trouble_lines(outcome))
        raise BuildFailed(
            f"{len(failed)} of {len(names)} targets could not be built",
            details=visible("\n".join(lines)),
            remedy="leave out the variants that do not go together",
        )
    return built.manifests


def _matters(workload: Workload, flags: Sequence[Flag], index: int, paths: Mapping[str, Path]) -> bool:
    """Whether a flag changes the code, beside none or beside all others."""
    others = frozenset(range(len(flags))) - {index}

    def same(first: frozenset[int], second: frozenset[int]) -> bool:
        names = (arm_of(workload, flags, first).uses, arm_of(workload, flags, second).uses)
        return all(a == b or same_machine_code(paths[a], paths[b]) for a, b in zip(*names, strict=True))

    return not (same(frozenset(), frozenset({index})) and same(others, others | {index}))


def _admit(root: Path, names: Sequence[str]) -> Admission:
    return with_machine_code(admit(root, names), architectures(os.environ))


def _print(result: Attributed) -> None:
    header, *rows, total = cells(result)
    table = Table(box=box.SIMPLE, show_edge=False, show_footer=True, pad_edge=False, header_style="bold")
    for name, last in zip(header, total, strict=True):
        table.add_column(name, last, justify="left" if name in _TEXT_COLUMNS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    console = result_console()
    console.print("", escape(opening_line(result)), "", Padding.indent(table, 2), "", sep="\n")
    for text in closing_lines(result):
        console.print(Padding.indent(escape(text), 2))
