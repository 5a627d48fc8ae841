"""``freshproof watch``: rebuild and check what a saved file affects."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from orchestrator.build import Built, Outcome, Progress, Result, build
from orchestrator.build_report import built_fields, failure_lines, opening_lines, outcome_line
from orchestrator.cli.failure import error_document
from orchestrator.errors import FreshproofError
from orchestrator.gate import admit
from orchestrator.verdict_report import verdict_lines
from orchestrator.watch import folders_to_watch, watch
from orchestrator.workspace import Workspace, find_root


@click.command(short_help="Rebuild and verify what a saved file affects, until interrupted.")
@click.argument("targets", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON document a round, one a line.")
def command(targets: tuple[str, ...], as_json: bool) -> None:
    """Watch every file that TARGETS (default: all) were built from; build and check after each change.

    Ends with Ctrl-C (exit code 130). An error in targets.toml or a source is shown, and the watch goes on.
    """
    rounds = _Rounds(Workspace(find_root(Path.cwd())), targets, as_json)
    rounds.say("watching; Ctrl-C ends it")
    watch(rounds.workspace.root, rounds.round)


class _Rounds:
    """Builds and reports; a round in which all was and is fresh says nothing, but the first."""

    def __init__(self, workspace: Workspace, targets: Sequence[str], as_json: bool) -> None:
        self.workspace = workspace
        self._targets = targets
        self._as_json = as_json
        self._folders: list[tuple[Path, bool]] = [
            (workspace.root, False),
            (workspace.targets_file.parent, True),
        ]
        self._first = True
        self._unsettled: set[str] = set()
        """Targets that were not as they should be after the last round; an empty name stands for an error."""

    def say(self, line: str) -> None:
        if not self._as_json:
            click.echo(line)

    def round(self, names: list[str]) -> Iterable[tuple[Path, bool]]:
        """Build what is stale now; returns the folders to watch."""
        began = time.monotonic()
        try:
            built = build(
                self.workspace,
                self._targets,
                os.environ,
                progress=Progress(note=lambda t: self.say(f"note: {t}")),
            )
            self._report(built, names, time.monotonic() - began)
            self._folders = folders_to_watch(
                self.workspace.root, built.situation.project, built.manifests.values()
            )
        except FreshproofError as error:
            self._unsettled.add("")
            self.say(f"error: {error.what}\n  -> {error.remedy}")
            if self._as_json:
                click.echo(error_document(error.what, error.remedy, error.exit_code))
        self._first = False
        return self._folders

    def _report(self, built: Built, names: list[str], seconds: float) -> None:
        busy = [o for o in built.outcomes if o.result is not Result.FRESH]
        again = [o.target for o in built.outcomes if o not in busy and self._unsettled & {o.target, ""}]
        settled = (Result.FRESH, Result.BUILT)
        self._unsettled = {o.target for o in built.outcomes if o.result not in settled}
        if not busy and not again and not self._first:
            return
        if self._as_json:
            click.echo(json.dumps({**built_fields(built, seconds, [], []), "changed": names}))
            return
        if self._first:
            self.say("\n".join(opening_lines(built.situation)))
        else:
            self.say(f"{time.strftime('%H:%M:%S')} changed: {', '.join(names) or 'files'}")
        width = max((len(o.target) for o in built.outcomes), default=0)
        for outcome in built.outcomes if self._first else busy:
            self.say(outcome_line(outcome, width))
            if outcome.result is Result.FAILED:
                self.say("\n".join(failure_lines(outcome)))
        if again and not self._first:
            self.say(f"  fresh again: {', '.join(again)}")
        self._verify([o for o in busy if o.result is Result.BUILT])

    def _verify(self, rebuilt: Sequence[Outcome]) -> None:
        """What the gate says of the targets just built."""
        if not rebuilt:
            return
        admission = admit(self.workspace.root, [outcome.target for outcome in rebuilt])
        if admission.admitted:
            self.say(f"  verified {', '.join(outcome.target for outcome in rebuilt)}")
        else:
            self.say("\n".join(verdict_lines(admission.verdicts)))
