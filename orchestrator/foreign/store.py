"""Where builds by other build systems are recorded: ``.freshproof/`` in the project, which git ignores.

record.json       what was made, by which step, from what
stamps.json       the steps whose objects got stamps
receipts/         projects as they were at each build, by digest
manifests/        closures of nvcc compiles, and the documents that they share
cache/            what saves time and decides nothing
lock              held while a build runs
unfinished.json   the build that runs, or was cut off
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator import manifest as manifests
from orchestrator.canonical import digest_bytes, parse_json
from orchestrator.foreign.descriptions import configured_from
from orchestrator.foreign.made import Build, Receipt, build_bytes, read_build, read_receipt, receipt_bytes
from orchestrator.foreign.stamps import Stamps, read_stamps, stamps_bytes
from orchestrator.model import Digest, Manifest
from orchestrator.workspace import explained, write_atomically

FOLDER = ".freshproof"
_UNFINISHED = "unfinished.json"


class Damaged(ValueError):
    """A record that cannot be read; the text names the file."""


@dataclass(slots=True)
class Store:
    """The records of one project."""

    root: Path
    _reader: manifests.Reader

    def __init__(self, root: Path) -> None:
        self.root = root
        self._reader = manifests.Reader(lambda digest: self._shared(digest).read_bytes())

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    def cache(self, name: str) -> Path:
        return self.folder / "cache" / name

    def prepare(self) -> None:
        """Make the folder, and make git pass over it."""
        ignore = self.folder / ".gitignore"
        if not ignore.is_file():
            write_atomically(ignore, b"*\n")

    @contextlib.contextmanager
    def exclusive(self, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock; ``waiting`` is told once if another build holds it."""
        self.prepare()
        with explained(self.folder / "lock"):
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting("another recorded build is at work in this project; waiting for it")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def begin(self, command: Sequence[str]) -> None:
        """Note that a build is at work; the note stays where the build is cut off."""
        started = datetime.now().astimezone().isoformat(" ", "seconds")
        write_atomically(self._unfinished, json.dumps({"command": [*command], "started": started}).encode())

    def end(self) -> None:
        """The build is recorded, or was never started."""
        self._unfinished.unlink(missing_ok=True)

    def cut_off(self, *, locked: bool = False) -> str:
        """Which build was cut off before it could be recorded, in words; empty if none was.

        ``locked``: this process holds the lock.
        """
        try:
            noted = parse_json(self._unfinished.read_bytes())
            if not locked:
                with (self.folder / "lock").open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            command, started = " ".join(map(str, noted["command"])), noted["started"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return f"the build of {started} (`{command}`) was cut off, and what it made is not recorded"

    @property
    def _unfinished(self) -> Path:
        return self.folder / _UNFINISHED

    def remove(self) -> None:
        """Take the records away, and check that they are gone. Raises `Missing`."""
        with explained(self.folder):
            shutil.rmtree(self.folder)

    def read(self) -> Build | None:
        """What is recorded; `None` if nothing is. Raises `Damaged`."""
        path = self.folder / "record.json"
        try:
            return read_build(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Damaged(f"{path} cannot be read: {error}") from None

    def write(self, build: Build) -> None:
        """Put the record in place, and take away documents that it no longer names."""
        write_atomically(self.folder / "record.json", build_bytes(build))
        named = {
            build.receipt,
            *(name for m in build.made.values() for name in (m.receipt, m.planned, m.manifest)),
        }
        named |= {one.manifest for one in self.read_stamps().given}
        for kind in ("receipts", "manifests"):
            for path in (self.folder / kind).glob("*.json"):
                if f"sha256:{path.stem}" not in named:
                    path.unlink(missing_ok=True)

    def read_stamps(self) -> Stamps:
        """What is kept of stamps. They decide nothing: what cannot be read counts as none."""
        try:
            return read_stamps((self.folder / "stamps.json").read_bytes())
        except (OSError, ValueError):
            return Stamps()

    def write_stamps(self, stamps: Stamps) -> None:
        """Keep them."""
        write_atomically(self.folder / "stamps.json", stamps_bytes(stamps))

    def write_receipt(self, receipt: Receipt) -> Digest:
        """Keep a receipt; returns the digest that names it."""
        return self._keep("receipts", receipt_bytes(receipt))

    def read_receipt(self, digest: Digest) -> Receipt:
        """Raises `Damaged`."""
        try:
            return read_receipt(self._kept("receipts", digest))
        except (OSError, ValueError) as error:
            raise Damaged(f"the receipt {digest} cannot be read: {error}") from None

    def write_manifest(self, manifest: Manifest) -> Digest:
        """Keep the manifest of a step; returns the digest that names it."""
        for digest, data in manifests.shared_documents(manifest).items():
            if not self._shared(digest).is_file():
                write_atomically(self._shared(digest), data, mode=0o444)
        return self._keep("manifests", manifests.to_bytes(manifest))

    def read_manifest(self, digest: Digest) -> Manifest:
        """Raises `Damaged`."""
        try:
            return self._reader.read(self._kept("manifests", digest))
        except (OSError, ValueError) as error:
            raise Damaged(f"the manifest {digest} cannot be read: {error}") from None

    def _keep(self, kind: str, data: bytes) -> Digest:
        digest = digest_bytes(data)
        path = self._path(kind, digest)
        if not path.is_file():
            write_atomically(path, data, mode=0o444)
        return digest

    def _kept(self, kind: str, digest: Digest) -> bytes:
        data = self._path(kind, digest).read_bytes()
        if digest_bytes(data) != digest:
            raise ValueError("its bytes are not those that were recorded")
        return data

    def _path(self, kind: str, digest: Digest) -> Path:
        return self.folder / kind / f"{digest.removeprefix('sha256:')}.json"

    def _shared(self, digest: Digest) -> Path:
        return self.folder / "manifests" / "shared" / f"{digest.removeprefix('sha256:')}.json"


def find_store(start: Path) -> Store | None:
    """The records of the nearest project at or above ``start`` that has any, or a note of a build; from a
    folder in which CMake builds, of the project that it builds.
    """
    start = Path(os.path.realpath(start))
    source = Path(configured_from(str(start)) or start)
    for folder in (start, *start.parents, source, *source.parents):
        if any(os.path.lexists(folder / FOLDER / name) for name in ("record.json", _UNFINISHED)):
            return Store(folder)
    return None
