"""Fuzz the object readers: mutations of real objects must end in a value or in `Malformed`, soon and small.

    python benchmarks/fuzz_readers.py [--inputs 200000] [--reader NAME]... [--seed 1] [--save FOLDER]

Anything else that a reader raises, an input that takes over two seconds, and one that makes the process
grow by over 512 MiB count as failures; the input is saved, to become a test.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator.objects import nvinfo
from orchestrator.objects.archive import MAGIC, THIN_MAGIC, read_members
from orchestrator.objects.code import read_code
from orchestrator.objects.compare import compare, hold
from orchestrator.objects.contents import walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.devicelink import compare_link
from orchestrator.objects.digests import device_digest, normalised_digest, unstamped_digest
from orchestrator.objects.dynamic import read_dynamic
from orchestrator.objects.elf import SHT_DYNSYM, SHT_NOTE, read_elf
from orchestrator.objects.fatbin import read_entries, unpack
from orchestrator.objects.ltoir import ltoir_arch
from orchestrator.objects.ptx import entry_bodies, ptx_strings, read_ptx, without_comments
from orchestrator.objects.registration import read_registrations
from orchestrator.objects.search import search, text_pattern
from orchestrator.objects.stamp import read_stamps
from orchestrator.objects.summary import summarize_piece, texts_of
from orchestrator.objects.traces import read_traces
from orchestrator.objects.window import Allowance, Malformed

OBJECTS = Path(__file__).parents[1] / "tests" / "data" / "objects"
SECONDS = 2
GROWTH = 512 << 20
_NUMBERS = (0, 1, 2, 7, 8, 63, 64, 127, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, 2**64 - 1)
_PATTERN = text_pattern("pin_abc")


def _elf(data: bytes) -> None:
    elf = read_elf(data)
    elf.symbols()
    elf.symbols(SHT_DYNSYM)
    elf.relocations()
    for section in elf.sections:
        elf.body(section)
        if section.type == SHT_NOTE:
            list(elf.notes(section))
    read_stamps(elf)
    read_dynamic(elf)
    read_registrations(elf)


def _code(data: bytes) -> None:
    read_code(read_cubin(data))


def _compare(data: bytes) -> object:
    return compare(_HELD, hold(data))


def _link(data: bytes) -> None:
    changed = read_cubin(data)
    compare_link([changed], [_LINKED])
    compare_link([_RELOCATABLE], [changed])


def _fatbin(data: bytes) -> None:
    allowance = Allowance(len(data))
    for entry in read_entries(data):
        unpack(entry, allowance)


def _ptx(data: bytes) -> None:
    read_ptx(data)
    ptx_strings(data)
    entry_bodies(data)
    without_comments(data)


def _contents(data: bytes) -> None:
    for piece in walk(data, lambda _name: data):
        summarize_piece(piece)
        list(texts_of(piece))


def _digests(data: bytes) -> None:
    normalised_digest(data)
    unstamped_digest(data)
    device_digest(data)


def member(name: bytes, body: bytes) -> bytes:
    """One member of an archive."""
    return (
        b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", len(body))
        + body
        + b"\n" * (len(body) % 2)
    )


def _samples(*names: str) -> list[bytes]:
    return [(OBJECTS / name).read_bytes() for name in names]


def _archives() -> list[bytes]:
    (rdc,) = _samples("rdc.o")
    (cubin,) = _samples("sm_75.cubin")
    gnu = MAGIC + member(b"/", b"\0\0\0\0") + member(b"//", b"a_long_member_name.o/\n")
    return [
        gnu + member(b"short.o/", cubin) + member(b"/0", rdc),
        MAGIC + member(b"#1/8", b"long.o\0\0" + rdc),
        THIN_MAGIC + member(b"//", b"some/where.o/\n") + member(b"/0", b"")[:60],
        MAGIC + member(b"inner.a/", gnu + member(b"/0", rdc)),
    ]


CUBINS = ("sm_75.cubin", "sm_90.cubin", "sm_120a.cubin", "relocatable.cubin")
FATBINS = ("none.fatbin", "speed.fatbin", "size.fatbin", "lto.fatbin")

_HELD = hold(*_samples("sm_90.cubin"))
_RELOCATABLE, _LINKED = (read_cubin(data) for data in _samples("relocatable.cubin", "sm_90.cubin"))

READERS: dict[str, tuple[Callable[[bytes], object], Callable[[], list[bytes]]]] = {
    "elf": (_elf, lambda: _samples(*CUBINS, "rdc.o", "host.so")),
    "nvinfo": (lambda data: [i.words() for i in nvinfo.read_items(data)], lambda: [_info_sections()]),
    "cubin": (read_cubin, lambda: _samples(*CUBINS)),
    "code": (_code, lambda: _samples(*CUBINS)),
    "fatbin": (_fatbin, lambda: _samples(*FATBINS)),
    "archive": (lambda data: list(read_members(data)), _archives),
    "ptx": (_ptx, lambda: _samples("sample.ptx")),
    "ltoir": (ltoir_arch, lambda: _samples("sample.ltoir")),
    "contents": (_contents, lambda: [*_samples(*CUBINS, *FATBINS, "rdc.o", "sample.ptx"), *_archives()]),
    "digests": (_digests, lambda: [*_samples("sm_90.cubin", "rdc.o", "size.fatbin"), *_archives()]),
    "traces": (
        read_traces,
        lambda: [*_samples("sm_90.cubin", "rdc.o", "size.fatbin", "host.so"), *_archives()],
    ),
    "devicelink": (_link, lambda: _samples("relocatable.cubin", "sm_90.cubin")),
    "compare": (_compare, lambda: _samples("sm_90.cubin", "rdc.o", "none.fatbin", "sample.ptx")),
    "search": (lambda data: search(data, _PATTERN), lambda: [*_samples("rdc.o", *FATBINS), *_archives()]),
}
"""What is fuzzed: the reader, and the objects that it begins with."""


def _info_sections() -> bytes:
    (data,) = _samples("sm_90.cubin")
    elf = read_elf(data)
    return b"".join(bytes(elf.body(s)) for s in elf.sections if s.name.startswith(".nv.info"))


def mutate(data: bytes, dice: random.Random) -> bytes:
    """A few edits: bits, numbers in the places and sizes that headers have, cuts, and stretches moved
    about.
    """
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            break
        # headers are at the beginning and, in ELF, also at the end
        region = dice.random()
        size = len(changed)
        at = dice.randrange(min(size, 256)) if region < 0.4 else dice.randrange(size)
        if region > 0.75:
            at = dice.randrange(max(0, size - 4096), size)
        _edit(changed, at, dice)
    return bytes(changed)


def _edit(data: bytearray, at: int, dice: random.Random) -> None:
    kind = dice.randrange(8)
    if kind == 0:
        data[at] ^= 1 << dice.randrange(8)
    elif kind == 1:
        data[at] = dice.randrange(256)
    elif kind <= 4:
        width, layout = dice.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
        at -= at % width
        if at + width <= len(data):
            number = dice.choice((*_NUMBERS, len(data), len(data) - at, dice.randrange(1 << 16)))
            struct.pack_into(layout, data, at, number & ((1 << 8 * width) - 1))
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        end = min(len(data), at + dice.randrange(1, 200))
        to = dice.randrange(len(data))
        data[to : to + end - at] = data[at:end]
    else:
        end = min(len(data), at + dice.randrange(1, 64))
        if dice.random() < 0.5:
            del data[at:end]
        else:
            data[at:at] = data[at:end]


def inputs(samples: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Mutations of the samples in turn."""
    dice = random.Random(seed)
    for number in range(count):
        yield mutate(samples[number % len(samples)], dice)


class _TooSlow(Exception):
    """An input took longer than it may."""


def _alarm(_signal: int, _frame: object) -> None:
    raise _TooSlow


def run(name: str, count: int, seed: int, save: Path) -> int:
    """Fuzz one reader; returns the number of failures."""
    reader, samples = READERS[name]
    signal.signal(signal.SIGALRM, _alarm)
    failures = malformed = 0
    slowest = 0.0
    began = time.perf_counter()
    for data in inputs(samples(), count, seed):
        before = time.perf_counter()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            reader(data)
        except Malformed:
            malformed += 1
        except Exception as error:
            failures += 1
            _save(save, name, data, error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - before)
        if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) * 1024 > GROWTH:
            failures += 1
            _save(save, name, data, MemoryError("grew too much"))
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name:9} {count:>8,} inputs {malformed:>8,} malformed {failures} failures "
        f"{slowest * 1e3:7.1f} ms slowest {memory} MiB peak {seconds:6.1f} s",
        flush=True,
    )
    return failures


def _save(folder: Path, name: str, data: bytes, error: Exception) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"{name}: {type(error).__name__}: {error}: {path}", file=sys.stderr)


def main() -> int:
    """Fuzz the readers named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--inputs", type=int, default=200_000, help="a reader")
    parser.add_argument("--reader", action="append", choices=sorted(READERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"))
    chosen = parser.parse_args()
    names = chosen.reader or list(READERS)
    return 1 if sum(run(name, chosen.inputs, chosen.seed, chosen.save) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
