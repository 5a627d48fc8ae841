"""Which files of device code are opened while a command runs: they are read, not mapped, so no loader tells.

inotify(7) on the folders that hold recorded ones. It tells of every process: one that only looks at such a
file while the command runs counts as if the command had opened it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterable, Iterator

_OPENED, _OVERFLOWED = 0x20, 0x4000
_EVENT = struct.Struct("iIII")
_CHUNK = 1 << 16


class Opened:
    """Paths that were opened, in the order of their first opening."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.blind = ""
        """Why some may be missing; empty if none is."""


@contextlib.contextmanager
def watch_opened(folders: Iterable[str]) -> Iterator[Opened]:
    """Notice each file of ``folders`` that is opened within the block; all are there when it is left."""
    opened, folders = Opened(), tuple(folders)
    if not folders:
        yield opened
        return
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if descriptor < 0:
        opened.blind = f"opened files are not seen: {os.strerror(ctypes.get_errno())}"
        yield opened
        return
    watched = {}
    for folder in folders:
        number = library.inotify_add_watch(descriptor, os.fsencode(folder), _OPENED)
        if number < 0 and os.path.isdir(folder):
            opened.blind = f"{folder}: opened files are not seen: {os.strerror(ctypes.get_errno())}"
        watched[number] = folder
    over, end = os.pipe()
    reader = threading.Thread(target=_read, args=(descriptor, over, watched, opened))
    reader.start()
    try:
        yield opened
    finally:
        os.close(end)
        reader.join()
        os.close(over)
        os.close(descriptor)


def _read(descriptor: int, over: int, watched: dict[int, str], opened: Opened) -> None:
    """Take events until the other end of ``over`` is closed, and then those that are still waiting."""
    is_over = False
    while not is_over:
        ready, _, _ = select.select([descriptor, over], [], [])
        is_over = over in ready
        with contextlib.suppress(BlockingIOError):
            while data := os.read(descriptor, _CHUNK):
                _take(data, watched, opened)


def _take(data: bytes, watched: dict[int, str], opened: Opened) -> None:
    at = 0
    while at < len(data):
        number, mask, _cookie, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length
        if mask & _OVERFLOWED:
            opened.blind = "more files were opened than could be noticed"
        elif name and number in watched:
            opened.paths[f"{watched[number]}/{name}"] = None
