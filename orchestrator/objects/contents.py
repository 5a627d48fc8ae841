"""What a file holds, kind by kind, as a stream of pieces: the one walk that all questions are asked of.

A piece is one stretch of bytes with a meaning of its own. Pieces come one at a time, so that a library of
hundreds of megabytes is never held decompressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.objects.cubin import is_cubin
from orchestrator.objects.elf import ET_DYN, ET_EXEC, ET_REL, is_elf, read_elf
from orchestrator.objects.window import Bytes, Malformed


class Form(StrEnum):
    """What the bytes of a piece are."""

    CUBIN = "cubin"
    OBJECT = "host object"
    SHARED_LIBRARY = "shared library"
    EXECUTABLE = "executable"


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of bytes. ``place`` says where in the file it lies, for people; empty for the file
    itself.
    """

    form: Form
    data: memoryview = field(repr=False)
    place: str = ""


def walk(data: Bytes) -> Iterator[Piece]:
    """The file itself, then everything inside of it; `Malformed` when a part is damaged or of no known
    kind.
    """
    yield Piece(form_of(data), memoryview(data))


def form_of(data: Bytes) -> Form:
    """The form of a whole file, by its first bytes."""
    if is_cubin(data):
        return Form.CUBIN
    if is_elf(data):
        elf = read_elf(data)
        if elf.type == ET_REL:
            return Form.OBJECT
        if elf.type == ET_DYN:
            return Form.SHARED_LIBRARY
        if elf.type == ET_EXEC:
            return Form.EXECUTABLE
    raise Malformed("none of the kinds of file that hold CUDA code", 0)
