"""Files that appear whole, together, or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

from orchestrator.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_all(files: Mapping[Path, str]) -> None:
    """Write every file, or leave all as they were. Raises `ConfigurationError` when one cannot be written.

    Each text goes to a file beside its target and is synced to disk; then they are renamed. Should a later
    rename fail, the earlier targets get their old contents back.
    """
    with ExitStack() as cleanup:
        partials = {target: _write_partial(target, text, cleanup) for target, text in files.items()}
        backups = {target: _keep_old(target, cleanup) for target in files}
        done: list[Path] = []
        try:
            for target, partial in partials.items():
                partial.replace(target)
                done.append(target)
        except OSError as error:
            for earlier in done:
                _restore(earlier, backups[earlier])
            raise _unwritable(target, error) from None
        for folder in {target.parent for target in files}:
            _sync_folder(folder)


def _write_partial(target: Path, text: str, cleanup: ExitStack) -> Path:
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    cleanup.callback(partial.unlink, missing_ok=True)
    try:
        if target.exists() and not target.is_file():
            raise OSError(None, "there is something else of that name")
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(target, error) from None
    return partial


def _keep_old(target: Path, cleanup: ExitStack) -> Path | None:
    backup = target.with_name(f".{target.name}.{os.getpid()}.old")
    cleanup.callback(backup.unlink, missing_ok=True)
    try:
        shutil.copyfile(target, backup)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(target, error) from None
    return backup


def _restore(target: Path, backup: Path | None) -> None:
    if backup is None:
        target.unlink(missing_ok=True)
    else:
        backup.replace(target)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{path}: cannot be written: {error.strerror}",
        remedy="choose a folder that exists and can be written",
    )
