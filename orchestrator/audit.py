"""The disk, searched for code of targets and for several builds of one name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.copies import Found, Group, Original, group_copies
from orchestrator.errors import ConfigurationError
from orchestrator.loader import Loaded, libraries_of
from orchestrator.model import State, Verdict
from orchestrator.object_files import member_opener, open_object
from orchestrator.objects.traces import Traces, read_traces
from orchestrator.objects.window import Malformed
from orchestrator.recorded import read_manifest
from orchestrator.workspace import Workspace

_BEGINNINGS = (b"\x7fELF\x02", b"!<arch>\n", b"!<thin>\n", b"\x50\xed\x55\xba", b"\xed\x43\x4e\x7f")
_IGNORED_FOLDERS = frozenset({".git", ".hg", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found: groups of files, and files that could not be read, with the reason."""

    groups: tuple[Group, ...]
    unreadable: tuple[tuple[str, str], ...]
    unresolved: tuple[Loaded, ...]
    """Libraries of the programs asked about that would be found nowhere."""
    files: int
    """Files with code that were read."""


def originals_of(workspace: Workspace, verdicts: Iterable[Verdict]) -> tuple[Original, ...]:
    """The artifacts of targets as they are recorded; those never built are left out.

    ``verdicts`` are what the gate says of them now.
    """
    found = []
    for verdict in verdicts:
        manifest, _problem = read_manifest(workspace, verdict.target)
        if manifest is None:
            continue
        path = workspace.root / manifest.product.path
        try:
            traces = read_traces(open_object(path), member_opener(path))
        except (Malformed, ConfigurationError):
            continue
        fresh = verdict.state is State.FRESH
        found.append(
            Original(
                target=verdict.target,
                path=str(path),
                digest=manifest.product.digest,
                unstamped=manifest.product.unstamped_digest,
                recipe=manifest.recipe_digest,
                fresh=fresh,
                traces=traces,
            )
        )
    return tuple(found)


def search(
    folders: Sequence[Path],
    originals: Sequence[Original],
    programs: Sequence[Path],
    environ: Mapping[str, str],
    advance: Callable[[str], None],
    workspace: Workspace | None = None,
) -> Audit:
    """Read every file with code under the folders, and say what each one is.

    Raises `ConfigurationError` when a folder or program is not there.
    """
    asked = [Found(str(path.resolve()), _traces_or_fail(path)) for path in programs]
    loads: dict[str, list[tuple[str, str]]] = {}
    unresolved = []
    for program in asked:
        for library in libraries_of(Path(program.path), environ):
            if library.path is None:
                unresolved.append(library)
                continue
            real = str(Path(library.path).resolve())
            loads.setdefault(real, []).append((program.path, library.why))
    found: list[Found] = []
    unreadable = []
    for path in sorted(_candidates(folders, workspace)):
        advance(str(path))
        try:
            traces = read_traces(open_object(path), member_opener(path))
        except (Malformed, ConfigurationError) as fault:
            unreadable.append((str(path), fault.what))
            continue
        if traces.holds_code or traces.stamps or str(path) in loads:
            found.append(Found(str(path), traces))
    store = str((workspace.build / "artifacts").resolve()) if workspace else ""
    groups = group_copies(found, originals, asked, loads, store)
    return Audit(groups, tuple(unreadable), tuple(unresolved), len(found))


def _traces_or_fail(path: Path) -> Traces:
    try:
        return read_traces(open_object(path), member_opener(path))
    except Malformed as fault:
        raise fault.inside(str(path)) from None


def _candidates(folders: Sequence[Path], workspace: Workspace | None) -> set[Path]:
    """Files that begin as objects do, in the folders that are there; none of the tool's own work."""
    passed_over = {workspace.work.resolve(), workspace.toolchain.resolve()} if workspace else set()
    found = set()
    for folder in folders:
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is no folder", remedy="check the path")
        found |= object_files(folder, lambda inner: inner.resolve() not in passed_over)
    return found


def object_files(folder: Path, enters: Callable[[Path], bool]) -> set[Path]:
    """Files below a folder that begin as objects do, links resolved, each once.

    ``enters`` is asked of each folder below it.
    """
    found = set()
    for parent, names, files in os.walk(folder):
        names[:] = [name for name in names if name not in _IGNORED_FOLDERS and enters(Path(parent, name))]
        found |= {path.resolve() for name in files if begins_as_object(path := Path(parent, name))}
    return found


def begins_as_object(path: Path) -> bool:
    """Whether a file begins as those do that hold code."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return path.suffix == ".ptx" or file.read(8).startswith(_BEGINNINGS)
    except OSError:
        return False
