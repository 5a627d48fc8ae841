"""Digests of files. Content decides; a signature of the inode only saves reading a file twice.

The signature holds the change time, which no ordinary program can set back: a file edited with its size and
modification time restored is read again. The gate does not use signatures at all.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orchestrator.canonical import seal, unseal
from orchestrator.model import Digest
from orchestrator.regular_file import in_words, read_file, special
from orchestrator.workspace import keep_if_possible

Signature = tuple[int, int, int, int, int]
"""Device, inode, size, modification time and change time in nanoseconds."""

_SETTLED_NS = 100_000_000
"""A file changed less than this ago may change again within one tick of the file system's clock."""
_CHUNK = 1 << 20


def signature(status: os.stat_result) -> Signature:
    """What tells two states of a file apart without reading it."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Unreadable(Exception):
    """A file that is there and cannot be read as one; the text says why."""


def read_digest(path: str) -> tuple[Digest, Signature] | None:
    """Digest and signature of a regular file; `None` if there is no such name.

    Raises `Unreadable` if it cannot be read, or changed while it was read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        kind = special(path)
        why = f"is {kind}, not a regular file" if kind else error.strerror
        raise Unreadable(f"{path}: {why}") from None
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable(f"{path}: is {in_words(before.st_mode)}, not a regular file")
        hasher = hashlib.sha256()
        while chunk := os.read(descriptor, _CHUNK):
            hasher.update(chunk)
        after = os.fstat(descriptor)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if signature(before) != signature(after):
        raise Unreadable(f"{path}: changed while it was read")
    return "sha256:" + hasher.hexdigest(), signature(after)


class Digests:
    """Digests of files below ``root`` (relative names) or anywhere (absolute names), each read once.

    With ``memory`` a file whose signature is known is not read again; without, every file is read.
    """

    def __init__(self, root: Path, memory: Path | None = None) -> None:
        self._root = f"{root}/"
        self._memory_file = memory
        self._memory: dict[str, list[object]] = _load(memory) if memory else {}
        self._changed = False
        self._known: dict[str, Digest | Unreadable | None] = {}

    def locate(self, path: str) -> str:
        """The full path of a recorded name."""
        return path if path.startswith("/") else self._root + path

    def get(self, path: str) -> Digest | None:
        """Digest now; `None` if the file is not there. Raises `Unreadable`."""
        found = self._known.get(path, self)
        if found is self:
            found = self._known[path] = self._find(path)
        if isinstance(found, Unreadable):
            raise found
        return found  # type: ignore[return-value]

    def current(self, path: str) -> Digest | None:
        """Like `get`, but looks again at a file that it has seen before."""
        found = self._known[path] = self._find(path)
        if isinstance(found, Unreadable):
            raise found
        return found

    def look_again(self) -> None:
        """Forget what was seen: the next question about any file is asked of the file."""
        self._known.clear()

    def load(self, paths: Iterable[str]) -> None:
        """Read many files at once, in parallel threads (hashing runs outside of the interpreter's lock)."""
        wanted = [p for p in dict.fromkeys(paths) if p not in self._known]
        if self._memory_file is not None:
            wanted = [path for path in wanted if not self._recall(path)]
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            chunk = max(1, len(wanted) // 64)
            parts = [wanted[i : i + chunk] for i in range(0, len(wanted), chunk)]
            for part, found in zip(parts, pool.map(self._find_all, parts), strict=True):
                self._known.update(zip(part, found, strict=True))

    def save(self) -> None:
        """Keep the signatures for the next build. Failing to is no fault."""
        if self._memory_file is not None and self._changed:
            keep_if_possible(self._memory_file, seal({"seen": self._memory}))
            self._changed = False

    def _find_all(self, paths: list[str]) -> list[Digest | Unreadable | None]:
        return [self._find(path) for path in paths]

    def _recall(self, path: str) -> bool:
        """Whether the file's signature is the one kept with a digest, which then counts as found."""
        entry = self._memory.get(path)
        if entry is None:
            return False
        try:
            s = os.stat(path if path.startswith("/") else self._root + path)
        except OSError:
            return False
        if entry[:5] != [s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns]:
            return False
        self._known[path] = str(entry[5])
        return True

    def _find(self, path: str) -> Digest | Unreadable | None:
        if self._memory_file is not None and self._recall(path):
            return self._known[path]
        try:
            found = read_digest(self.locate(path))
        except Unreadable as error:
            return error
        if found is None:
            return None
        digest, seen = found
        if self._memory_file is not None and time.time_ns() - max(seen[3], seen[4]) > _SETTLED_NS:
            self._memory[path] = [*seen, digest]
            self._changed = True
        return digest


def _load(path: Path) -> dict[str, list[object]]:
    """Signatures kept by an earlier build; a damaged file counts as none."""
    try:
        found: dict[str, list[object]] = unseal(read_file(path))["seen"]
    except (OSError, ValueError, KeyError):
        return {}
    return found
