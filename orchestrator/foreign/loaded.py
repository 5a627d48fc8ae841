"""What a program loads: asked of the loader before, seen by it while the program runs, and in /proc."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.foreign.native import library
from orchestrator.foreign.observe import run_through
from orchestrator.foreign.opened import watch_opened
from orchestrator.foreign.receipt import full

_LISTED = re.compile(r"^\s+(?:\S+ => )?(/.*?) \(0x[0-9a-f]+\)$", re.MULTILINE)
_PT_INTERP = 3
_ROOM = "glibc.rtld.optional_static_tls=65536"
"""Under LD_AUDIT the loader sets room for thread-local data aside before it knows the program's libraries: by
default 512 bytes, of which rustc's alone need more than 16 KiB.
"""


def named_files(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The program of a command and every file that its words name, those in quoted commands too."""
    found: dict[str, None] = {}
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program:
        found[full(program)] = None
    for word in argv[1:]:
        for part in (word, word.partition("=")[2], *_parts(word)):
            if part and os.path.isfile(part):
                found[full(part)] = None
    return tuple(found)


def _parts(word: str) -> list[str]:
    try:
        return shlex.split(word) if " " in word else []
    except ValueError:
        return []


def libraries_of(program: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The libraries that the loader would take for a program, without running it; none for other files."""
    loader = _interpreter(program)
    if loader is None:
        return ()
    command = (loader, "--list", program)
    environment = {n: v for n, v in environ.items() if n not in ("LD_AUDIT", "LD_TRACE_LOADED_OBJECTS")}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return tuple(full(path) for path in _LISTED.findall(done.stdout))


def is_program(path: str) -> bool:
    """Whether a file is an ELF program, dynamic or static."""
    try:
        with open(path, "rb") as file:
            head = file.read(18)
    except OSError:
        return False
    return head[:4] == b"\x7fELF" and (head[16:18] == b"\2\0" or _interpreter(path) is not None)


def _interpreter(program: str) -> str | None:
    """The loader that an ELF program asks for."""
    try:
        with open(program, "rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
                return None
            (start,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            for number in range(count):
                file.seek(start + number * size)
                entry = file.read(56)
                if len(entry) == 56 and struct.unpack_from("<I", entry)[0] == _PT_INTERP:
                    offset, _address, _physical, length = struct.unpack_from("<QQQQ", entry, 8)
                    file.seek(offset)
                    return os.fsdecode(file.read(min(length, 4096)).rstrip(b"\0"))
    except OSError:
        pass
    return None


def run_watched(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path, folders_of_code: Sequence[str]
) -> tuple[int, tuple[str, ...], str]:
    """Run a command; its exit code, every file that it and its children mapped as code or opened in
    ``folders_of_code``, and why some may be missing.

    Raises `orchestrator.errors.Missing` if it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="freshproof-") as private:
        log = Path(private) / "loads"
        log.touch()
        audited = {
            **environ,
            "LD_AUDIT": ":".join(filter(None, (str(library("loads")), environ.get("LD_AUDIT", "")))),
            "FRESHPROOF_LOADS_LOG": str(log),
            "GLIBC_TUNABLES": ":".join(filter(None, (_ROOM, environ.get("GLIBC_TUNABLES", "")))),
        }
        with watch_opened(folders_of_code) as opened:
            code = run_through(argv, audited, folder)
        entries = log.read_bytes().split(b"\0")[:-1]
    mapped = dict.fromkeys(os.fsdecode(entry.partition(b"\t")[2]) for entry in entries)
    return code, (*mapped, *opened.paths), opened.blind


def replaced_files() -> Iterator[tuple[int, str, str]]:
    """Files that running processes still map though another lies in their place, or none: process, its name,
    path. Processes of other users are passed over.
    """
    for pid, name, mapped in _mappings():
        for path in sorted(mapped):
            if path.endswith(" (deleted)"):
                yield pid, name, path.removesuffix(" (deleted)")


def older_processes(made_ns: Mapping[str, int]) -> Iterator[tuple[int, str, str]]:
    """Processes that map one of these files and began before it was made: one that was written over in its
    place keeps its name.
    """
    for pid, name, mapped in _mappings():
        for path in sorted(mapped & made_ns.keys()):
            began = _began_ns(pid)
            if began is not None and began < made_ns[path]:
                yield pid, name, path


def _mappings() -> Iterator[tuple[int, str, set[str]]]:
    """Processes with their names and the files that they map."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            maps = Path(entry.path, "maps").read_bytes()
            name = Path(entry.path, "comm").read_text(errors="replace").strip()
        except OSError:
            continue
        lines = (line.split(None, 5) for line in maps.splitlines())
        yield int(entry.name), name, {os.fsdecode(words[5]) for words in lines if len(words) == 6}


def _began_ns(pid: int) -> int | None:
    """When a process began, by the clock of files."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        since_boot = int(after_name[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None
    booted = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return booted + since_boot
