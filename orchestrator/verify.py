"""Contents against expectations: does the artifact hold what targets.toml demands of it?

Pure. Each expectation gives one observation: a match, a mismatch with the measured value, or, where the bytes
do not tell, something unproven. Nothing here decides; `freshness.judge` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.model import Kind, Link, Observation, Target
from orchestrator.objects.contents import HOST_FORMS, Form, Piece, walk
from orchestrator.objects.cubin import Cubin, Function, read_cubin
from orchestrator.objects.elf import SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STT_SECTION, Elf, read_elf
from orchestrator.objects.stamp import SYMBOL_PREFIX, Stamp, read_stamps
from orchestrator.objects.window import Bytes, Malformed

_FORMS = {
    Kind.CUBIN: {Form.CUBIN},
    Kind.SHARED_LIBRARY: {Form.SHARED_LIBRARY},
    Kind.OBJECT: {Form.OBJECT},
    Kind.DEVICE_LINK: {Form.OBJECT},
    Kind.FATBIN: {Form.FATBIN},
    Kind.PTX: {Form.PTX},
    Kind.ARCHIVE: {Form.ARCHIVE},
    Kind.EXECUTABLE: {Form.EXECUTABLE},
}
_SHF_EXECINSTR = 4


@dataclass(frozen=True, slots=True)
class Contents:
    """An artifact, read: its pieces, and what the two kinds of ELF among them say."""

    form: Form
    pieces: tuple[Piece, ...]
    cubins: tuple[tuple[str, Cubin], ...]
    hosts: tuple[tuple[str, Elf], ...]

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Every device function with the words that name it: its symbol, and the place if there are
        several.
        """
        for place, cubin in self.cubins:
            for function in cubin.functions:
                yield f"{function.name} ({place})" if place else function.name, function

    def stamps(self) -> Iterator[Stamp]:
        """Every stamp of every piece."""
        for _place, cubin in self.cubins:
            yield from cubin.stamps
        for _place, elf in self.hosts:
            yield from read_stamps(elf)


def read_contents(data: Bytes) -> Contents:
    """Read a whole artifact; `Malformed` when any part of it cannot be read."""
    pieces = tuple(walk(data))
    cubins = tuple((piece.place, read_cubin(piece.data)) for piece in pieces if piece.form is Form.CUBIN)
    hosts = tuple((piece.place, read_elf(piece.data)) for piece in pieces if piece.form in HOST_FORMS)
    return Contents(pieces[0].form, pieces, cubins, hosts)


def stamp_symbol(target_name: str) -> str:
    """The name of the symbol that carries a target's stamp."""
    return SYMBOL_PREFIX + re.sub(r"[^0-9A-Za-z]", "_", target_name)


def observe_contents(data: Bytes, target: Target, stamp: str, arch: str | None) -> tuple[Observation, ...]:
    """Compare an artifact's bytes with what its target and its manifest say.

    ``stamp`` is the recorded recipe digest (``sha256:<hex>``), ``arch`` the recorded architecture (``None``
    for host code). Bytes that cannot be read give one observation, ``object-malformed``.
    """
    try:
        contents = read_contents(data)
    except Malformed as fault:
        return (_observation(target.name, "object-malformed", f"a readable {target.kind}", fault.what),)
    if contents.form not in _FORMS.get(target.kind, set()):
        return (_observation(target.name, "kind-differs", str(target.kind), str(contents.form)),)
    checks = _Checks(contents, target)
    return (
        *checks.architectures(arch),
        *checks.stamp(stamp),
        *checks.names(),
        *checks.measures(),
        *checks.texts(),
    )


def _observation(subject: str, code: str, recorded: str, observed: str | None, note: str = "") -> Observation:
    return Observation(Link.CONTENTS, code, subject, recorded, observed, note, _REMEDIES.get(code, ""))


_REMEDIES = {
    "object-malformed": "run `freshproof build`: the file is damaged",
    "kind-differs": "run `freshproof build`, or correct `kind` in targets.toml",
    "arch-differs": "run `freshproof build`",
    "arch-missing": "add the architecture to the target's flags, or take it out of `archs`",
    "stamp-differs": "run `freshproof build`: these bytes come from another recipe",
    "stamp-missing": "run `freshproof build`: these bytes were not made by it",
    "kernel-missing": "check the sources and defines of the target, or its `kernels`",
    "symbol-missing": "check that the source defines and exports it, or the target's `symbols`",
    "registers-over": "see `freshproof inspect`; lower the use, or raise `max-registers`",
    "spills": "see `freshproof inspect`; use __launch_bounds__ or fewer live values, or drop `no-spills`",
    "code-too-large": "see `freshproof inspect`; or raise `max-code-bytes`",
    "text-present": "see `freshproof inspect --find`; or take the text out of `texts-absent`",
    "text-absent": "see `freshproof inspect --find`; or take the text out of `texts-present`",
}


class _Checks:
    """The checks of one artifact; each method yields one observation for each expectation."""

    def __init__(self, contents: Contents, target: Target) -> None:
        self.contents = contents
        self.target = target
        self.expect = target.expect

    def architectures(self, arch: str | None) -> Iterator[Observation]:
        """The architecture that was built for, and each one that targets.toml demands."""
        there = sorted({cubin.arch for _place, cubin in self.contents.cubins})
        if arch is not None:
            observed = arch if arch in there else ", ".join(there) or "no machine code"
            yield _observation(self.target.name, "arch-differs", arch, observed)
        for wanted in self.expect.archs:
            observed = wanted if wanted in there else ", ".join(there) or "no machine code"
            yield _observation(self.target.name, "arch-missing", wanted, observed)

    def stamp(self, recorded: str) -> Iterator[Observation]:
        """The stamp in the bytes is the recorded recipe digest, wherever the target's symbol occurs."""
        symbol = stamp_symbol(self.target.name)
        recorded = recorded if recorded.startswith("sha256:") else f"sha256:{recorded}"
        stamps = [stamp for stamp in self.contents.stamps() if stamp.symbol == symbol]
        if not stamps:
            yield _observation(symbol, "stamp-missing", recorded, "absent")
            return
        wrong = [stamp for stamp in stamps if stamp.digest != recorded]
        if not wrong:
            yield _observation(symbol, "stamp-differs", recorded, recorded)
        else:
            observed = wrong[0].digest if wrong[0].written else "the placeholder: never stamped"
            yield _observation(symbol, "stamp-differs", recorded, observed)

    def names(self) -> Iterator[Observation]:
        """Kernels and symbols that must be there."""
        kernels = [(place, cubin.kernels) for place, cubin in self.contents.cubins]
        if self.target.kind is Kind.CUBIN and not self.expect.kernels:
            some = any(found for _place, found in kernels)
            yield _observation("any kernel", "kernel-missing", "present", "present" if some else "absent")
        for wanted in self.expect.kernels:
            lacking = [
                place for place, found in kernels if not any(_is_named(kernel, wanted) for kernel in found)
            ]
            where = f"absent from {', '.join(lacking)}" if any(lacking) else "absent"
            yield _observation(
                wanted, "kernel-missing", "present", where if lacking or not kernels else "present"
            )
        if self.expect.symbols:
            defined = self._defined_symbols()
            for wanted in self.expect.symbols:
                yield _observation(
                    wanted, "symbol-missing", "present", "present" if wanted in defined else "absent"
                )

    def _defined_symbols(self) -> set[str]:
        """Symbols that a loader can find: all of a cubin's, the global ones of host code."""
        defined = set()
        for _place, cubin in self.contents.cubins:
            defined |= {
                symbol.name for symbol in cubin.symbols if symbol.section and symbol.type != STT_SECTION
            }
        for _place, elf in self.contents.hosts:
            table = SHT_DYNSYM if elf.symbols(SHT_DYNSYM) else SHT_SYMTAB
            defined |= {
                symbol.name for symbol in elf.symbols(table) if symbol.section and symbol.binding != STB_LOCAL
            }
        return defined

    def measures(self) -> Iterator[Observation]:
        """Registers, spills and code size: the worst function speaks for all."""
        if self.expect.max_registers is not None:
            yield self._limit(
                "registers-over", self.expect.max_registers, "registers", lambda one: one.registers
            )
        if self.expect.no_spills:
            yield self._limit("spills", 0, "spilled bytes", _spilled)
        if self.expect.max_code_bytes is not None:
            yield self._code_size(self.expect.max_code_bytes)

    def _limit(
        self, code: str, limit: int, unit: str, measure: Callable[[Function], int | None]
    ) -> Observation:
        measured = [(measure(function), name) for name, function in self.contents.functions()]
        known = [(value, name) for value, name in measured if value is not None]
        over = sorted((value, name) for value, name in known if value > limit)
        wanted = f"at most {limit} {unit}" if limit else f"no {unit}"
        if over:
            value, name = over[-1]
            more = f"; {len(over) - 1} more over the limit" if len(over) > 1 else ""
            return _observation(name, code, wanted, f"{value} {unit}", f"measured {value} in {name}{more}")
        if not measured:
            return _observation(self.target.name, code, wanted, None, "there is no machine code to measure")
        if len(known) < len(measured):
            unknown = next(name for value, name in measured if value is None)
            return _observation(unknown, code, wanted, None, "the object does not tell")
        return _observation(self.target.name, code, wanted, wanted, f"measured at most {max(known)[0]}")

    def _code_size(self, limit: int) -> Observation:
        """The limit holds for each piece of code by itself, so that it does not depend on the number of
        archs.
        """
        sizes = [(cubin.code_bytes, place) for place, cubin in self.contents.cubins]
        if not sizes:
            sizes = [(_host_code_bytes(elf), place) for place, elf in self.contents.hosts]
        largest, place = max(sizes, default=(0, ""))
        wanted = f"at most {limit} bytes of code"
        if not sizes:
            return _observation(
                self.target.name, "code-too-large", wanted, None, "there is no machine code to measure"
            )
        observed = wanted if largest <= limit else f"{largest} bytes of code"
        return _observation(
            place or self.target.name, "code-too-large", wanted, observed, f"measured {largest}"
        )

    def texts(self) -> Iterator[Observation]:
        """Texts that must be there, and texts that must not."""
        for text in self.expect.texts_present:
            yield _observation(
                text, "text-absent", "present", "present" if self._place_of(text) else "absent"
            )
        for text in self.expect.texts_absent:
            place = self._place_of(text)
            yield _observation(text, "text-present", "absent", f"present in {place}" if place else "absent")

    def _place_of(self, text: str) -> str | None:
        sought = text.encode()
        for piece in self.contents.pieces:
            at = bytes(piece.data).find(sought)
            if at >= 0:
                return f"{piece.place or 'the file'} at byte 0x{at:x}"
        return None


def _is_named(kernel: Function, wanted: str) -> bool:
    """By symbol, by the whole demangled name, or by it without template and parameter lists."""
    if wanted == kernel.name:
        return True
    if not kernel.name.startswith("_Z"):
        return False
    return wanted in (kernel.demangled, re.sub(r"[<(].*", "", kernel.demangled).rpartition(" ")[2])


def _spilled(function: Function) -> int | None:
    if function.spill_stores is None or function.spill_loads is None:
        return None
    return function.spill_stores + function.spill_loads


def _host_code_bytes(elf: Elf) -> int:
    return sum(section.size for section in elf.sections if section.flags & _SHF_EXECINSTR)
