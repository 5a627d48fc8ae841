"""The form of ``groth16``'s command line: its file names, and how it refuses what it does not understand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from orchestrator.protocol import FD_VARIABLE


class FilePath(click.Path):
    """The path of a file, by name alone: whether it can be opened is for whoever opens it to say.

    (click's own asks the disk beforehand, and its answer is a usage error without a remedy.)
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Refuse what is a mistake, or means a stream to other programs."""
        if not value:
            self.fail("it is empty; give the path of a file", param, ctx)
        if value == "-":
            self.fail(
                "standard input and output are not read or written; `./-` is a file of that name", param, ctx
            )
        return Path(value)


class Commands(click.Group):
    """Commands whose usage errors also reach an orchestrator that waits for a worker's first message."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's."""
        try:
            return super().main(*args, **kwargs)
        except click.UsageError as error:
            if FD_VARIABLE in os.environ:
                from prover.serving import report_failure

                report_failure(error.format_message(), "see `groth16 worker --help`", error.exit_code)
            raise
