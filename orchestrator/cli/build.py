"""``freshproof build``: bring targets up to date, and say for each what was done and why."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from orchestrator import lock
from orchestrator.build import Built, Outcome, Progress, Result, build, examine
from orchestrator.build_report import (
    built_fields,
    closing_lines,
    command_lines,
    opening_lines,
    outcome_line,
    trouble_lines,
)
from orchestrator.cli.completion import target_names
from orchestrator.cli.safe_text import is_plain, one_line, visible
from orchestrator.combination import combined
from orchestrator.errors import BuildFailed, ConfigurationError
from orchestrator.situation import Situation, survey
from orchestrator.targets import FILE
from orchestrator.unused import unused_sources
from orchestrator.variants import same_code
from orchestrator.verdict_report import verdict_fields, verdict_lines
from orchestrator.workspace import Workspace, find_root, write_atomically


@click.command(short_help="Build what is not fresh, and record what was built from what.")
@click.argument("targets", nargs=-1, shell_complete=target_names)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Commands at a time  [default: one a core].")
@click.option("--force", is_flag=True, help="Build also what is fresh.")
@click.option("--explain", is_flag=True, help="Say why each target is fresh or not; build nothing.")
@click.option("--plan", "show_plan", is_flag=True, help="Print the commands; run nothing.")
@click.option("--lock", "write_lock", is_flag=True, help="Write manifests/lock.json from this build.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document; progress goes to standard error.")
def command(
    targets: tuple[str, ...],
    jobs: int | None,
    force: bool,
    explain: bool,
    show_plan: bool,
    write_lock: bool,
    as_json: bool,
) -> int:
    """Build TARGETS (default: all of manifests/targets.toml) where they are not fresh.

    Fresh means: building now would run the recorded command on the recorded inputs. Exit codes: 2
    targets.toml is wrong, 7 a step failed, 8 a tool is missing.
    """
    if explain and show_plan:
        raise click.UsageError("--explain and --plan exclude each other")
    workspace = Workspace(find_root(Path.cwd()))
    if show_plan:
        return _show_plan(workspace, targets, as_json)
    if explain:
        return _explain(workspace, targets, as_json)
    return _build(workspace, targets, jobs, force, write_lock, as_json)


def _show_plan(workspace: Workspace, targets: Sequence[str], as_json: bool) -> int:
    situation = survey(workspace, targets, os.environ, remember=True)
    if as_json:
        actions = [
            {"target": a.target.name, "argv": a.argv, "environment": dict(a.environment)}
            for a in situation.actions
        ]
        click.echo(json.dumps({"schema": "freshproof/plan/1", "actions": actions}))
    else:
        lines = [*(f"# {line}" for line in opening_lines(situation)), *command_lines(situation)]
        click.echo("\n".join(map(one_line, lines)))
    return 0


def _explain(workspace: Workspace, targets: Sequence[str], as_json: bool) -> int:
    situation, verdicts = examine(workspace, targets, os.environ)
    if as_json:
        fields = [verdict_fields(verdict) for verdict in verdicts]
        click.echo(json.dumps({"schema": "freshproof/explain/1", "targets": fields}))
    else:
        click.echo("\n".join(map(one_line, [*opening_lines(situation), *verdict_lines(verdicts)])))
    return 0


def _build(
    workspace: Workspace,
    targets: Sequence[str],
    jobs: int | None,
    force: bool,
    write_lock: bool,
    as_json: bool,
) -> int:
    began = time.monotonic()
    gc.disable()  # a tenth of a build in which nothing is due goes into looking for cycles, and none are made
    screen = BuildScreen(as_json)

    def install(folder: Path) -> None:
        from orchestrator.toolkit_install import install_toolkit

        install_toolkit(folder, screen.say)

    built = build(
        workspace, targets, os.environ, jobs=jobs, force=force, install=install, progress=screen.progress()
    )
    failed = [outcome for outcome in built.outcomes if outcome.result is Result.FAILED]
    lock_lines = _lock(workspace, built, write_lock, bool(failed))
    unused: list[str] = []
    if not targets and len(built.manifests) == len(built.situation.actions):
        unused = unused_sources(workspace.root, built.situation.project.source_roots, built.manifests)
    for same in _same_code(workspace, built):
        screen.say(
            f"note: {' and '.join(same)} have the same device code: what tells them apart does nothing"
        )
    for name in _no_longer_defined(workspace, built):
        screen.say(
            f"note: {name} is no longer defined; `freshproof clean {name}` removes what was built of it"
        )
    if not built.outcomes:
        screen.say(f"note: {FILE} defines no target")
    seconds = time.monotonic() - began
    if as_json:
        click.echo(json.dumps(built_fields(built, seconds, lock_lines, unused)))
    for outcome in (o for o in built.outcomes if o.result in (Result.FAILED, Result.UNPROVEN)):
        click.echo(visible("\n".join(trouble_lines(outcome))), err=as_json)
    for line in closing_lines(built, seconds, lock_lines, unused):
        screen.say(line)
    return BuildFailed.exit_code if failed else 0


def _no_longer_defined(workspace: Workspace, built: Built) -> list[str]:
    """Targets with a record here that targets.toml does not name."""
    defined = {target.name: target for target in built.situation.project.targets}
    there = {path.name.removesuffix(".json") for path in (workspace.build / "manifests").glob("*.json")}
    return sorted(name for name in there - defined.keys() if combined(name, defined) is None)


def _same_code(workspace: Workspace, built: Built) -> list[list[str]]:
    """Variants with the same device code, when one was just built."""
    if not built.count(Result.BUILT):
        return []
    return same_code(workspace.root, [a.target for a in built.situation.actions], built.manifests)


def _lock(workspace: Workspace, built: Built, write: bool, failed: bool) -> list[str]:
    """Compare with the lock, or write it; what is to be said about that."""
    path = workspace.lock_file
    made = (o.target for o in built.outcomes if o.result is not Result.FAILED and o.target in built.manifests)
    manifests = {target: built.manifests[target] for target in made}
    try:
        earlier = path.read_bytes() if path.is_file() else None
        if write and failed:
            return ["the lock was not written: a target failed"]
        if write:
            known = [target.name for target in built.situation.project.targets]
            text = lock.to_text(manifests, known, earlier)
            write_atomically(path, text.encode(), durable=True)
            return [f"wrote {workspace.relative(path)}"]
        return lock.compare(manifests, earlier) if earlier is not None else []
    except ValueError as error:
        raise ConfigurationError(
            f"{workspace.relative(path)} is not a lock: {error}",
            remedy="take it from the repository again, or delete it and run `freshproof build --lock`",
        ) from None


class BuildScreen:
    """Lines as things happen. Results go to standard output, or to standard error beside a JSON document."""

    def __init__(self, as_json: bool) -> None:
        self._err = as_json
        self._width = 0

    def say(self, line: str) -> None:
        click.echo(one_line(line), err=self._err)

    def progress(self) -> Progress:
        return Progress(
            note=lambda text: self.say(f"note: {text}"),
            situated=self._situated,
            started=self._started,
            ended=self._ended,
        )

    def _situated(self, situation: Situation) -> None:
        self._width = max((len(a.target.name) for a in situation.actions), default=0)
        for line in opening_lines(situation):
            self.say(line)

    def _started(self, target: str, reason: str) -> None:
        if sys.stderr.isatty():
            click.echo(one_line(f"  building {target:<{self._width}}           {reason}"), err=True)

    def _ended(self, outcome: Outcome) -> None:
        line = outcome_line(outcome, self._width)
        colors = {Result.BUILT: "green", Result.FAILED: "red", Result.UNPROVEN: "yellow"}
        if is_plain() or outcome.result not in colors:
            self.say(line)
        else:
            click.echo(click.style(one_line(line), fg=colors[outcome.result]), err=self._err)
