"""``freshproof diff``: two builds of a file beside each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from orchestrator.cli.object_tables import number, spills
from orchestrator.cli.terminal import (
    FileName,
    add_row,
    bytes_progress,
    new_table,
    print_table,
    result_console,
    shown,
)
from orchestrator.object_files import member_opener, open_object, reading
from orchestrator.objects.compare import Change, Difference, Holdings, KernelChange, Memory, compare, hold
from orchestrator.objects.demangle import demangle
from orchestrator.objects.function import Function

_MOST_TEXTS = 40
_MOST_SECTIONS = 12


@click.command(short_help="Compare two builds: kernels, host code, texts.")
@click.argument("before", type=FileName())
@click.argument("after", type=FileName())
@click.option("--all", "every", is_flag=True, help="Show the kernels that are the same, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def command(before: Path, after: Path, every: bool, as_json: bool) -> int:
    """Compare the files BEFORE and AFTER: which kernels changed and why, host code, texts that came or went.

    Any two files that `freshproof inspect` reads. Why a kernel changed is told by its parts: code, data it
    refers to, functions it calls, and each measure with both values. The last line is the answer.

    \b
    Examples:
      freshproof diff old/libapp.so new/libapp.so
      freshproof diff --json before.cubin after.cubin | jq -r .summary

    Exit codes: 0 the same, but for noise that differs from run to run of one compile; 1 different.
    """
    memory: Memory = {}
    difference = compare(_held(before, memory), _held(after, memory))
    if as_json:
        click.echo(json.dumps(_as_json(before, after, difference), indent=2))
    else:
        _show(result_console(), difference, every)
    return 0 if difference.same else 1


def _held(path: Path, memory: Memory) -> Holdings:
    data = open_object(path)
    with reading(path), bytes_progress(path.name, len(data)) as advance:
        return hold(data, member_opener(path), memory, advance)


def summary_line(difference: Difference) -> str:
    """The answer in one line, such as ``1 of 15 kernels changed; host code is the same``."""
    if difference.identical:
        return "identical, byte by byte"
    if difference.same:
        return f"the same code; the bytes differ only in {'stamps and ' if difference.stamps else ''}noise"
    parts = [_kernels_told(difference.kernels)] if difference.kernels else []
    parts += [f"{len(difference.sealed)} sealed parts differ"] if difference.sealed else []
    if difference.only_stamps:
        parts.append("only stamps differ")
    elif difference.has_host:
        parts.append("host code differs" if difference.host else "host code is the same")
    if not difference.only_stamps and not _is_explained(difference):
        parts.append(
            f"other: {_listed(difference.other)}" if difference.other else "parts lie in another order"
        )
    return "; ".join(parts)


def _is_explained(difference: Difference) -> bool:
    """Whether what was said of kernels, host code and sealed parts is why the files are not the same."""
    changed = any(one.change is not Change.SAME for one in difference.kernels)
    return changed or bool(difference.host or difference.sealed)


def _listed(parts: tuple[tuple[str, Change], ...]) -> str:
    told = [f"{name} {change}" for name, change in parts[:_MOST_SECTIONS]]
    more = f", and {len(parts) - _MOST_SECTIONS} more" if len(parts) > _MOST_SECTIONS else ""
    return ", ".join(told) + more


def _kernels_told(changes: tuple[KernelChange, ...]) -> str:
    """Machine code speaks for the file where there is any, so that PTX of the same kernels is not counted
    again. Device functions that have code of their own are told where one of them is not the same.
    """
    machine = [change for change in changes if change.function]
    kernels = [change for change in machine if change.function and change.function.kernel]
    others = [change for change in machine if change.function and not change.function.kernel]
    told = _counted("kernels", kernels if machine else list(changes))
    if any(change.change is not Change.SAME for change in others):
        told += f"; {_counted('device functions', others)}"
    return told


def _counted(what: str, changes: list[KernelChange]) -> str:
    counts = Counter(change.change for change in changes)
    told = [f"{counts[Change.CHANGED]} of {len(changes)} {what} changed"]
    told += [f"{counts[kind]} {kind}" for kind in (Change.ADDED, Change.REMOVED) if counts[kind]]
    return ", ".join(told)


def _show(console: Console, difference: Difference, every: bool) -> None:
    rows = [change for change in difference.kernels if every or change.change is not Change.SAME]
    if rows:
        print_table(console, _kernel_table(rows))
        console.print()
    for title, parts in (("host code", difference.host), ("sealed", difference.sealed)):
        if parts:
            console.print(shown(f"{title}: {_listed(parts)}"))
    for symbol, before, after in difference.stamps:
        console.print(shown(f"stamp: {symbol} {before} -> {after}"))
    for sign, texts in (("-", difference.texts_removed), ("+", difference.texts_added)):
        for text in texts[:_MOST_TEXTS]:
            console.print(f"{sign} {text!r}", markup=False)
        if len(texts) > _MOST_TEXTS:
            console.print(f"{sign} {len(texts) - _MOST_TEXTS} more texts; --json has all")
    console.print(shown(summary_line(difference)))


def _kernel_table(changes: list[KernelChange]) -> Table:
    table = new_table("Kernel", "Arch", "Change", ">Registers", ">Spills st/ld", ">Code", "Why")
    for change in changes:
        add_row(
            table,
            _named(change),
            change.arch,
            str(change.change),
            _both(change, lambda function: number(function.registers)),
            _both(change, spills),
            _both(change, lambda function: number(function.code_bytes)),
            ", ".join(change.reasons),
        )
    return table


def _named(change: KernelChange) -> str:
    name = demangle(change.name)
    return name if change.function is None or change.function.kernel else f"{name}  (device function)"


def _both(change: KernelChange, show: Callable[[Function], str]) -> str:
    """One value where both files agree or only one has the function; else ``40 -> 48``."""
    values = [show(side.function) for side in (change.before, change.after) if side and side.function]
    return " -> ".join(dict.fromkeys(values))


def _as_json(before: Path, after: Path, difference: Difference) -> dict[str, Any]:
    fields = asdict(difference)
    for plain, change in zip(fields["kernels"], difference.kernels, strict=True):
        plain["demangled"] = demangle(change.name)
    return {
        "schema": "freshproof/diff/1",
        "before": str(before),
        "after": str(after),
        "summary": summary_line(difference),
        **fields,
    }
