"""Files that hold code, read for what a build is judged by: digests, members, stretches of device code."""

from __future__ import annotations

from pathlib import Path

from orchestrator.canonical import digest_bytes
from orchestrator.errors import ConfigurationError
from orchestrator.foreign.made import Content
from orchestrator.object_files import member_opener, open_object
from orchestrator.objects.contents import DEVICE_FORMS, Form, Piece, walk
from orchestrator.objects.digests import device_digest, file_digest, normalised_digest
from orchestrator.objects.summary import summarize_piece
from orchestrator.objects.window import Malformed


def read_content(path: str) -> Content:
    """What is in a file; no form if it holds no code. Raises `ConfigurationError` if it is not there."""
    data = open_object(Path(path))
    opener = member_opener(Path(path))
    digest, size = file_digest(data), len(data)
    try:
        pieces = list(walk(data, opener))
        device = device_digest(data, opener) or ""
        kernels, archs = _code(pieces)
        return Content(
            digest=digest,
            size=size,
            form=str(pieces[0].form),
            normalised=normalised_digest(data, opener),
            device=device,
            pieces=tuple(sorted({digest_bytes(p.data) for p in pieces if p.form in DEVICE_FORMS})),
            kernels=kernels,
            archs=archs,
            members=_members(pieces) if pieces[0].form is Form.ARCHIVE else (),
            sealed=next((f"{p.place}: {p.sealed}" for p in pieces if p.sealed), ""),
        )
    except Malformed as fault:
        holds_code = bytes(data[:4]) == b"\x7fELF" or bytes(data[:2]) == b"!<"
        return Content(digest, size, "", sealed=str(fault) if holds_code else "")
    except ConfigurationError as error:
        return Content(digest, size, "", sealed=error.what)


def read_pieces(path: str) -> tuple[str, ...]:
    """Digests of the stretches of device code in a file; none if it holds no code or cannot be read."""
    try:
        data = open_object(Path(path))
        pieces = walk(data, member_opener(Path(path)))
        return tuple(sorted({digest_bytes(p.data) for p in pieces if p.form in DEVICE_FORMS}))
    except (Malformed, ConfigurationError):
        return ()


def _members(pieces: list[Piece]) -> tuple[tuple[str, str, bool], ...]:
    """Members of an archive, in order. Their place in it is a name in parentheses and nothing else."""
    own = [p for p in pieces[1:] if p.place.find(")") == len(p.place) - 1]
    code = {p.place.partition(")")[0] + ")" for p in pieces if p.form in DEVICE_FORMS}
    return tuple((p.place[1:-1], digest_bytes(p.data), p.place in code) for p in own)


def _code(pieces: list[Piece]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kernels, and architectures of machine code (``sm_90``) and of PTX (``compute_90``). Code that awaits a
    device link counts only where there is no other.
    """
    kernels: dict[str, None] = {}
    archs: dict[bool, set[str]] = {True: set(), False: set()}
    for piece in pieces:
        if piece.form is Form.PTX and piece.arch:
            archs[False].add(piece.arch)
        if piece.form is Form.CUBIN and not piece.sealed:
            summary = summarize_piece(piece)
            kernels.update(dict.fromkeys(f.name for f in summary.functions if f.kernel))
            archs[summary.relocatable].add(summary.arch or "")
    machine = any(arch.startswith("sm_") for arch in archs[False])
    return tuple(kernels), tuple(sorted(archs[False] | (set() if machine else archs[True])))
