"""Files opened for reading, where a pipe, a socket or a device in a file's place must not keep us waiting."""

from __future__ import annotations

import errno
import os
import stat

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegular(OSError):
    """What is there is no regular file; ``strerror`` says what it is instead."""


def read_file(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """The bytes of a regular file, or the first ``most``. Never waits for another program.

    Raises `OSError`, as `NotRegular` for what is no regular file.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise NotRegular(errno.EINVAL, f"is {in_words(mode)}, not a regular file", os.fspath(path))
        return file.read(most)


def special(path: str | os.PathLike[str]) -> str:
    """What is there in words, if a program that opens it might wait for ever; else an empty text."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  (hundreds before a compile)
    except OSError:
        return ""
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else in_words(mode)


def in_words(mode: int) -> str:
    """What a file of a mode is that is not a regular one."""
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "a folder")
