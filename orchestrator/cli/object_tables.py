"""Tables about the contents of an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from orchestrator.cli.terminal import add_row, new_table
from orchestrator.objects.contents import DEVICE_FORMS
from orchestrator.objects.demangle import demangle
from orchestrator.objects.function import Function
from orchestrator.objects.ptx import PtxEntry
from orchestrator.objects.summary import PieceSummary

UNKNOWN = "?"
_UNLIMITED = 255
"""Registers that a thread may have at most, which ptxas notes where the source says nothing."""


def number(value: int | None) -> str:
    """With separators; ``?`` for what the bytes do not tell."""
    return UNKNOWN if value is None else f"{value:,}"


def threads(function: Function | PtxEntry) -> str:
    """The launch bounds: ``256``, or ``=128`` where the number of threads is fixed."""
    if function.required_threads:
        return "=" + _product(function.required_threads)
    return _product(function.max_threads) if function.max_threads else ""


def cluster(function: Function | PtxEntry) -> str:
    """Blocks of a cluster: ``=2x1`` where the source fixes them, ``8`` where it bounds them."""
    if function.cluster:
        return "=" + _product(function.cluster)
    return number(function.max_cluster) if function.max_cluster else ""


def _product(sizes: Sequence[int]) -> str:
    return "x".join(str(size) for size in sizes).removesuffix("x1").removesuffix("x1")


def spills(function: Function) -> str:
    """Bytes stored and loaded by spills."""
    if function.spill_stores is None or function.spill_loads is None:
        return UNKNOWN
    return (
        "0"
        if not function.spill_stores + function.spill_loads
        else (f"{function.spill_stores:,}/{function.spill_loads:,}")
    )


def kernel_table(pieces: Sequence[PieceSummary]) -> Table:
    """One row for each function of machine code. Columns that no function fills are left out."""
    blocks = {entry.name: entry.min_blocks for piece in pieces for entry in piece.ptx_entries}
    members = {member for piece in pieces if piece.functions if (member := _member(piece.place))}
    headers = (
        "Kernel", "Member", "Arch", ">Registers", ">Spills st/ld", ">Frame", ">Stack", ">Shared", ">Constant",
        ">Threads", ">Min blocks", ">Register limit", ">Cluster", ">Code",
    )  # fmt: skip
    rows = [
        (
            one.demangled if one.kernel else f"{one.demangled}  (device function)",
            _member(piece.place) if len(members) > 1 else "",
            f"{piece.arch}{' rdc' if piece.relocatable else ''}",
            number(one.registers),
            spills(one),
            number(one.frame),
            ">=" + number(one.stack) if one.recursive and one.stack is not None else number(one.stack),
            number(one.shared),
            number(one.constant),
            threads(one),
            _min_blocks(one, blocks),
            number(one.max_registers) if one.max_registers not in (None, _UNLIMITED) else "",
            cluster(one),
            number(one.code_bytes),
        )
        for piece in pieces
        for one in piece.functions
    ]
    return _filled(headers, rows)


def ptx_table(pieces: Iterable[PieceSummary]) -> Table:
    """One row for each kernel of PTX text, with its launch bounds: all that PTX settles."""
    headers = ("Kernel", "Arch", ">Threads", ">Min blocks", ">Register limit", ">Cluster")
    rows = [
        (
            demangle(one.name),
            piece.arch or UNKNOWN,
            threads(one),
            number(one.min_blocks) if one.min_blocks else "",
            number(one.max_registers) if one.max_registers else "",
            cluster(one),
        )
        for piece in pieces
        for one in piece.ptx_entries
    ]
    return _filled(headers, rows)


def _member(place: str) -> str:
    """The archive's member that a piece lies in."""
    return place[1:].partition(")")[0] if place.startswith("(") else ""


def _min_blocks(function: Function, told: Mapping[str, int | None]) -> str:
    """Cubins do not hold it; PTX of the same kernel in the same file does."""
    if not function.max_threads:
        return ""
    if function.name not in told:
        return UNKNOWN
    return number(told[function.name]) if told[function.name] else ""


def _filled(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of those columns in which a row has something."""
    used = [at for at in range(len(headers)) if any(row[at] for row in rows)]
    table = new_table(*(headers[at] for at in used))
    for row in rows:
        add_row(table, *(row[at] for at in used))
    return table


@dataclass(slots=True)
class _Group:
    """Entries of one form, architecture and compression."""

    entries: int = 0
    stored: int = 0
    size: int = 0
    kernels: int = 0
    registers: int = 0
    spilling: int = 0
    unknown: int = 0
    constant: int = 0
    globals: int = 0


def code_table(pieces: Iterable[PieceSummary]) -> Table:
    """One row for each form, architecture and compression of device code."""
    groups: dict[tuple[str, str, str, str], _Group] = {}
    for piece in pieces:
        if piece.form in DEVICE_FORMS or piece.sealed:
            form = f"{piece.form}{', relocatable' if piece.relocatable else ''}"
            key = (form, piece.arch or UNKNOWN, piece.compression, piece.toolkit)
            _count(groups.setdefault(key, _Group()), piece)
    table = new_table(
        "Code", "Arch", "Packed", "Toolkit", ">Entries", ">Stored", ">Size", ">Kernels", ">Most registers",
        ">Spilling", ">Constant data", ">Global data",
    )  # fmt: skip
    for (form, arch, packed, toolkit), group in sorted(groups.items()):
        spilling = f"{group.spilling:,}" + (f" + {group.unknown:,} unknown" if group.unknown else "")
        add_row(
            table,
            form,
            arch,
            packed,
            toolkit,
            f"{group.entries:,}",
            f"{group.stored:,}",
            f"{group.size:,}",
            f"{group.kernels:,}",
            f"{group.registers:,}" if group.registers else "",
            spilling if form.startswith("cubin") else "",
            f"{group.constant:,}" if form.startswith("cubin") else "",
            f"{group.globals:,}" if form.startswith("cubin") else "",
        )
    return table


def _count(group: _Group, piece: PieceSummary) -> None:
    group.entries += 1
    group.stored += piece.stored
    group.size += piece.size
    group.kernels += sum(function.kernel for function in piece.functions) + len(piece.ptx_entries)
    group.registers = max([group.registers, *(one.registers or 0 for one in piece.functions)])
    group.spilling += sum(bool(one.spill_stores or one.spill_loads) for one in piece.functions)
    group.constant += piece.constant_bytes
    group.globals += piece.global_bytes
    group.unknown += sum(one.spill_stores is None for one in piece.functions)
