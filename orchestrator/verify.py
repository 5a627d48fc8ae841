"""Contents against expectations: does the artifact hold what targets.toml demands of it?

Pure. Each expectation gives one observation: a match, a mismatch with the measured value, or, where the bytes
do not tell, something unproven. Nothing here decides; `freshness.judge` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.device_link import observe_device_link
from orchestrator.kinds import is_stamped
from orchestrator.model import Kind, Link, Observation, Target
from orchestrator.objects.contents import HOST_FORMS, Form, walk
from orchestrator.objects.cubin import Cubin, read_cubin
from orchestrator.objects.elf import SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STT_SECTION, Elf, read_elf
from orchestrator.objects.function import Function
from orchestrator.objects.ptx import Ptx, read_ptx
from orchestrator.objects.search import Search, search, text_pattern
from orchestrator.objects.stamp import SYMBOL_PREFIX, Stamp, read_stamps
from orchestrator.objects.window import Bytes, Malformed
from orchestrator.targets import unit_of

_FORMS = {
    Kind.CUBIN: Form.CUBIN,
    Kind.FATBIN: Form.FATBIN,
    Kind.PTX: Form.PTX,
    Kind.OBJECT: Form.OBJECT,
    Kind.DEVICE_LINK: Form.OBJECT,
    Kind.ARCHIVE: Form.ARCHIVE,
    Kind.SHARED_LIBRARY: Form.SHARED_LIBRARY,
    Kind.EXECUTABLE: Form.EXECUTABLE,
}
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
_SHF_EXECINSTR = 4
_CODES = re.compile(r"\bcode=\[?((?:(?:sm|compute|lto)_\d+[af]?,?)+)")


@dataclass(slots=True)
class _Contents:
    """An artifact, read: its form, and the parts that expectations are about."""

    form: Form
    cubins: list[Cubin] = field(default_factory=list)
    ptx: list[Ptx] = field(default_factory=list)
    hosts: list[Elf] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    """Parts that hold code which cannot be read."""
    awaiting: list[str] = field(default_factory=list)
    """Architectures of LTO-IR, from which the device link makes machine code."""

    def machine_code(self) -> list[Cubin]:
        """Code as it runs; code that still awaits the device link only if there is nothing else."""
        return [cubin for cubin in self.cubins if not cubin.relocatable] or self.cubins

    def by_arch(self) -> dict[str, list[Cubin]]:
        """Machine code, by the architecture that it is for."""
        found: dict[str, list[Cubin]] = {}
        for cubin in self.machine_code():
            found.setdefault(cubin.arch, []).append(cubin)
        return found

    def stamps(self) -> Iterator[Stamp]:
        """Every stamp of every part."""
        for cubin in self.cubins:
            yield from cubin.stamps
        for elf in self.hosts:
            yield from read_stamps(elf)


def _read(data: Bytes) -> _Contents:
    pieces = walk(data)
    first = next(pieces)
    contents = _Contents(first.form)
    for piece in (first, *pieces):
        with piece.located():
            if piece.form is Form.LTO_IR and piece.arch:
                contents.awaiting.append(piece.arch.replace("lto_", "sm_"))
            if piece.sealed:
                contents.sealed.append(f"{piece.place or 'the file'} ({piece.sealed})")
            elif piece.form is Form.CUBIN:
                contents.cubins.append(read_cubin(piece.data, piece.arch))
            elif piece.form is Form.PTX:
                contents.ptx.append(read_ptx(piece.data))
            elif piece.form in HOST_FORMS:
                contents.hosts.append(read_elf(piece.data))
    return contents


def observe_contents(
    data: Bytes, target: Target, stamp: str, arch: str | None, members: Sequence[Bytes] = ()
) -> tuple[Observation, ...]:
    """Compare an artifact's bytes with what its target and its manifest say.

    ``stamp`` is the recorded recipe digest (``sha256:<hex>``), ``arch`` the recorded architecture (``None``
    for host code), ``members`` the products that went into it. Bytes that cannot be read give one
    observation, ``object-malformed``; bytes of another kind, ``kind-differs``.
    """
    try:
        contents = _read(data)
        wanted = _FORMS[target.kind]
        kind = _observation(target.name, "kind-differs", wanted, contents.form)
        if contents.form is not wanted:
            return (kind,)
        return (
            kind,
            *_architectures(contents, target, arch),
            *((_stamp(contents, target, stamp),) if is_stamped(target) else ()),
            *_kernels(contents, target),
            *_symbols(contents, target),
            *_measures(contents, target),
            *_texts(data, target),
            *_device_link(contents, target, members),
        )
    except Malformed as fault:
        return (_observation(target.name, "object-malformed", f"a readable {target.kind}", fault.what),)


def _observation(subject: str, code: str, recorded: str, observed: str | None, note: str = "") -> Observation:
    return Observation(Link.CONTENTS, code, subject, recorded, observed, note, _REMEDIES[code])


def _architectures(contents: _Contents, target: Target, arch: str | None) -> Iterator[Observation]:
    """The architecture that was built for, and each one that targets.toml demands."""
    there = sorted({*contents.by_arch(), *(contents.awaiting if target.kind is Kind.OBJECT else ())})
    if not there and contents.ptx:
        there = [f"only PTX for {contents.ptx[0].target}, which the driver would compile when it is loaded"]
    told = ", ".join(there) or "no machine code"
    if arch is not None and target.kind is not Kind.PTX:
        yield _observation(target.name, "arch-differs", arch, arch if arch in there else told)
    for wanted in _named_architectures(target):
        present = wanted in there or wanted in {_virtual(ptx) for ptx in contents.ptx}
        yield _observation(target.name, "arch-differs", wanted, wanted if present else told)
    for wanted in target.expect.archs:
        yield _observation(target.name, "arch-missing", wanted, wanted if wanted in there else told)


def _named_architectures(target: Target) -> Iterator[str]:
    """What the target's own ``-gencode`` flags name: machine code, and PTX where nothing is linked."""
    kinds = ("sm", "compute") if target.kind in (Kind.FATBIN, Kind.OBJECT) else ("sm",)
    if any(word in ("-dlto", "--dlink-time-opt") for word in target.flags):
        return  # the device link makes the machine code
    found = (name for word in target.flags for codes in _CODES.findall(word) for name in codes.split(","))
    yield from (name for name in dict.fromkeys(found) if name.partition("_")[0] in kinds)


def _virtual(ptx: Ptx) -> str:
    """``compute_90`` of text for ``sm_90``."""
    return ptx.target.partition(",")[0].strip().replace("sm_", "compute_")


def _stamp(contents: _Contents, target: Target, recorded: str) -> Observation:
    """The stamp in the bytes is the recorded recipe digest, wherever the target's symbol occurs."""
    symbol = SYMBOL_PREFIX + unit_of(target.name)
    recorded = f"sha256:{recorded.removeprefix('sha256:')}"
    stamps = [stamp for stamp in contents.stamps() if stamp.symbol == symbol]
    if not stamps:
        return _observation(symbol, "stamp-missing", recorded, "absent")
    wrong = [stamp for stamp in stamps if stamp.digest != recorded or not stamp.written]
    if not wrong:
        return _observation(symbol, "stamp-differs", recorded, recorded)
    observed = wrong[0].digest if wrong[0].written else "the placeholder: never stamped"
    return _observation(symbol, "stamp-differs", recorded, observed)


def _kernels(contents: _Contents, target: Target) -> Iterator[Observation]:
    """Each kernel is there for every architecture that the artifact has code for."""
    if target.kind is Kind.CUBIN and not target.expect.kernels:
        some = any(cubin.kernels for cubin in contents.cubins)
        yield _observation("any kernel", "kernel-missing", "present", "present" if some else "absent")
    for wanted in target.expect.kernels:
        yield _kernel(contents, wanted)


def _kernel(contents: _Contents, wanted: str) -> Observation:
    archs = contents.by_arch()
    lacking = [
        arch
        for arch, cubins in archs.items()
        if not any(_is_named(kernel, wanted) for cubin in cubins for kernel in cubin.kernels)
    ]
    in_ptx = any(entry.name == wanted for ptx in contents.ptx for entry in ptx.entries)
    observed: str | None = "present"
    note = ""
    if not archs and in_ptx:
        pass
    elif not archs or len(lacking) == len(archs):
        observed = "only in PTX" if in_ptx else "absent"
    elif lacking:
        observed = f"absent for {', '.join(lacking)}"
    if observed != "present" and contents.sealed:
        observed, note = None, f"{wanted} is not in what can be read; {contents.sealed[0]} cannot be"
    return _observation(wanted, "kernel-missing", "present", observed, note)


def _is_named(kernel: Function, wanted: str) -> bool:
    """By symbol, by the whole demangled name, or by it without template and parameter lists."""
    if wanted == kernel.name:
        return True
    if not kernel.name.startswith("_Z"):
        return False
    return wanted in (kernel.demangled, re.sub(r"[<(].*", "", kernel.demangled).rpartition(" ")[2])


def _symbols(contents: _Contents, target: Target) -> Iterator[Observation]:
    if not target.expect.symbols:
        return
    defined = set(_defined_symbols(contents))
    for wanted in target.expect.symbols:
        yield _observation(wanted, "symbol-missing", "present", "present" if wanted in defined else "absent")


def _defined_symbols(contents: _Contents) -> Iterator[str]:
    """Symbols that a loader can find: all of a cubin's, the global ones of host code."""
    for cubin in contents.cubins:
        yield from (one.name for one in cubin.symbols if one.section and one.type != STT_SECTION)
    for elf in contents.hosts:
        symbols = elf.symbols(SHT_DYNSYM) or elf.symbols(SHT_SYMTAB)
        yield from (one.name for one in symbols if one.section and one.binding != STB_LOCAL)


def _measures(contents: _Contents, target: Target) -> Iterator[Observation]:
    """Registers, spills and code size: the worst function speaks for all."""
    expect = target.expect
    functions = [one for cubin in contents.machine_code() for one in cubin.functions]
    if expect.max_registers is not None:
        limit = expect.max_registers
        yield _limit("registers-over", target.name, functions, limit, "registers", lambda one: one.registers)
    if expect.no_spills:
        yield _limit("spills", target.name, functions, 0, "spilled bytes", _spilled)
    if expect.max_code_bytes is not None:
        yield _code_size(contents, target.name, expect.max_code_bytes)


def _limit(
    code: str,
    target_name: str,
    functions: Iterable[Function],
    limit: int,
    unit: str,
    measure: Callable[[Function], int | None],
) -> Observation:
    measured = [(measure(function), function.demangled) for function in functions]
    wanted = f"at most {limit} {unit}" if limit else f"no {unit}"
    over = sorted((value, name) for value, name in measured if value is not None and value > limit)
    if over:
        value, name = over[-1]
        more = f"; {len(over) - 1} more functions have over {limit}" if len(over) > 1 else ""
        note = f"{name}: {value} {unit}, {wanted} expected{more}"
        return _observation(name, code, wanted, f"{value} {unit}", note)
    unknown = [name for value, name in measured if value is None]
    if not measured or unknown:
        subject = unknown[0] if unknown else target_name
        return _observation(subject, code, wanted, None, f"{subject}: the bytes do not tell its {unit}")
    return _observation(target_name, code, wanted, wanted)


def _spilled(function: Function) -> int | None:
    if function.spill_stores is None or function.spill_loads is None:
        return None
    return function.spill_stores + function.spill_loads


def _code_size(contents: _Contents, target_name: str, limit: int) -> Observation:
    """The limit holds for each architecture by itself; for host code where there is no device code."""
    sizes = {arch: sum(cubin.code_bytes for cubin in cubins) for arch, cubins in contents.by_arch().items()}
    if not sizes and contents.hosts:
        sizes = {"host code": sum(_host_code_bytes(elf) for elf in contents.hosts)}
    wanted = f"at most {limit} bytes of code"
    if not sizes:
        note = f"{target_name}: there is no machine code to measure"
        return _observation(target_name, "code-too-large", wanted, None, note)
    name, size = max(sizes.items(), key=lambda item: item[1])
    observed = wanted if size <= limit else f"{size} bytes of code"
    note = "" if size <= limit else f"{target_name}: {size} bytes of code for {name}, {wanted} expected"
    return _observation(target_name, "code-too-large", wanted, observed, note)


def _host_code_bytes(elf: Elf) -> int:
    return sum(section.size for section in elf.sections if section.flags & _SHF_EXECINSTR)


def _texts(data: Bytes, target: Target) -> Iterator[Observation]:
    """Texts that must be there, and texts that must not, anywhere in the file's bytes, unpacked."""
    for text in target.expect.texts_present:
        found = search(data, text_pattern(text), limit=1)
        yield _text(text, "text-absent", "present", "present" if found.hits else "absent", found)
    for text in target.expect.texts_absent:
        found = search(data, text_pattern(text), limit=1)
        where = (
            f"present in {found.hits[0].place} at byte 0x{found.hits[0].offset:x}" if found.hits else "absent"
        )
        yield _text(text, "text-present", "absent", where, found)


def _device_link(contents: _Contents, target: Target, members: Sequence[Bytes]) -> tuple[Observation, ...]:
    """Linked device code against its parts: those that it carries itself, and those of its members."""
    linked = [cubin for cubin in contents.cubins if not cubin.relocatable]
    cubins = [*contents.cubins, *(cubin for member in members for cubin in _read(member).cubins)]
    return observe_device_link(target.name, linked, [cubin for cubin in cubins if cubin.relocatable])


def _text(text: str, code: str, wanted: str, observed: str, found: Search) -> Observation:
    if found.hits or not found.sealed:
        return _observation(text, code, wanted, observed)
    note = f"{text!r} is not in what can be read; {found.sealed[0]} cannot be"
    return _observation(text, code, wanted, None, note)
