"""``freshproof verify``: is what was built what building now would make, link by link?"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from orchestrator.cli.completion import target_and_product_names
from orchestrator.cli.safe_text import one_line
from orchestrator.cli.terminal import add_row, items_progress, new_table, print_table, result_console, shown
from orchestrator.errors import AnswerIsNo, ConfigurationError, Refused
from orchestrator.foreign.admission import (
    Checked,
    check_all,
    check_named,
    cut_off_note,
    decide,
    empty_record_note,
    has_targets,
    open_record,
    split_names,
)
from orchestrator.foreign.made import Build
from orchestrator.foreign.store import Store
from orchestrator.gate import admit
from orchestrator.model import Admission, Link, Manifest, Observation, State, Verdict
from orchestrator.rebuild import Rebuilt, rebuild
from orchestrator.rebuild_report import rebuilt_fields, rebuilt_lines
from orchestrator.recorded import check_contents, read_manifest
from orchestrator.situation import read_project
from orchestrator.stale_copies import observe_copies, with_copies
from orchestrator.targets import select
from orchestrator.verdict_report import lines_of_each, verdict_fields
from orchestrator.workspace import Workspace, find_root

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
@click.argument("targets", nargs=-1, shell_complete=target_and_product_names)
@click.option("--rebuild", "again", is_flag=True, help="Build each a second time, cleanly, and compare.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def command(targets: tuple[str, ...], again: bool, as_json: bool) -> int:
    """Check TARGETS (default: all) level by level.

    \b
    plan         targets.toml, variables and tools, planned again, give the recorded command
    inputs       every file that the compile read, and every name that it did not find
    toolchain    every program and library that took part
    artifact     its bytes
    contents     kind, architecture, and what `expect` in targets.toml demands
    stamp        the recipe that the artifact itself carries
    members      the products of other targets that went in
    device-link  linked device code comes from its members' code, function by function
    copies       files of the artifact's name or stamp elsewhere in the project and in
                 LD_LIBRARY_PATH: a stale one is a finding (`freshproof audit` finds more)

    Every file is read in full. Where `freshproof run` recorded a build, its products are checked as well, and
    the processes that still run what it replaced. With --rebuild, what is fresh is also built a second time:
    cubins, fat binaries and PTX must come out byte for byte, the rest up to noise such as temporary names.

    \b
    Examples:
      freshproof verify
      freshproof verify kernels --rebuild
      freshproof verify --json | jq '.targets[] | select(.state != "fresh")'

    Exit codes: 0 all are fresh (and the same), 1 a second build differs, 2 a wrong name or targets.toml, 5
    one is stale or unproven, 7 the second build failed, 8 something needed is missing.
    """
    if note := cut_off_note(Path.cwd()):
        click.echo(one_line(f"note: {note}"), err=True)
    recorded = open_record(Path.cwd())
    targets, products = split_names(targets, recorded, Path.cwd())
    if targets and not products:
        recorded = None
    if recorded is not None and not targets and (products or not has_targets(Path.cwd())):
        if again:
            raise ConfigurationError("--rebuild needs targets of targets.toml", remedy="leave it out")
        return _show_recorded(Admission((), ()), {}, _checked(recorded, products), as_json)
    workspace = Workspace(find_root(Path.cwd()))
    admission = admit(workspace.root, targets)
    with items_progress("looking for copies") as advance:
        copies = observe_copies(workspace, admission.verdicts, os.environ, advance)
    details = _details(workspace, admission, copies)
    admission = with_copies(admission, copies)
    if recorded is not None and not again:
        return _show_recorded(admission, details, _checked(recorded, products), as_json)
    rebuilt: tuple[Rebuilt, ...] = ()
    if again and admission.admitted:
        rebuilt = rebuild(workspace, targets, os.environ, lambda text: click.echo(one_line(text), err=True))
    if as_json:
        document = _document(admission, details)
        click.echo(
            json.dumps({**document, "rebuilt": rebuilt_fields(rebuilt)} if again else document, indent=2)
        )
    else:
        _show(admission, details)
        click.echo("\n".join(map(one_line, rebuilt_lines(rebuilt))), nl=bool(rebuilt))
    if not admission.admitted:
        return Refused.exit_code
    return 0 if all(one.kept for one in rebuilt) else AnswerIsNo.exit_code


def _checked(recorded: tuple[Store, Build], products: tuple[str, ...]) -> Checked:
    """On the recorded products named; without names on all."""
    if products:
        return check_named(*recorded, products, os.environ)
    return check_all(*recorded, os.environ)


def _show_recorded(own: Admission, details: dict[str, _Detail], checked: Checked, as_json: bool) -> int:
    """The project's own targets, then what other build systems made."""
    admission = decide(own, checked)
    if note := empty_record_note(own, checked):
        click.echo(one_line(f"note: {note}"), err=True)
    leftover = [path.removeprefix(f"{checked.build.root}/") for path in checked.leftover]
    if as_json:
        click.echo(json.dumps({**_document(admission, details), "left_over": leftover}, indent=2))
    else:
        _show(admission, details)
        if leftover:
            click.echo(one_line(f"left over from earlier builds and used by nothing: {', '.join(leftover)}"))
    return 0 if admission.admitted else Refused.exit_code


@dataclass(frozen=True, slots=True)
class _Detail:
    """What stands behind a verdict of fresh: the record, and what the artifact was found to hold."""

    manifest: Manifest
    contents: tuple[Observation, ...]
    copies: tuple[Observation, ...]

    def checked(self) -> dict[Link, str]:
        """What was compared, link by link, in words."""
        record = self.manifest
        absent = record.closure.absent_names
        tools = len(record.tools.components)
        return {
            Link.PLAN: f"{len(record.argv)} words of the command, {len(record.environment)} variables",
            Link.INPUTS: f"{record.closure.files:,} files, {absent:,} absent names",
            Link.TOOLCHAIN: f"{tools:,} files of CUDA {record.toolkit_version} and the host compiler",
            Link.ARTIFACT: f"{record.product.digest}, {record.product.size:,} bytes",
            Link.CONTENTS: ", ".join(dict.fromkeys(_demand(o) for o in self.contents if o.code in _DEMANDS)),
            Link.DEVICE_LINK: ", ".join(_found(self.contents, Link.DEVICE_LINK)),
            Link.COPIES: ", ".join(_found(self.copies, Link.COPIES)),
        }

    def stamps(self) -> list[str]:
        """The stamps found."""
        return [one.observed or "" for one in self.contents if one.code.startswith("stamp-")]


def _found(observations: Iterable[Observation], link: Link) -> Iterator[str]:
    """What was found as it should be, in words."""
    return (o.observed for o in observations if o.link is link and o.observed and o.observed == o.recorded)


def _demand(observation: Observation) -> str:
    """An expectation in words, with its value where that is short."""
    name = _DEMANDS[observation.code]
    return f"{name} {observation.observed}" if observation.code in ("kind-differs", "arch-differs") else name


def _details(
    workspace: Workspace, admission: Admission, copies: Mapping[str, tuple[Observation, ...]]
) -> dict[str, _Detail]:
    found = {}
    names = [verdict.target for verdict in admission.verdicts if verdict.state is State.FRESH]
    for target in select(read_project(workspace), names) if names else ():
        manifest, _problem = read_manifest(workspace, target.name)
        if manifest is not None:
            contents = check_contents(workspace, manifest, target)
            found[target.name] = _Detail(manifest, contents, copies.get(target.name, ()))
    return found


def _show(admission: Admission, details: dict[str, _Detail]) -> None:
    console = result_console()
    for verdict, (_state, *lines) in zip(admission.verdicts, lines_of_each(admission.verdicts), strict=True):
        console.print(f"{shown(verdict.target)}: [bold]{verdict.state}[/]")
        print_table(console, _table(verdict, details.get(verdict.target)))
        if verdict.findings:
            click.echo("\n".join(map(one_line, lines)))
        console.print()
    counts = Counter(verdict.state for verdict in admission.verdicts)
    states = [state for state in State if counts[state] or state is State.FRESH]
    console.print(", ".join(f"{counts[state]} {state}" for state in states))


def _table(verdict: Verdict, detail: _Detail | None) -> Table:
    table = new_table("  Level", ">Matches", ">Findings", "Checked")
    for level, matches, findings, checked in _levels(verdict, detail):
        add_row(table, f"  {level}", f"{matches:,}", str(findings) if findings else "", checked)
    return table


def _levels(verdict: Verdict, detail: _Detail | None) -> Iterator[tuple[str, int, int, str]]:
    """Level, matches, findings, and what was checked. The stamp is a level of its own."""
    matches = dict(verdict.matches)
    findings = Counter("stamp" if f.code.startswith("stamp-") else f.link for f in verdict.findings)
    checked = detail.checked() if detail else {}
    stamps = detail.stamps() if detail else []
    for link in Link:
        count = matches.get(link, 0) - (len(stamps) if link is Link.CONTENTS else 0)
        if count or findings[link]:
            yield link, count, findings[link], checked.get(link, "")
        if link is Link.CONTENTS and (stamps or findings["stamp"]):
            yield "stamp", len(stamps), findings["stamp"], stamps[0] if stamps else ""


def _document(admission: Admission, details: dict[str, _Detail]) -> dict[str, Any]:
    targets = []
    for verdict in admission.verdicts:
        levels = [
            {"level": level, "matches": matches, "findings": findings, "checked": checked}
            for level, matches, findings, checked in _levels(verdict, details.get(verdict.target))
        ]
        targets.append({**verdict_fields(verdict), "levels": levels})
    return {"schema": "freshproof/verify/1", "admitted": admission.admitted, "targets": targets}
