"""What tells one build of code from another once it is copied, archived or linked into something else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.objects.code import read_code, stable_name
from orchestrator.objects.contents import DEVICE_FORMS, HOST_FORMS, Form, OpenMember, Piece, walk
from orchestrator.objects.cubin import Cubin, read_cubin
from orchestrator.objects.digests import file_digest
from orchestrator.objects.elf import STT_FILE, Elf, read_elf
from orchestrator.objects.ptx import read_ptx
from orchestrator.objects.stamp import Stamp, read_stamps, without_stamps
from orchestrator.objects.window import Bytes

_UNIT = re.compile(r"tmpxft_[0-9a-f]{8}_[0-9a-f]{8}\S*")


@dataclass(slots=True)
class Traces:
    """The marks of one file's code."""

    form: Form
    digest: str
    holds_code: bool = False
    """Whether there is any piece of device code."""
    stamps: dict[str, str] = field(default_factory=dict)
    """Digest by symbol."""
    device: set[str] = field(default_factory=set)
    """Digests of its pieces of device code, stamps left out; without those that hold no function, since they
    are the same in every file.
    """
    kernels: dict[tuple[str, str], str] = field(default_factory=dict)
    """Digest of the machine code by architecture and name."""
    units: set[str] = field(default_factory=set)
    """Names that nvcc gave to its temporary files: another one for every compile, and kept by the linker."""


def read_traces(data: Bytes, open_member: OpenMember | None = None) -> Traces:
    """The traces of a file; `orchestrator.objects.window.Malformed` when a part of it is damaged."""
    pieces = walk(data, open_member)
    first = next(pieces)
    traces = Traces(first.form, file_digest(data))
    for piece in _all(first, pieces):
        with piece.located():
            _take(traces, piece)
    return traces


def _all(first: Piece, rest: Iterator[Piece]) -> Iterator[Piece]:
    yield first
    yield from rest


def _take(traces: Traces, piece: Piece) -> None:
    traces.holds_code |= piece.form in DEVICE_FORMS
    if piece.form is Form.CUBIN and not piece.sealed:
        cubin = read_cubin(piece.data, piece.arch)
        _take_stamps(traces, cubin.stamps)
        if cubin.functions:
            traces.device.add(_hex(without_stamps(piece.data, cubin.stamps)))
        _take_kernels(traces, cubin)
    elif piece.form is Form.LTO_IR or (piece.form is Form.PTX and read_ptx(piece.data).entries):
        traces.device.add(_hex(piece.data))
    elif piece.form in HOST_FORMS:
        elf = read_elf(piece.data)
        _take_stamps(traces, read_stamps(elf))
        traces.units |= _units(elf)


def _take_stamps(traces: Traces, stamps: tuple[Stamp, ...]) -> None:
    traces.stamps.update({stamp.symbol: stamp.digest for stamp in stamps if stamp.written})


def _take_kernels(traces: Traces, cubin: Cubin) -> None:
    code = read_code(cubin)
    arch = f"{cubin.arch}{' rdc' if cubin.relocatable else ''}"
    for kernel in cubin.kernels:
        traces.kernels[arch, stable_name(kernel.name)] = code.functions[kernel.name].whole


def _hex(data: Bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _units(elf: Elf) -> set[str]:
    return {symbol.name for symbol in elf.symbols() if symbol.type == STT_FILE and _UNIT.match(symbol.name)}


def is_linked(program: Traces, part: Traces) -> bool | None:
    """Whether a program was linked from an archive or object; ``None`` if the bytes do not tell.

    The names of temporary files tell builds apart even if their device code is the same; a stripped program
    has lost them. Then device code tells, as far as it differs.
    """
    if part.device and not part.device & program.device:
        return False
    if part.units and program.units:
        return bool(part.units & program.units)
    return True if part.device and part.device <= program.device else None
