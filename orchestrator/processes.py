"""Running processes: which of the targets' artifacts they map, and whether it is what is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from orchestrator.copies import Original
from orchestrator.errors import ConfigurationError
from orchestrator.freshness import judge
from orchestrator.model import Evidence, Kind, Link, Observation, Target, Verdict
from orchestrator.object_files import open_object
from orchestrator.objects.digests import file_digest

_MAPPED_KINDS = frozenset({Kind.SHARED_LIBRARY, Kind.EXECUTABLE})
_LOADED_KINDS = _MAPPED_KINDS | {Kind.CUBIN, Kind.FATBIN, Kind.PTX}


@dataclass(frozen=True, slots=True)
class Mapped:
    """An artifact's file in a running process. ``fault`` is empty if the process runs the recorded bytes."""

    pid: int
    program: str
    target: str
    path: str
    fault: str


_Mapping = tuple[str, int, bool]
"""Path, inode, and whether the file is deleted."""


def mapped_artifacts(originals: Sequence[Original]) -> Iterator[Mapped]:
    """Files of the targets' names that processes map, with what is wrong about each.

    Of all processes that this user may look into.
    """
    for process in psutil.process_iter(["name"]):
        mappings = _mappings(process.pid) or ()
        yield from _artifacts(originals, process.pid, process.info["name"] or "", mappings)


def check_process(pid: int) -> None:
    """Raises `ConfigurationError` if no process has this number."""
    if pid <= 0 or not psutil.pid_exists(pid):
        raise ConfigurationError(f"no process has the number {pid}", remedy="see `ps -e` for those that run")


def process_verdict(
    targets: Sequence[Target], originals: Sequence[Original], pid: int, *, named: bool
) -> Verdict:
    """Whether a process runs the artifacts of these targets as they are recorded.

    Each target that it does not map is a finding. Unless the targets were ``named``, those are asked about
    whose products are loaded as they are: not objects and archives, which are linked into others.
    """
    asked = [target for target in targets if named or target.kind in _LOADED_KINDS]
    mappings = _mappings(pid)
    ours = {target.name for target in targets}
    originals = [original for original in originals if original.target in ours]
    found = list(_artifacts(originals, pid, "", mappings or ()))
    mapped = {one.target for one in found}
    observations = [
        *(_as_observation(one) for one in found),
        *(
            _not_mapped(target, pid, readable=mappings is not None)
            for target in asked
            if target.name not in mapped
        ),
    ]
    if not observations:
        observations = [_nothing_to_ask(pid)]
    return judge(Evidence(f"process {pid}", frozenset({Link.LOADED}), tuple(observations)))


def _as_observation(one: Mapped) -> Observation:
    return Observation(
        link=Link.LOADED,
        code="mapped-file-differs",
        subject=one.target,
        recorded="the artifact",
        observed=one.fault or "the artifact",
        note=f"process {one.pid}, {one.path}: {one.fault}" if one.fault else "",
        remedy="start the process again",
    )


def _not_mapped(target: Target, pid: int, *, readable: bool) -> Observation:
    if not readable:
        note = f"process {pid} cannot be looked into, so that nothing shows that it runs {target.name}"
        remedy = "ask as the user who runs it"
    elif target.kind in _MAPPED_KINDS:
        note = f"process {pid} does not map the artifact of {target.name}"
        remedy = "start it again with the artifact, or name only the targets that it runs"
    else:
        missing = f"process {pid} does not map the artifact of {target.name}"
        note = f"{missing}: its kind, {target.kind}, is read or linked, not mapped"
        remedy = f"name only targets whose files are mapped: {', '.join(sorted(_MAPPED_KINDS))}"
    return Observation(Link.LOADED, "not-mapped", target.name, "the artifact", None, note, remedy)


def _nothing_to_ask(pid: int) -> Observation:
    note = f"no target makes a file that process {pid} could map"
    return Observation(Link.LOADED, "not-mapped", f"process {pid}", None, None, note, "name a target")


def _artifacts(
    originals: Sequence[Original], pid: int, program: str, mappings: Sequence[_Mapping]
) -> Iterator[Mapped]:
    by_name = {Path(original.path).name: original for original in originals}
    for path, inode, deleted in mappings:
        original = by_name.get(Path(path).name)
        if original is not None:
            yield Mapped(pid, program, original.target, path, _fault(original, path, inode, deleted))


def _fault(original: Original, path: str, inode: int, deleted: bool) -> str:
    if deleted:
        return "runs a file that was replaced or deleted since it was loaded"
    try:
        now = Path(path).stat().st_ino
        digest = file_digest(open_object(Path(path)))
    except (OSError, ConfigurationError):
        return "runs a file that cannot be read"
    if now != inode:
        return "runs a file that was replaced since it was loaded"
    if digest != original.digest:
        return f"runs {digest}, the target's artifact is {original.digest}"
    return "" if original.fresh else "runs the target's artifact, and the target is not fresh"


def _mappings(pid: int) -> tuple[_Mapping, ...] | None:
    """Each file that a process maps (proc(5)), once; ``None`` if it cannot be looked into."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")
    except OSError:
        return None
    found: dict[_Mapping, None] = {}
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            path = fields[5]
            deleted = path.endswith(" (deleted)")
            found[path.removesuffix(" (deleted)"), int(fields[4]), deleted] = None
    return tuple(found)
