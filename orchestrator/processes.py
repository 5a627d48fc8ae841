"""Running processes: which of the targets' code they map, and whether it is what is recorded.

What a process maps is told by content, under any name, and also after its file was deleted, as far as this
user may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from orchestrator.copies import Copy, CopyState, Found, Original, best_claim
from orchestrator.errors import ConfigurationError
from orchestrator.freshness import judge
from orchestrator.mapped_files import Mapping, mappings_of, read_mapped
from orchestrator.model import Evidence, Kind, Link, Observation, State, Target, Verdict
from orchestrator.object_files import holds
from orchestrator.objects.contents import Form
from orchestrator.objects.digests import file_digest
from orchestrator.objects.stamp import TEXT_PREFIX
from orchestrator.objects.traces import Traces, read_traces
from orchestrator.objects.window import Malformed
from orchestrator.targets import FILE

_MAPPED_KINDS = frozenset({Kind.SHARED_LIBRARY, Kind.EXECUTABLE})
_LOADED_KINDS = _MAPPED_KINDS | {Kind.CUBIN, Kind.FATBIN, Kind.PTX}
_STATES = {
    CopyState.CURRENT: State.FRESH,
    CopyState.STALE: State.STALE,
    CopyState.UNKNOWN: State.UNPROVEN,
    CopyState.SUPERSEDED: State.STALE,
}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A target's code in a running process. ``fault`` is empty if it is the current code."""

    pid: int
    program: str
    target: str
    """Empty if the mapped file could not be read, so that it may be any."""
    path: str
    digest: str | None
    """Of the mapped file, `None` if it could not be read."""
    state: State
    fault: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen of all processes, and how many could not be looked into: those of other users."""

    mapped: tuple[Mapped, ...]
    unseen: int


def survey_processes(originals: Sequence[Original]) -> Survey:
    """The targets' code in all processes that this user may look into."""
    look = _Look(originals)
    mapped: list[Mapped] = []
    unseen = 0
    for process in psutil.process_iter(["name"]):
        mappings = mappings_of(process.pid)
        if mappings is None:
            unseen += psutil.pid_exists(process.pid)
        else:
            mapped += look.at(process.pid, process.info["name"] or "", mappings)
    return Survey(tuple(mapped), unseen)


def check_process(pid: int) -> None:
    """Raises `ConfigurationError` if no process has this number."""
    if pid <= 0 or not psutil.pid_exists(pid):
        raise ConfigurationError(f"no process has the number {pid}", remedy="see `ps -e` for those that run")


def process_verdict(
    targets: Sequence[Target], originals: Sequence[Original], pid: int, *, named: bool
) -> Verdict:
    """Whether a process runs the artifacts of these targets as they are recorded, byte for byte.

    Each target that it does not map is a finding. Unless the targets were ``named``, those are asked about
    whose products are loaded as they are: not objects and archives, which are linked into others.
    """
    asked = [target for target in targets if named or target.kind in _LOADED_KINDS]
    mappings = mappings_of(pid)
    ours = {target.name for target in targets if target.kind in _MAPPED_KINDS}
    by_target = {original.target: original for original in originals if original.target in ours}
    found = list(_Look(tuple(by_target.values())).at(pid, "", mappings or ()))
    mapped = {one.target for one in found}
    observations = [
        *(_as_observation(one, by_target.get(one.target)) for one in found),
        *(
            _not_mapped(target, pid, readable=mappings is not None)
            for target in asked
            if target.name not in mapped
        ),
    ]
    if not observations:
        observations = [_nothing_to_ask(pid)]
    return judge(Evidence(f"process {pid}", frozenset({Link.LOADED}), tuple(observations)))


def _as_observation(one: Mapped, original: Original | None) -> Observation:
    recorded = original.digest if original else None
    fault = one.fault
    observed = None if one.state is State.UNPROVEN else one.digest or "another file"
    if not fault and observed != recorded:  # the same stamp, as after `strip`
        observed, fault = None, "carries the artifact's stamp, and its bytes are others"
    if fault and observed == recorded:  # the very bytes of an artifact that is itself not fresh
        recorded = "a fresh artifact"
    return Observation(
        link=Link.LOADED,
        code="mapped-file-differs" if one.digest else "mapped-file-unreadable",
        subject=one.target or one.path,
        recorded=recorded,
        observed=observed,
        note=f"process {one.pid}, {one.path}: {fault}" if fault else "",
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


class _File(NamedTuple):
    """A mapped file: what is in it if it may be code of a target, and whether it could be read."""

    traces: Traces | None
    readable: bool


class _Look:
    """One look at processes; each file is read once, however many map it."""

    def __init__(self, originals: Sequence[Original]) -> None:
        self._originals = originals
        self._names = {Path(original.path).name: original for original in originals}
        self._files: dict[tuple[str, int, bool], _File] = {}
        self._others: dict[str, bool] = {}

    def at(self, pid: int, program: str, mappings: Sequence[Mapping]) -> Iterator[Mapped]:
        """What one process maps of the targets' code."""
        for mapping in mappings:
            named = self._names.get(Path(mapping.path).name)
            if (named is None and not mapping.executable) or self._is_anothers(Path(mapping.path)):
                continue
            traces, readable = self._file(pid, mapping)
            claim = best_claim(Found(mapping.path, traces), self._originals) if traces else None
            if claim is not None:
                yield _mapped(pid, program, mapping, claim[0].target, claim[1])
            elif not readable:
                yield from self._unreadable(pid, program, mapping)

    def _is_anothers(self, path: Path) -> bool:
        """Whether a file lies in another project, which has targets of its own, perhaps of the same names."""
        folder = str(path.parent)
        if folder not in self._others:
            root = next((one for one in path.parents if (one / FILE).is_file()), None)
            ours = root is None or any(Path(one.path).is_relative_to(root) for one in self._originals)
            self._others[folder] = not ours
        return self._others[folder]

    def _unreadable(self, pid: int, program: str, mapping: Mapping) -> Iterator[Mapped]:
        """A file whose bytes this user cannot get at: told by its name alone, if that tells anything."""
        named = self._names.get(Path(mapping.path).name)
        target = named.target if named else ""
        if named and (mapping.deleted or _was_replaced(mapping)):
            state, fault = State.STALE, "runs a file that was replaced or deleted since it was loaded"
        elif named:
            state, fault = State.UNPROVEN, "runs a file that cannot be read"
        elif mapping.deleted:
            state, fault = State.UNPROVEN, "runs a deleted file that cannot be read: unproven"
        else:
            return
        yield Mapped(pid, program, target, mapping.path, None, state, fault)

    def _file(self, pid: int, mapping: Mapping) -> _File:
        named = Path(mapping.path).name in self._names
        key = (mapping.device, mapping.inode, named)
        if key not in self._files:
            self._files[key] = self._read(pid, mapping, named)
        return self._files[key]

    def _read(self, pid: int, mapping: Mapping, named: bool) -> _File:
        data = read_mapped(pid, mapping)
        if data is None:
            return _File(None, False)
        if not named and not holds(data, TEXT_PREFIX):
            return _File(None, True)
        try:
            return _File(read_traces(data), True)
        except Malformed:
            return _File(Traces(Form.OTHER, file_digest(data)), True)


def _mapped(pid: int, program: str, mapping: Mapping, target: str, copy: Copy) -> Mapped:
    fault = "" if copy.state is CopyState.CURRENT else copy.why
    if fault and mapping.deleted:
        fault = f"runs a file that was replaced or deleted since it was loaded: {fault}"
    return Mapped(pid, program, target, mapping.path, copy.digest, _STATES[copy.state], fault)


def _was_replaced(mapping: Mapping) -> bool:
    try:
        return Path(mapping.path).stat().st_ino != mapping.inode
    except OSError:
        return True
