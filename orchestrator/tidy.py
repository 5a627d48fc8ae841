"""Shorter names for the same file: ``bin/../include`` becomes ``include`` when the file system agrees."""

from __future__ import annotations

import functools
import os


def tidy(path: str) -> str:
    """A full ``path`` without ``.`` and ``..`` where that names the same file, else as it is."""
    if "/." not in path and "//" not in path:
        return path
    folder, base = os.path.split(path)
    return os.path.join(_tidy_folder(folder), base)


def forget_folders() -> None:
    """Ask the file system anew from here on: links may have changed."""
    _tidy_folder.cache_clear()


@functools.cache
def _tidy_folder(folder: str) -> str:
    short = os.path.normpath(folder) if folder else folder
    try:
        return short if short == folder or os.path.samefile(short, folder) else folder
    except OSError:
        return folder
