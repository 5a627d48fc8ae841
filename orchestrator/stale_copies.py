"""The level *copies* of verify: other files that carry a target's code, and whether it is the current code.

Looked at are files that have an artifact's name or carry the stamp of a target: in the project, and in the
folders of LD_LIBRARY_PATH, where the loader goes by names. `freshproof audit` looks at all code, also by its
kernels, and anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.audit import object_files, originals_of
from orchestrator.copies import Copy, CopyState, Found, Original, group_copies
from orchestrator.errors import ConfigurationError
from orchestrator.freshness import combine
from orchestrator.model import Admission, Evidence, Link, Observation, Verdict
from orchestrator.object_files import holds, member_opener, open_object
from orchestrator.objects.stamp import SYMBOL_PREFIX
from orchestrator.objects.traces import read_traces
from orchestrator.objects.window import Malformed
from orchestrator.targets import FILE
from orchestrator.workspace import Workspace

_MARK = SYMBOL_PREFIX.encode()


def observe_copies(
    workspace: Workspace,
    verdicts: Sequence[Verdict],
    environ: Mapping[str, str],
    advance: Callable[[str], None],
) -> dict[str, tuple[Observation, ...]]:
    """The copies of each target that is fresh; by one that is not, no copy can be judged."""
    originals = originals_of(workspace, verdicts)
    if not any(original.fresh for original in originals):
        return {}
    names = {Path(original.path).name for original in originals}
    found, unread = _carriers(workspace, names, environ, advance)
    store = str((workspace.build / "artifacts").resolve())
    groups = {group.name: group.copies for group in group_copies(found, originals, store=store)}
    return {
        original.target: tuple(_observations(workspace, original, groups.get(original.target, ()), unread))
        for original in originals
        if original.fresh
    }


def with_copies(admission: Admission, copies: Mapping[str, tuple[Observation, ...]]) -> Admission:
    """The gate's verdicts with what was found of copies."""
    verdicts = tuple(
        combine(verdict, Evidence(verdict.target, frozenset({Link.COPIES}), copies[verdict.target]))
        if verdict.target in copies
        else verdict
        for verdict in admission.verdicts
    )
    return Admission(verdicts, admission.artifacts)


def _observations(
    workspace: Workspace, original: Original, copies: Iterable[Copy], unread: Mapping[str, str]
) -> Iterator[Observation]:
    others = [copy for copy in copies if copy.path != original.path]
    findings = [
        *(_stale(workspace, original, copy) for copy in others if copy.state is CopyState.STALE),
        *(
            _unreadable(workspace, original, path, fault)
            for path, fault in unread.items()
            if Path(path).name == Path(original.path).name
        ),
    ]
    yield from findings
    if not findings:
        current = sum(copy.state is CopyState.CURRENT for copy in others)
        told = f"{current} elsewhere, all current" if current else "none elsewhere"
        yield Observation(Link.COPIES, "copies", original.target, told, told)


def _stale(workspace: Workspace, original: Original, copy: Copy) -> Observation:
    shown = _shown(workspace, copy.path)
    note = f"{shown}: is not the current {original.target}: {copy.why}"
    remedy = f"copy {_shown(workspace, original.path)} there, or remove it"
    return Observation(Link.COPIES, "copy-stale", shown, original.digest, copy.digest, note, remedy)


def _unreadable(workspace: Workspace, original: Original, path: str, fault: str) -> Observation:
    shown = _shown(workspace, path)
    note = f"{shown}: has the name of {original.target}'s artifact and cannot be read: {fault}"
    remedy = "remove it, or build it again"
    return Observation(Link.COPIES, "copy-unreadable", shown, original.digest, None, note, remedy)


def _shown(workspace: Workspace, path: str) -> str:
    """A path as people know it: relative to the project where it lies in it."""
    return path.removeprefix(f"{workspace.root}/")


def _carriers(
    workspace: Workspace, names: set[str], environ: Mapping[str, str], advance: Callable[[str], None]
) -> tuple[list[Found], dict[str, str]]:
    """Files that may carry code of a target, read; and those of an artifact's name that cannot be."""
    found, unread = [], {}
    for path in sorted(_candidates(workspace, names, environ)):
        advance(str(path))
        try:
            data = open_object(path)
            if path.name in names or holds(data, _MARK):
                found.append(Found(str(path), read_traces(data, member_opener(path))))
        except (Malformed, ConfigurationError) as fault:
            unread[str(path)] = fault.what
    return found, unread


def _candidates(workspace: Workspace, names: set[str], environ: Mapping[str, str]) -> set[Path]:
    passed_over = (workspace.work.resolve(), workspace.toolchain.resolve())

    def enters(folder: Path) -> bool:
        """Not into the tool's own folders, and not into another project, which has targets of its own."""
        return folder.resolve() not in passed_over and not (folder / FILE).is_file()

    found = object_files(workspace.root, enters)
    for folder in environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":"):
        found |= {path.resolve() for name in names if folder and (path := Path(folder, name)).is_file()}
    return found
