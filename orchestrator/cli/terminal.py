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
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from orchestrator.cli.safe_text import is_plain, one_line, visible

_FILE_WIDTH = 10_000
"""Columns of a table that is written to a file or a pipe, where nothing needs to fit a screen."""
_UNBOUNDED = 100_000
"""Columns that the widest table would not need."""


class _Console(Console):
    """Shows no control codes but its own: all text that it is given, also in tables, is made visible."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Plain text or markup as styled text."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """The library would end the program with exit code 1, which is an answer here."""
        raise BrokenPipeError


def result_console() -> Console:
    """Standard output: styled on a terminal unless `is_plain`, text of full width elsewhere."""
    return _console(sys.stdout.isatty())


def error_console(*, markup: bool = True) -> Console:
    """The same on standard error, for what is said beside another program's output."""
    return _console(sys.stderr.isatty(), stderr=True, markup=markup)


def _console(terminal: bool, **options: Any) -> Console:
    return _Console(
        highlight=False,
        soft_wrap=not terminal,
        width=None if terminal else _FILE_WIDTH,
        color_system=None if is_plain() else "auto",  # with none, no style of any kind is written
        **options,
    )


def new_table(*columns: str) -> Table:
    """A table without frames; columns that begin with ``>`` hold numbers, aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.lstrip(">"), justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    return table


def shown(text: object) -> str:
    """A name as a console takes it: on one line, without markup."""
    return escape(one_line(str(text)))


def add_row(table: Table, *cells: str) -> None:
    """One row of plain texts, each on one line."""
    table.add_row(*map(shown, cells))


def print_table(console: Console, table: Table) -> None:
    """A table; on a terminal that is too narrow for it, one block of lines for each row."""
    if not console.is_terminal:
        with console.capture() as captured:
            console.print(table)
        console.out(*(line.rstrip() for line in captured.get().splitlines()), sep="\n", highlight=False)
        return
    wide = console.options.update(max_width=_UNBOUNDED)
    if console.measure(table, options=wide).maximum <= console.width:
        console.print(table)
        return
    headers = [str(column.header).strip() for column in table.columns]
    for first, *rest in zip(*(column.cells for column in table.columns), strict=True):
        console.print(first)
        told = (f"{header.lower()} {cell}" for header, cell in zip(headers[1:], rest, strict=True) if cell)
        console.print(Padding(", ".join(told), (0, 0, 0, 4)))


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

    Nothing is shown when standard error is no terminal, or `is_plain`.
    """
    console = Console(stderr=True)
    still = is_plain() or not console.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=still) as progress:
        task = progress.add_task(escape(visible(title)), total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        yield advance


@contextmanager
def items_progress(title: str) -> Iterator[Callable[[str], None]]:
    """The name of the item at work on standard error, for people only; the value takes each name."""
    console = Console(stderr=True)
    if is_plain() or not console.is_terminal:
        yield lambda _name: None
        return
    with console.status(title) as status:
        yield lambda name: status.update(_on_one_line(f"{title}: {name}"))


def _on_one_line(text: str) -> Text:
    """Cut where the terminal ends: a status of two lines would flicker."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")
