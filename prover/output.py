"""Files that appear whole, together, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrator.errors import ConfigurationError, FreshproofError, Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_ROOM = {
    errno.ENOSPC: "free some space there, or choose another disk",
    errno.EDQUOT: "free some of your quota, or choose another disk",
    errno.EFBIG: "choose a disk, or a limit (ulimit -f), that takes files of that size",
}


def require_distinct(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that is also an input, or another output, through links too.

    Options -> paths; ``None`` for an option that was not given. Raises `ConfigurationError`.
    """
    seen: dict[object, str] = {}
    for option, path in (*inputs.items(), *outputs.items()):
        for mark in _marks(path) if path is not None else ():
            other = seen.setdefault(mark, option)
            if other != option and option in outputs:
                raise ConfigurationError(
                    f"{other} and {option} are the same file, {path}", remedy="give each a file of its own"
                )


def _marks(path: Path) -> Iterator[object]:
    """What two names of one file have in common: where they lead, and the file that is there."""
    yield _followed(path)
    try:
        status = path.stat()
    except OSError:
        return  # none there, or none that can be seen: whoever opens it says which
    yield status.st_dev, status.st_ino


@contextmanager
def all_or_none(targets: Iterable[Path]) -> Iterator[Mapping[Path, Path]]:
    """Where to write each target: to a file beside it.

    That each can be written is tried out first, so that no work is in vain. When the body ends, all take
    their places; when it raises, or a later one cannot take its place, all are as they were. A target that
    is a symbolic link is followed. Raises `ConfigurationError`, and `Missing` where there is no room.
    """
    with ExitStack() as cleanup:
        places = {target: _followed(target) for target in targets}
        staged = {target: _try_out(target, place, cleanup) for target, place in places.items()}
        try:
            yield staged
        except OSError as error:
            for target, path in staged.items():
                if error.filename == str(path):
                    raise _unwritable(target, error) from None
            raise
        _take_places({places[target]: path for target, path in staged.items()}, cleanup)


def write_text(staged: Path, text: str) -> None:
    """Write one of the files of `all_or_none`, down to the disk. Raises `OSError` that names the file."""
    write_parts(staged, [text.encode()])


def write_parts(staged: Path, parts: Iterable[bytes | memoryview]) -> None:
    """As `write_text`, bytes in parts."""
    try:
        with staged.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:  # a write that finds no room does not say where
        raise OSError(error.errno, error.strerror, str(staged)) from None


def _followed(target: Path) -> Path:
    """Where a path leads."""
    try:
        return target.resolve()
    except (OSError, RuntimeError):  # RuntimeError: a circle of links, before Python 3.13
        raise _unwritable(target, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from None


def _try_out(target: Path, place: Path, cleanup: ExitStack) -> Path:
    """A new name beside the target, where a file was made and removed again."""
    staged = place.with_name(f".{place.name[:40]}.{secrets.token_hex(4)}.partial")
    cleanup.callback(staged.unlink, missing_ok=True)
    try:
        if place.exists() and not place.is_file():
            raise OSError(errno.EEXIST, "there is something else of that name")
        staged.touch(exist_ok=False)
        staged.unlink()
    except OSError as error:
        raise _unwritable(target, error) from None
    return staged


def _take_places(staged: Mapping[Path, Path], cleanup: ExitStack) -> None:
    """Rename each file to its place; all or none."""
    old = {place: _keep_old(place, cleanup) for place in staged} if len(staged) > 1 else {}
    begun: list[Path] = []
    try:
        for place, path in staged.items():
            begun.append(place)
            path.replace(place)
    except BaseException as error:
        for place in begun if old else ():
            _restore(place, old[place])
        if isinstance(error, OSError):
            raise _unwritable(begun[-1], error) from None
        raise
    for folder in {place.parent for place in staged}:
        with suppress(OSError):  # the files are in their places; some folders cannot be opened or synced
            _sync_folder(folder)


def _keep_old(place: Path, cleanup: ExitStack) -> Path | None:
    """A second name for what is there now, or a copy where a file has only one."""
    backup = place.with_name(f".{place.name[:40]}.{secrets.token_hex(4)}.old")
    cleanup.callback(backup.unlink, missing_ok=True)
    try:
        if not place.exists():
            return None
        try:
            backup.hardlink_to(place)
        except OSError:
            shutil.copyfile(place, backup)
    except OSError as error:
        raise _unwritable(place, error) from None
    return backup


def _restore(place: Path, backup: Path | None) -> None:
    if backup is None:
        place.unlink(missing_ok=True)
    else:
        backup.replace(place)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> FreshproofError:
    what = f"{path}: cannot be written: {error.strerror}"
    if error.errno in _ROOM:
        return Missing(what, remedy=_ROOM[error.errno])
    return ConfigurationError(what, remedy="choose a folder that exists and can be written")
