"""``freshproof inspect``: what is in a file that holds CUDA code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from orchestrator.cli.failure import error_lines
from orchestrator.cli.object_tables import code_table, kernel_table, ptx_table
from orchestrator.cli.safe_text import one_line
from orchestrator.cli.terminal import FileName, bytes_progress, print_table, result_console, shown
from orchestrator.errors import AnswerIsNo, FreshproofError, Undecided
from orchestrator.foreign.origins import Origins, find_origins
from orchestrator.object_files import member_opener, open_object, reading
from orchestrator.objects.contents import DEVICE_FORMS, Form, form_of, walk
from orchestrator.objects.digests import device_digest, file_digest, normalised_digest, unstamped_digest
from orchestrator.objects.search import Pattern, Search, search, text_pattern
from orchestrator.objects.step_stamp import StepStamp
from orchestrator.objects.summary import PieceSummary, summarize_piece, texts_of
from orchestrator.objects.window import Bytes

Value = TypeVar("Value")

_MANY_KERNELS = 60
_MOST_HITS = 1000


@click.command(short_help="Show what is in files that hold CUDA code.")
@click.argument("files", nargs=-1, required=True, type=FileName())
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option("--find", "sought", metavar="TEXT", help="Look for TEXT or /REGEX/ everywhere, unpacked.")
@click.option("--kernels", is_flag=True, help="Show every kernel, even of a large library.")
@click.option("--texts", is_flag=True, help="Show the printable texts in host and device data.")
@click.option("--digests", is_flag=True, help="Show all digests, not only that of the file.")
def command(
    files: tuple[Path, ...], as_json: bool, sought: str | None, kernels: bool, texts: bool, digests: bool
) -> None:
    """Show what is in FILES: cubins, fat binaries, objects, archives, libraries, programs, PTX, LTO-IR.

    Of each kernel it shows what ptxas settled; on sm_90, Shared counts the 1,024 bytes that CUDA keeps for
    itself in every block. Launch bounds are Threads, Min blocks and Cluster. A cubin does not hold Min blocks
    (its trace is the Register limit that ptxas worked to): it is shown where the file has PTX of the kernel,
    else as "?".

    A stamp that `freshproof run --stamp` put into an object names the compile that made it. Where that
    build's record lies in the file's project, it says when that was, and what changed since of all it read.

    With --find, say where a text still stands: in which section, symbol or unpacked entry. It is sought in
    all bytes, and in names of C++ functions as the source spells them. Offsets count from the start of the
    file, or of the part that is named. A file that cannot be read does not keep the others from being shown.

    \b
    Examples:
      freshproof inspect build/bin/kernels.cubin
      freshproof inspect --find pin_abc target/release/build/*/out/*.a
      freshproof inspect --find '/cudaHostRegister|v[0-9]+-debug/' libapp.so
      freshproof inspect --json app | jq '.files[].pieces[].functions[].registers'

    Exit codes: 1 the text was not found, 2 a file is damaged or of no known kind, 3 the text may be in parts
    that cannot be read.
    """
    unread = _Unread()
    if sought is not None:
        _find(files, sought, as_json, unread)
        return
    reports = unread.each(files, lambda path: _read(path, texts, digests))
    if as_json:
        _print_json(reports, unread)
    else:
        console = result_console()
        for report in reports:
            report.show(console, kernels)
    unread.tell()


def _print_json(reports: Iterator[_Report], unread: _Unread) -> None:
    """One document, written as it comes, so that it is never held whole."""
    click.echo('{"schema": "freshproof/inspect/1", "files": [', nl=False)
    for number, report in enumerate(reports):
        click.echo(",\n" if number else "\n", nl=False)
        for part in report.json_parts():
            click.echo(part, nl=False)
    click.echo(f'\n], "unreadable": {json.dumps(unread.as_json())}}}')


@dataclass(slots=True)
class _Unread:
    """Files that could not be read: told at the end, so that one of them does not hide the others."""

    faults: dict[Path, FreshproofError] = field(default_factory=dict)

    def each(self, files: tuple[Path, ...], read: Callable[[Path], Value]) -> Iterator[Value]:
        """What is read of each file that can be read."""
        for path in files:
            try:
                value = read(path)
            except FreshproofError as fault:
                self.faults[path] = fault
            else:
                yield value

    def as_json(self) -> list[dict[str, str]]:
        """Each with its fault."""
        return [{"path": str(path), "fault": fault.what} for path, fault in self.faults.items()]

    def tell(self) -> None:
        """Raises the fault with the highest exit code, after the others were shown."""
        faults = sorted(self.faults.values(), key=lambda fault: fault.exit_code)
        for fault in faults[:-1]:
            click.echo("\n".join(error_lines(fault)), err=True)
        if faults:
            raise faults[-1]


@dataclass(slots=True)
class _Report:
    """One file, read."""

    path: Path
    size: int
    digests: dict[str, str | None]
    pieces: list[PieceSummary] = field(default_factory=list)
    texts: list[str] | None = None
    _origins: Origins | None = None

    @property
    def step_stamps(self) -> tuple[StepStamp, ...]:
        """Stamps of steps by other build systems, in the file's order."""
        return tuple(dict.fromkeys(stamp for piece in self.pieces for stamp in piece.step_stamps))

    def look_up(self) -> None:
        """Look for the record of a build that gave the stamps."""
        if self.step_stamps:
            self._origins = find_origins(self.path)

    def _steps(self) -> list[dict[str, Any]]:
        """The stamps with the recorded steps that they name."""
        unknown = {"step": None, "paths": (), "changed": None}
        return [
            {**asdict(stamp), **(asdict(origin) if origin else unknown)}
            for stamp in self.step_stamps
            for origin in (self._origins.of(stamp.digest) if self._origins else None,)
        ]

    def _step_lines(self) -> Iterator[str]:
        for stamp in self.step_stamps[:_MANY_KERNELS]:
            told = f": {self._origins.words(stamp)}" if self._origins else ""
            yield f"stamp      {', '.join(stamp.sources)} {stamp.digest}{told}"
        if len(self.step_stamps) > _MANY_KERNELS:
            yield f"stamp      {len(self.step_stamps) - _MANY_KERNELS:,} more; --json has them"

    def json_parts(self) -> Iterator[str]:
        """One JSON object, a line for each piece: a large library has tens of thousands of functions."""
        head = {"path": str(self.path), "form": self.pieces[0].form, "size": self.size}
        tail: dict[str, Any] = {} if self.texts is None else {"texts": self.texts}
        tail |= {"steps": self._steps()} if self.step_stamps else {}
        yield json.dumps({**head, "digests": self.digests, **tail})[:-1] + ', "pieces": [\n'
        for number, piece in enumerate(self.pieces):
            yield (",\n" if number else "") + json.dumps(piece.as_json())
        yield "\n]}"

    def show(self, console: Console, every_kernel: bool) -> None:
        console.print(f"[bold]{shown(self.path)}[/]: {self.pieces[0].form}, {self.size:,} bytes")
        for name, digest in self.digests.items():
            console.print(f"  {name:<11}{digest or 'no device code'}", soft_wrap=True)
        for line in self._notes():
            console.print(f"  {shown(line)}", soft_wrap=True)
        if any(piece.form in DEVICE_FORMS or piece.sealed for piece in self.pieces):
            console.print()
            print_table(console, code_table(self.pieces))
            self._show_kernels(console, every_kernel)
        for text in self.texts or ():
            console.print(f"  {text!r}", markup=False)
        console.print()

    def _notes(self) -> list[str]:
        """Stamps, tools, and what cannot be read or runs only after a compile by the driver."""
        stamps = {
            f"stamp      {stamp.symbol} {stamp.digest if stamp.written else 'not written: the placeholder'}"
            for piece in self.pieces
            for stamp in piece.stamps
        }
        tools = {
            f"made by    {tool.name} {tool.version.rpartition(' ')[2]} {tool.options}"
            for piece in self.pieces
            for tool in piece.tools
        }
        sealed = [
            f"sealed     {piece.place or 'the file'}: {piece.sealed}" for piece in self.pieces if piece.sealed
        ]
        registered = sum(len(piece.registrations) for piece in self.pieces)
        binaries = "fat binary" if registered == 1 else "fat binaries"
        lines = [f"registers  {registered:,} {binaries} with the CUDA runtime"] if registered else []
        lines += [*sorted(stamps), *self._step_lines()]
        lines += [*sorted(tools)[:_MANY_KERNELS], *sealed[:_MANY_KERNELS]]
        forms = {piece.form for piece in self.pieces}
        if Form.LTO_IR in forms and Form.CUBIN not in forms:
            lines.append("no machine code: the device link makes it")
        elif Form.PTX in forms and Form.CUBIN not in forms:
            lines.append("PTX only: the driver compiles it when it is loaded")
        if not forms & DEVICE_FORMS and not sealed:
            lines.append("no device code")
        return lines

    def _show_kernels(self, console: Console, every_kernel: bool) -> None:
        functions = sum(len(piece.functions) for piece in self.pieces)
        entries = 0 if functions else sum(len(piece.ptx_entries) for piece in self.pieces)
        if not functions + entries:
            return
        if not every_kernel and functions + entries > _MANY_KERNELS:
            console.print(f"\n{functions + entries:,} functions; --kernels shows each")
            return
        console.print()
        print_table(console, kernel_table(self.pieces) if functions else ptx_table(self.pieces))


def _read(path: Path, texts: bool, digests: bool) -> _Report:
    data = open_object(path)
    found: set[str] = set()
    with reading(path):
        form_of(data)  # before all of a file is read for its digest that has nothing to show
    with reading(path), bytes_progress(path.name, len(data)) as advance:
        report = _Report(path, len(data), _digests(path, data, digests))
        for piece in walk(data, member_opener(path)):
            report.pieces.append(summarize_piece(piece))
            if texts:
                found.update(texts_of(piece))
            advance(piece.stored if piece.form in DEVICE_FORMS else 0)
    report.texts = sorted(found) if texts else None
    report.look_up()
    return report


def _digests(path: Path, data: Bytes, every: bool) -> dict[str, str | None]:
    digests: dict[str, str | None] = {"file": file_digest(data)}
    if every:
        digests["normalised"] = normalised_digest(data, member_opener(path))
        digests["unstamped"] = unstamped_digest(data)
        digests["device"] = device_digest(data, member_opener(path))
    return digests


def _find(files: tuple[Path, ...], sought: str, as_json: bool, unread: _Unread) -> None:
    """Say where a text stands. Exit code 0 only if it was found; 3 if sealed parts may still hold it."""
    pattern = text_pattern(sought)
    results = dict(unread.each(files, lambda path: (path, _searched(path, pattern))))
    if as_json:
        document = {"schema": "freshproof/find/1", "sought": sought, "files": _found_json(results)}
        click.echo(json.dumps({**document, "unreadable": unread.as_json()}, indent=2))
    else:
        _show_found(results)
    unread.tell()
    if any(found.hits for found in results.values()):
        return
    sealed = [f"{path}: {place}" for path, found in results.items() for place in found.sealed]
    if sealed:
        raise Undecided(
            f"{sought!r} is not in what can be read, but {sealed[0]}" + _more(sealed),
            remedy="build without -dlto to look inside, or inspect the linked program",
        )
    raise AnswerIsNo(f"{sought!r} is not in {', '.join(map(str, files))}")


def _searched(path: Path, pattern: Pattern) -> Search:
    with reading(path):
        return search(open_object(path), pattern, member_opener(path), _MOST_HITS)


def _more(places: list[str]) -> str:
    return f" and {len(places) - 1} more" if len(places) > 1 else ""


def _found_json(results: dict[Path, Search]) -> list[dict[str, Any]]:
    return [
        {
            "path": str(path),
            "hits": [asdict(hit) for hit in found.hits],
            "sealed": list(found.sealed),
            "more": found.more,
        }
        for path, found in results.items()
    ]


def _show_found(results: dict[Path, Search]) -> None:
    for path, found in results.items():
        for hit in found.hits:
            within = f" of {hit.within}" if hit.within else ""
            line = f"{path}: {hit.place} at byte 0x{hit.offset:x}{within}: {hit.excerpt!r}"
            click.echo(one_line(line))
        if found.more:
            click.echo(one_line(f"{path}: more than {_MOST_HITS} places; the search stopped"))
        if found.hits and found.sealed:
            line = f"{path}: not looked into: {found.sealed[0]}{_more(list(found.sealed))}"
            click.echo(one_line(line))
