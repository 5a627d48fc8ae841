"""What commands write to: a console for results, and progress for people only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from orchestrator.cli.safe_text import one_line, visible

_FILE_WIDTH = 10_000
"""Columns of a table that is written to a file or a pipe, where nothing needs to fit a screen."""


class _Console(Console):
    """Shows no control codes but its own: all text that it is given, also in tables, is made visible."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Plain text or markup as styled text."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """The library would end the program with exit code 1, which is an answer here."""
        raise BrokenPipeError


def result_console() -> Console:
    """Standard output: colours on a terminal unless NO_COLOR is set, plain text of full width elsewhere."""
    plain = not sys.stdout.isatty()
    return _Console(highlight=False, soft_wrap=plain, width=_FILE_WIDTH if plain else None)


def error_console() -> Console:
    """The same on standard error, for what is said beside another program's output."""
    plain = not sys.stderr.isatty()
    return _Console(stderr=True, highlight=False, soft_wrap=plain, width=_FILE_WIDTH if plain else None)


class FileName(click.Path):
    """A path on the command line; an empty word is none, though it would read as this folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a usage error if there is none."""
        if value == "":
            self.fail("an empty word is no name of a file", param, ctx)
        return super().convert(value, param, ctx)


@contextmanager
def bytes_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error for work over ``total`` bytes; the value takes the bytes just done.

    Nothing is shown when standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(escape(visible(title)), total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        yield advance


@contextmanager
def items_progress(title: str) -> Iterator[Callable[[str], None]]:
    """The name of the item at work on standard error, for people only; the value takes each name."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _name: None
        return
    with console.status(title) as status:
        yield lambda name: status.update(_on_one_line(f"{title}: {name}"))


def _on_one_line(text: str) -> Text:
    """Cut where the terminal ends: a status of two lines would flicker."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")
