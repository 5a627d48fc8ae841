"""``freshproof verify``: is what was built what building now would make, link by link?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table

from orchestrator.build import check_contents, read_manifest
from orchestrator.build_report import verdict_fields, verdict_lines
from orchestrator.cli.object_tables import new_table
from orchestrator.cli.terminal import result_console
from orchestrator.errors import Refused
from orchestrator.gate import admit
from orchestrator.model import Admission, Link, Observation, State, Verdict
from orchestrator.situation import read_project
from orchestrator.targets import select
from orchestrator.workspace import Workspace, find_root

_CHECKED = {
    Link.PLAN: "command and environment as planned now",
    Link.INPUTS: "files read by the compile, and names that were absent",
    Link.TOOLCHAIN: "compilers and their parts",
    Link.ARTIFACT: "bytes of the artifact",
    Link.CONTENTS: "what the artifact holds",
    Link.MEMBERS: "parts that were linked or archived",
}
_DEMANDS = {
    "kind-differs": "kind",
    "arch-differs": "architecture",
    "arch-missing": "architectures",
    "kernel-missing": "kernels",
    "symbol-missing": "symbols",
    "registers-over": "registers",
    "spills": "spills",
    "code-too-large": "code size",
    "text-absent": "texts present",
    "text-present": "texts absent",
}


@click.command(short_help="Check that what is built is what your sources make.")
@click.argument("targets", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def command(targets: tuple[str, ...], as_json: bool) -> int:
    """Check TARGETS (default: all) link by link: plan, inputs, toolchain, artifact, contents, stamp.

    Every file is read in full. Exit codes: 0 all are fresh, 5 one is stale or unproven.
    """
    root = find_root(Path.cwd())
    admission = admit(root, targets)
    contents = _contents(Workspace(root), admission)
    if as_json:
        click.echo(json.dumps(_document(admission, contents), indent=2))
    else:
        _show(admission, contents)
    return 0 if admission.admitted else Refused.exit_code


def _contents(workspace: Workspace, admission: Admission) -> dict[str, tuple[Observation, ...]]:
    """What each artifact was found to hold, expectation by expectation."""
    found = {}
    names = [verdict.target for verdict in admission.verdicts if verdict.state is State.FRESH]
    for target in select(read_project(workspace), names) if names else ():
        manifest, _problem = read_manifest(workspace, target.name)
        if manifest is not None:
            found[target.name] = check_contents(workspace, manifest, target)
    return found


def _show(admission: Admission, contents: dict[str, tuple[Observation, ...]]) -> None:
    console = result_console()
    for verdict in admission.verdicts:
        console.print(f"{verdict.target}: [bold]{verdict.state}[/]")
        console.print(_table(verdict, contents.get(verdict.target, ())))
        if verdict.findings:
            click.echo("\n".join(verdict_lines([verdict])[1:]))
        console.print()
    counts = Counter(verdict.state for verdict in admission.verdicts)
    console.print(
        ", ".join(f"{counts[state]} {state}" for state in State if counts[state] or state is State.FRESH)
    )


def _table(verdict: Verdict, contents: tuple[Observation, ...]) -> Table:
    table = new_table("  Level", ">Matches", ">Findings", "Checked")
    for level, matches, findings, checked in _levels(verdict, contents):
        table.add_row(f"  {level}", f"{matches:,}", str(findings) if findings else "", checked)
    return table


def _levels(verdict: Verdict, contents: tuple[Observation, ...]) -> Iterator[tuple[str, int, int, str]]:
    """Level, matches, findings, and what was checked. The stamp is a level of its own."""
    matches = dict(verdict.matches)
    findings = Counter("stamp" if f.code.startswith("stamp-") else f.link for f in verdict.findings)
    stamps = [one.observed for one in contents if one.code.startswith("stamp-")]
    for link, checked in _CHECKED.items():
        if not matches.get(link) and not findings[link]:
            continue
        count = matches.get(link, 0)
        if link is Link.CONTENTS and contents:
            count -= len(stamps)
            checked = ", ".join(dict.fromkeys(_demand(one) for one in contents if one.code in _DEMANDS))
        yield link, count, findings[link], checked
    if stamps or findings["stamp"]:
        yield "stamp", len(stamps), findings["stamp"], str(stamps[0]) if stamps else ""


def _demand(observation: Observation) -> str:
    """An expectation in words, with its value where that is short."""
    name = _DEMANDS[observation.code]
    return f"{name} {observation.observed}" if observation.code in ("kind-differs", "arch-differs") else name


def _document(admission: Admission, contents: dict[str, tuple[Observation, ...]]) -> dict[str, object]:
    return {
        "schema": "freshproof/verify/1",
        "admitted": admission.admitted,
        "targets": [
            {
                **verdict_fields(verdict),
                "levels": [
                    {"level": level, "matches": matches, "findings": findings, "checked": checked}
                    for level, matches, findings, checked in _levels(
                        verdict, contents.get(verdict.target, ())
                    )
                ],
            }
            for verdict in admission.verdicts
        ],
    }
