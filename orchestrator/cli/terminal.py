"""What commands write to: a console for results, and progress for people only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

_FILE_WIDTH = 240
"""Columns of a table that is written to a file or a pipe, where nothing needs to fit a screen."""


def result_console() -> Console:
    """Standard output: colours on a terminal unless NO_COLOR is set, plain text of full width elsewhere."""
    plain = not sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=plain, width=_FILE_WIDTH if plain else None)


def error_console() -> Console:
    """The same on standard error, for what is said beside another program's output."""
    plain = not sys.stderr.isatty()
    return Console(stderr=True, highlight=False, soft_wrap=plain, width=_FILE_WIDTH if plain else None)


@contextmanager
def bytes_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error for work over ``total`` bytes; the value takes the bytes just done.

    Nothing is shown when standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total)

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
        yield lambda name: status.update(f"{title}: {name}")
