"""The stamp: a recipe digest that an artifact carries in a symbol of its own.

The symbol ``freshproof_stamp_<unit>`` holds ``freshproof:``, 64 hex digits and NUL. The object is compiled
with 64 zeros, and the digits are written afterwards at the file offset that this module finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.objects.elf import SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, Elf, Symbol
from orchestrator.objects.window import Bytes, Malformed, printable

SYMBOL_PREFIX = "freshproof_stamp_"
TEXT_PREFIX = b"freshproof:"
DIGITS = 64
PLACEHOLDER = "0" * DIGITS
_HEX = frozenset(b"0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Stamp:
    """One stamp: ``digits`` are 64 hex digits, which lie at byte ``offset`` of the object."""

    symbol: str
    digits: str
    offset: int

    @property
    def written(self) -> bool:
        """False while the placeholder of the compile still stands there."""
        return self.digits != PLACEHOLDER

    @property
    def digest(self) -> str:
        """The recipe digest as digests are written everywhere else."""
        return f"sha256:{self.digits}"


def read_stamps(elf: Elf) -> tuple[Stamp, ...]:
    """Every stamp that an ELF file defines, by name; `Malformed` when a stamp symbol does not hold one."""
    found: dict[str, Stamp] = {}
    for table in (SHT_SYMTAB, SHT_DYNSYM):
        for symbol in elf.symbols(table):
            if symbol.name.startswith(SYMBOL_PREFIX) and symbol.section and symbol.name not in found:
                found[symbol.name] = _read_stamp(elf, symbol)
    return tuple(found[name] for name in sorted(found))


def _read_stamp(elf: Elf, symbol: Symbol) -> Stamp:
    offset = file_offset(elf, symbol)
    text = bytes(elf.data[offset : offset + len(TEXT_PREFIX) + DIGITS + 1])
    digits = text[len(TEXT_PREFIX) : -1]
    if not text.startswith(TEXT_PREFIX) or text[-1:] != b"\0" or len(digits) != DIGITS or set(digits) - _HEX:
        raise Malformed(f"{symbol.name} does not hold a stamp but {printable(text[:24])!r}", offset)
    return Stamp(symbol.name, digits.decode("ascii"), offset + len(TEXT_PREFIX))


def file_offset(elf: Elf, symbol: Symbol) -> int:
    """Where a symbol's bytes begin in the file. Values are addresses in linked files that have addresses."""
    section = elf.sections[symbol.section]
    inner = symbol.value - section.address
    if section.type == SHT_NOBITS or not 0 <= inner <= section.size:
        raise Malformed(f"{symbol.name} lies outside of {section.name}", section.offset)
    return section.offset + inner


def without_stamps(data: Bytes, stamps: Sequence[Stamp]) -> Bytes:
    """The bytes of a cubin or of host code with the placeholder in the place of its stamps."""
    if not stamps:
        return data
    changed = bytearray(data)
    for stamp in stamps:
        changed[stamp.offset : stamp.offset + len(PLACEHOLDER)] = PLACEHOLDER.encode()
    return bytes(changed)
