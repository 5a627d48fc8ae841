"""Two files beside each other: what became of kernels, host code and texts from one to the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from orchestrator.objects.code import CodeDigest, read_code, stable_name
from orchestrator.objects.contents import DEVICE_FORMS, HOST_FORMS, Form, OpenMember, Piece, walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.demangle import demangle
from orchestrator.objects.digests import file_digest, host_sections, normalised_digest, unstamped
from orchestrator.objects.elf import SHT_NOBITS, read_elf
from orchestrator.objects.function import Function
from orchestrator.objects.ptx import entry_bodies
from orchestrator.objects.stamp import Stamp, read_stamps, without_stamps
from orchestrator.objects.step_stamp import StepStamp, read_step_stamps
from orchestrator.objects.summary import texts_of
from orchestrator.objects.window import Bytes

Value = TypeVar("Value")


class Change(StrEnum):
    """What became of a part."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function of machine code or PTX in one file; ``code`` and ``function`` are of machine code only."""

    digest: str
    code: CodeDigest | None = None
    function: Function | None = None


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One function in both files. ``reasons`` says in words which of its parts differ."""

    arch: str
    name: str
    change: Change
    before: Kernel | None
    after: Kernel | None
    reasons: tuple[str, ...] = ()

    @property
    def function(self) -> Function | None:
        """Its measures in the later file that has it; ``None`` for PTX."""
        later = self.after or self.before
        return later.function if later else None


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that two files have or do not have in common."""

    identical: bool
    """Byte by byte."""
    same: bool
    """But for noise: temporary names, string tables, build ids, times in archives."""
    only_stamps: bool
    """Not the same, and the same once the stamps are left out."""
    kernels: tuple[KernelChange, ...]
    has_host: bool
    """Whether there is host code to compare."""
    host: tuple[tuple[str, Change], ...]
    """Sections of host code that are not the same."""
    sealed: tuple[tuple[str, Change], ...]
    """Parts that cannot be read and are not the same."""
    other: tuple[tuple[str, Change], ...]
    """What else of device code is not the same: sections, text of PTX, packing. Where kernels
    changed, the sections that hold them are among these.
    """
    texts_added: tuple[str, ...]
    texts_removed: tuple[str, ...]
    stamps: tuple[tuple[str, str, str], ...]
    """(symbol, before, after) of stamps that differ; ``absent`` where there is none. Compiles by other build
    systems have their sources in the symbol's place.
    """


@dataclass(slots=True)
class Holdings:
    """What one file holds, by names that are stable from build to build, and its digests."""

    file: str
    normalised: str
    unstamped: str
    """The normalised digest with the stamps left out."""
    kernels: dict[tuple[str, str], list[Kernel]] = field(default_factory=dict)
    host: dict[str, list[str]] = field(default_factory=dict)
    sealed: dict[str, list[str]] = field(default_factory=dict)
    other: dict[str, list[str]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    stamps: dict[str, str] = field(default_factory=dict)

    def take(self, piece: Piece, memory: Memory) -> None:
        """Add one piece."""
        with piece.located():
            self._take(piece, memory)

    def _take(self, piece: Piece, memory: Memory) -> None:
        if piece.form in DEVICE_FORMS and piece.place:
            name = f"packing of {piece.form} {piece.arch or ''}".strip()
            self.other.setdefault(name, []).append(f"{piece.compression} {piece.options}")
        self.texts.update(texts_of(piece))
        if piece.sealed:
            name = f"{piece.form} {piece.arch or ''}".strip()
            self.sealed.setdefault(name, []).append(_hex(piece.data))
        elif piece.form is Form.CUBIN:
            key = (_hex(piece.data), piece.arch)
            if key not in memory:
                memory[key] = _cubin_parts(piece)
            self._take_cubin(memory[key])
        elif piece.form is Form.PTX:
            self.other.setdefault(f"text of ptx {piece.arch or ''}".strip(), []).append(_hex(piece.data))
            for name, text in entry_bodies(piece.data).items():
                key = (piece.arch or "", stable_name(name))
                self.kernels.setdefault(key, []).append(Kernel(_hex(text.encode())))
        elif piece.form in HOST_FORMS:
            elf = read_elf(piece.data)
            self._take_stamps(read_stamps(elf))
            self._take_step_stamps(read_step_stamps(elf))
            for name, digest in host_sections(elf):
                if name:  # the first section of every file is none
                    self.host.setdefault(f"{piece.place} {name}".strip(), []).append(digest)

    def _take_cubin(self, parts: CubinParts) -> None:
        self._take_stamps(parts.stamps)
        for name, digest in parts.sections:
            self.other.setdefault(name, []).append(digest)
        for key, kernel in parts.kernels:
            self.kernels.setdefault(key, []).append(kernel)

    def _take_stamps(self, stamps: tuple[Stamp, ...]) -> None:
        self.stamps.update({stamp.symbol: stamp.digest for stamp in stamps})

    def _take_step_stamps(self, stamps: tuple[StepStamp, ...]) -> None:
        for stamp in stamps:  # several compiles of one source may be in it
            name = f"compile of {', '.join(stamp.sources)}"
            self.stamps[name] = " ".join(sorted({*self.stamps.get(name, "").split(), stamp.digest}))


@dataclass(frozen=True, slots=True)
class CubinParts:
    """What one cubin holds, by stable names."""

    stamps: tuple[Stamp, ...]
    sections: tuple[tuple[str, str], ...]
    """Name and digest, stamps left out."""
    kernels: tuple[tuple[tuple[str, str], Kernel], ...]


Memory = dict[tuple[str, str | None], CubinParts]
"""Cubins that were read already: two builds of a library mostly have them in common."""


def _cubin_parts(piece: Piece) -> CubinParts:
    cubin = read_cubin(piece.data, piece.arch)
    digests = read_code(cubin).functions
    arch = f"{cubin.arch}{' rdc' if cubin.relocatable else ''}"
    plain = read_elf(without_stamps(piece.data, cubin.stamps))
    return CubinParts(
        cubin.stamps,
        tuple(
            (f"{arch} {section.name}", _hex(plain.body(section)))
            for section in plain.sections
            if section.type != SHT_NOBITS and section.name
        ),
        tuple(
            ((arch, stable_name(one.name)), Kernel(digests[one.name].whole, digests[one.name], one))
            for one in cubin.functions
        ),
    )


def hold(
    data: Bytes,
    open_member: OpenMember | None = None,
    memory: Memory | None = None,
    advance: Callable[[int], None] = lambda _count: None,
) -> Holdings:
    """Read one file; `orchestrator.objects.window.Malformed` when a part of it is damaged.

    ``memory`` is kept from one file to the next; ``advance`` takes the stored bytes of each piece just read.
    """
    memory = {} if memory is None else memory
    bare = unstamped(data)
    normalised = normalised_digest(data, open_member)
    holdings = Holdings(
        file=file_digest(data),
        normalised=normalised,
        unstamped=normalised if bare is data else normalised_digest(bare, open_member),
    )
    for piece in walk(data, open_member):
        holdings.take(piece, memory)
        advance(piece.stored if piece.form in DEVICE_FORMS else 0)
    return holdings


def compare(old: Holdings, new: Holdings) -> Difference:
    """What two files have in common, and what not."""
    same = old.normalised == new.normalised
    return Difference(
        identical=old.file == new.file,
        same=same,
        only_stamps=not same and old.unstamped == new.unstamped,
        kernels=tuple(_kernel_changes(old.kernels, new.kernels)),
        has_host=bool(old.host or new.host),
        host=tuple(_unlike(old.host, new.host)),
        sealed=tuple(_unlike(old.sealed, new.sealed)),
        other=tuple(_unlike(old.other, new.other)),
        texts_added=tuple(sorted(new.texts - old.texts)),
        texts_removed=tuple(sorted(old.texts - new.texts)),
        stamps=tuple(
            (symbol, old.stamps.get(symbol, "absent"), new.stamps.get(symbol, "absent"))
            for symbol in sorted(old.stamps.keys() | new.stamps.keys())
            if old.stamps.get(symbol) != new.stamps.get(symbol)
        ),
    )


def _unlike(old: dict[str, list[str]], new: dict[str, list[str]]) -> Iterator[tuple[str, Change]]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield name, _change(old.get(name), new.get(name))


def _change(before: Value | None, after: Value | None) -> Change:
    if before is None:
        return Change.ADDED
    if after is None:
        return Change.REMOVED
    return Change.SAME if before == after else Change.CHANGED


def _kernel_changes(
    old: dict[tuple[str, str], list[Kernel]], new: dict[tuple[str, str], list[Kernel]]
) -> Iterator[KernelChange]:
    """A name may occur in several units (templates); equal ones are matched first, the others in order."""
    for arch, name in sorted(old.keys() | new.keys()):
        before, after = list(old.get((arch, name), ())), list(new.get((arch, name), ()))
        for kernel in list(before):
            match = next((other for other in after if other.digest == kernel.digest), None)
            if match is not None:
                before.remove(kernel)
                after.remove(match)
                yield KernelChange(arch, name, Change.SAME, kernel, match)
        for number in range(max(len(before), len(after))):
            first = before[number] if number < len(before) else None
            second = after[number] if number < len(after) else None
            yield KernelChange(arch, name, _change(first, second), first, second, _reasons(first, second))


def _reasons(before: Kernel | None, after: Kernel | None) -> tuple[str, ...]:
    if before is None or after is None or before.code is None or after.code is None:
        return ()
    old, new = before.code, after.code
    told = []
    if old.text != new.text:
        told.append("code")
    if old.attributes != new.attributes:
        told += _measures(before.function, after.function) or ["attributes that no measure shows"]
    if old.data != new.data:
        told.append("data it refers to")
    calls, were = dict(new.calls), dict(old.calls)
    told += [
        f"callee {demangle(name)}"
        for name in sorted(calls.keys() | were.keys())
        if calls.get(name) != were.get(name)
    ]
    return tuple(told)


_MEASURES: tuple[tuple[str, str, Callable[[Function], str]], ...] = (
    ("registers", "", lambda one: _number(one.registers)),
    ("spills", " B", lambda one: _spills(one)),
    ("frame", " B", lambda one: _number(one.frame)),
    ("stack", " B", lambda one: _number(one.stack)),
    ("shared", " B", lambda one: _number(one.shared)),
    ("constant", " B", lambda one: _number(one.constant)),
    ("threads", "", lambda one: _bounds(one.required_threads or one.max_threads)),
    ("register limit", "", lambda one: _number(one.max_registers)),
    ("cluster", "", lambda one: _bounds(one.cluster)),
    ("largest cluster", "", lambda one: _number(one.max_cluster)),
    ("barriers", "", lambda one: _number(one.barriers)),
    ("parameters", " B", lambda one: _number(sum(parameter.size for parameter in one.parameters))),
)
"""What `.nv.info` and the function's own sections say: name, unit, value in words."""


def _measures(before: Function | None, after: Function | None) -> list[str]:
    """Each measure that is not the same, as ``registers 168 -> 172`` or ``spills 0 -> 32/32 B``."""
    if before is None or after is None:
        return []
    pairs = [(name, unit, tell(before), tell(after)) for name, unit, tell in _MEASURES]
    return [f"{name} {old} -> {new}{unit}" for name, unit, old, new in pairs if old != new]


def _spills(function: Function) -> str:
    """Stored and loaded."""
    both = (function.spill_stores, function.spill_loads)
    return "0" if both == (0, 0) else "/".join(map(_number, both))


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _bounds(sizes: tuple[int, int, int] | None) -> str:
    return "x".join(map(str, sizes)) if sizes else "not bound"


def _hex(data: Bytes) -> str:
    return hashlib.sha256(data).hexdigest()
