"""Files that hold code, opened for the readers of `orchestrator.objects`, which know no files."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import ConfigurationError
from orchestrator.objects.contents import OpenMember
from orchestrator.objects.window import Bytes, Malformed

_MAPPED_FROM = 1 << 24
"""Larger files are mapped, so that their pages need not be held in memory."""


def open_object(path: Path) -> Bytes:
    """The bytes of a file; `ConfigurationError` when it is not there, is no file or cannot be read."""
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise ConfigurationError(f"{path} is a folder", remedy="name the files in it")
        if not stat.S_ISREG(facts.st_mode):  # a pipe or a device could keep us waiting, or never end
            raise ConfigurationError(f"{path} is no regular file", remedy="copy its bytes into one")
        with path.open("rb") as file:
            if facts.st_size < _MAPPED_FROM:
                return file.read(_MAPPED_FROM)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", remedy="check the path") from None


def holds(data: Bytes, text: bytes) -> bool:
    """Whether some text stands in the bytes of a file; what is mapped is not copied."""
    raw = data if isinstance(data, bytes) else data.obj
    return isinstance(raw, bytes | mmap.mmap) and raw.find(text) >= 0


def member_opener(archive: Path) -> OpenMember:
    """Opens members of a thin archive, whose names are paths from the archive's folder."""

    def open_member(name: str) -> Bytes:
        try:
            return open_object(archive.parent / name)
        except ConfigurationError as error:
            raise ConfigurationError(f"{archive}: member {name}: {error.what}", remedy=error.remedy) from None

    return open_member


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Faults that readers find in the block name the file."""
    try:
        yield
    except Malformed as fault:
        raise fault.inside(str(path)) from None
