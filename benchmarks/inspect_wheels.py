"""Our readers against cuobjdump, on CUDA libraries of vendors: every entry, kernel and register count.

    python benchmarks/inspect_wheels.py [--wheel NAME==VERSION[@PLATFORM]]... [--keep FOLDER] [FILE]...

Downloads a few wheels from PyPI (by default those of `WHEELS`), or takes the files named, and prints per
library: entries, functions, differences, seconds and peak memory of ours, seconds of cuobjdump's. Exit code
1 if anything differs. cuobjdump must be on the PATH or installed beside Python (`pip install
nvidia-cuda-cuobjdump`).
"""

from __future__ import annotations

import argparse
import platform
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from orchestrator.object_files import open_object
from orchestrator.objects.contents import Form, walk
from orchestrator.objects.elf import read_elf
from orchestrator.objects.fatbin import container_size
from orchestrator.objects.summary import PieceSummary, summarize

WHEELS = (
    "nvidia-cusparse",
    "nvidia-nvjpeg",
    "nvidia-cufft",
    "cupy-cuda13x",
    "nvidia-nvjpeg-cu12",
    "nvidia-nvjpeg@manylinux2014_aarch64",
)
"""Small and large, older and newer toolkits, and one for aarch64."""

THIS_PLATFORM = f"manylinux2014_{platform.machine()}"

Item = TypeVar("Item")
Measures = tuple[str, str, int, int, int, int]
"""Architecture, function, and its registers, stack, shared memory and parameter bank, as cuobjdump counts
them.
"""

_COMMON = re.compile(r"GLOBAL:(\d+)(?: .*CONSTANT\[3\]:(\d+))?")
_LINE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) .*?(?:CONSTANT\[0\]:(\d+))?(?: TEXTURE|$)")


@dataclass(slots=True)
class Seen:
    """What one tool says of a file."""

    entries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, architecture) of each entry."""
    functions: Counter[Measures] = field(default_factory=Counter)
    modules: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    """Architecture, and bytes of global and of constant data, of each cubin."""
    device_functions: set[str] = field(default_factory=set)
    """Functions that are no kernels. Only of some does cuobjdump tell the registers."""
    embedded: int = 0
    """Entries in plain data, which cuobjdump does not look into; left out of the comparison."""
    seconds: float = 0.0


def find_cuobjdump() -> str | None:
    """cuobjdump on the PATH, in the usual toolkit folder, or installed by pip."""
    beside = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin", "cuobjdump")
    for candidate in (shutil.which("cuobjdump"), "/usr/local/cuda/bin/cuobjdump", str(beside)):
        if candidate and Path(candidate).exists():
            return candidate
    return None


def seen_by_cuobjdump(cuobjdump: str, path: Path, device_functions: Set[str]) -> Seen:
    """``cuobjdump -all -res-usage``, line by line; the registers of ``device_functions`` are left out."""
    seen = Seen()
    began = time.perf_counter()
    command = [cuobjdump, *([] if path.suffix == ".cubin" else ["-all"]), "-res-usage", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        kind, arch, function = "elf", "", ""
        for line in process.stdout:
            if found := re.match(r"Fatbin (.+) code:", line):
                kind = found.group(1)
            elif found := re.match(r"arch = (\S+)", line):
                arch = found.group(1)
                seen.entries[kind, arch] += 1
            elif found := re.match(r" Function (.+):$", line):
                function = found.group(1)
            elif found := _COMMON.search(line):
                seen.modules[arch, int(found[1]), int(found[2] or 0)] += 1
            elif found := _LINE.search(line):
                numbers = [int(number or 0) for number in found.groups()]
                if function in device_functions:
                    numbers[0] = 0
                seen.functions[arch, function, numbers[0], numbers[1], numbers[2], numbers[3]] += 1
    seen.seconds = time.perf_counter() - began
    return seen


_KINDS = {Form.CUBIN: "elf", Form.PTX: "ptx", Form.LTO_IR: "nvvm"}


def seen_by_us(path: Path) -> Seen:
    """The same from our own readers."""
    seen = Seen()
    began = time.perf_counter()
    for piece in summarize(open_object(path)):
        if re.search(r"\+0x[0-9a-f]+\b", piece.place):
            seen.embedded += 1
        else:
            _add(seen, piece, alone=path.suffix == ".cubin")
    seen.seconds = time.perf_counter() - began
    return seen


def _add(seen: Seen, piece: PieceSummary, alone: bool) -> None:
    arch = piece.arch or ""
    if piece.form in _KINDS and not alone:
        number = re.sub(r"^(?:compute|lto)_", "sm_", arch)
        seen.entries[_KINDS[piece.form], number] += 1
    if piece.form is Form.CUBIN:
        seen.modules["" if alone else arch, piece.global_bytes, piece.constant_bytes] += 1
    for function in piece.functions:
        registers = (function.registers or 0) if function.kernel else 0
        if not function.kernel:
            seen.device_functions.add(function.name)
        shown = "" if alone else arch
        seen.functions[
            shown, function.name, registers, function.stack or 0, function.shared, function.constant
        ] += 1


def differences(ours: Seen, theirs: Seen) -> list[str]:
    """Entries and functions that only one of both has."""
    return [
        *_only("entry", ours.entries, theirs.entries),
        *_only("function", ours.functions, theirs.functions),
        *_only("module", ours.modules, theirs.modules),
    ]


def _only(title: str, ours: Counter[Item], theirs: Counter[Item]) -> Iterator[str]:
    yield from (f"{title} only ours: {item} x{count}" for item, count in (ours - theirs).items())
    yield from (f"{title} only cuobjdump's: {item} x{count}" for item, count in (theirs - ours).items())


def download(wheel: str, folder: Path) -> Path:
    """A wheel without its dependencies, through pip."""
    name, _, tag = wheel.partition("@")
    own = folder / re.sub(r"\W+", "-", wheel)
    if not list(own.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(own), name]
        subprocess.run([*command, "--only-binary", ":all:", "--platform", tag or THIS_PLATFORM], check=True)
    (found,) = own.glob("*.whl")
    return found


def libraries(wheel: Path, folder: Path) -> Iterator[Path]:
    """The shared libraries and archives of a wheel, unpacked one at a time."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if re.search(r"\.(so[.\d]*|a)$", name):
                path = Path(archive.extract(name, folder))
                yield path
                path.unlink()


def carrier(path: Path, folder: Path) -> Path | None:
    """An object for cuobjdump: its `.nv_fatbin` holds the containers that a library keeps in plain data."""
    data = open_object(path)
    elf = read_elf(data)
    starts = set()
    for piece in walk(data):
        if found := re.search(r"(\S+)\+0x([0-9a-f]+) entry", piece.place):
            section = elf.section(found[1])
            assert section is not None
            starts.add(section.offset + int(found[2], 16))
    if not starts:
        return None
    blob, empty, made = folder / "blob", folder / "empty.c", folder / f"{path.name}.embedded.o"
    with blob.open("wb") as file:
        for start in sorted(starts):
            size = container_size(data, start)
            file.write(bytes(data[start : start + size]) + bytes(-size % 8))
    empty.write_text("")
    subprocess.run(["cc", "-c", str(empty), "-o", str(made)], check=True)
    flags = ["--set-section-flags", ".nv_fatbin=alloc,readonly", "--set-section-alignment", ".nv_fatbin=8"]
    subprocess.run(["objcopy", "--add-section", f".nv_fatbin={blob}", *flags, str(made)], check=True)
    return made


def report(cuobjdump: str, path: Path) -> int:
    """Compare on one file; returns the number of differences."""
    ours = seen_by_us(path)
    theirs = seen_by_cuobjdump(cuobjdump, path, ours.device_functions)
    total = 0
    if ours.entries or ours.functions or theirs.entries or theirs.functions:
        total += _line(path, ours, theirs)
    if ours.embedded:
        print(f"{path.name}: {ours.embedded:,} entries in plain data; for cuobjdump, put into .nv_fatbin:")
        with tempfile.TemporaryDirectory() as folder:
            made = carrier(path, Path(folder))
            total += report(cuobjdump, made) if made else 0
    return total


def _line(path: Path, ours: Seen, theirs: Seen) -> int:
    told = differences(ours, theirs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    archs = ",".join(sorted({arch for _kind, arch in ours.entries}))
    print(
        f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB, {ours.entries.total():,} entries for {archs}, "
        f"{ours.functions.total():,} functions, {len(told)} differences; "
        f"ours {ours.seconds:.2f} s, peak {peak} MiB; cuobjdump {theirs.seconds:.2f} s",
        flush=True,
    )
    for line in told[:20]:
        print(f"  {line}")
    return len(told)


def main() -> int:
    """Compare on all wheels and files asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--wheel", action="append", help="NAME, NAME==VERSION, either with @PLATFORM")
    parser.add_argument("--keep", type=Path, help="where wheels are kept; else they are deleted")
    chosen = parser.parse_args()
    cuobjdump = find_cuobjdump()
    if cuobjdump is None:
        print("cuobjdump is not here: pip install nvidia-cuda-cuobjdump", file=sys.stderr)
        return 8
    total = sum(report(cuobjdump, path) for path in chosen.files)
    wheels = chosen.wheel or ([] if chosen.files else WHEELS)
    with tempfile.TemporaryDirectory() as scratch:
        keep = chosen.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        for wheel in wheels:
            print(f"== {wheel}", flush=True)
            path = download(wheel, keep)
            total += sum(report(cuobjdump, library) for library in libraries(path, Path(scratch)))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
