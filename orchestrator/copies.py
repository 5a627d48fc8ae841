"""Copies of code in other places: which are current, which are stale, and which one a program has in it.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from types import MappingProxyType

from orchestrator.model import Digest
from orchestrator.objects.contents import Form
from orchestrator.objects.demangle import demangle
from orchestrator.objects.stamp import SYMBOL_PREFIX
from orchestrator.objects.traces import Traces, is_linked
from orchestrator.targets import unit_of

Loads = Mapping[str, Sequence[tuple[str, str]]]
"""By a library's path: (program, reason) of each program that would load it."""


class CopyState(StrEnum):
    """What is known about a copy."""

    CURRENT = "current"
    STALE = "stale"
    UNKNOWN = "unknown"
    SUPERSEDED = "superseded"
    """An earlier artifact in the project's own store, used by nothing that was asked about."""


@dataclass(frozen=True, slots=True)
class Original:
    """The artifact of a target, as the gate sees it now; ``fresh`` says what the gate says."""

    target: str
    path: str
    digest: Digest
    unstamped: Digest
    recipe: Digest
    fresh: bool
    traces: Traces


@dataclass(frozen=True, slots=True)
class Found:
    """One file that holds code."""

    path: str
    traces: Traces


@dataclass(frozen=True, slots=True)
class Copy:
    """One file of a group. ``used_by`` are the programs that it is linked into or loaded by, and why."""

    path: str
    digest: Digest
    state: CopyState
    why: str
    used_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """All files with the code of one target, or, where no target claims them, all builds of one name."""

    name: str
    copies: tuple[Copy, ...]


def group_copies(
    found: Sequence[Found],
    originals: Sequence[Original],
    programs: Sequence[Found] = (),
    loads: Loads = MappingProxyType({}),
    store: str = "",
) -> tuple[Group, ...]:
    """Group the files found by target, the others by name where a name occurs more than once.

    Each file is in one group at most. ``programs`` are those asked about; ``store`` is the folder of the
    project's own artifacts.
    """
    uses = _Uses(programs, loads)
    known = {(*kernel, code) for one in originals for kernel, code in one.traces.kernels.items()}
    current = {original.path for original in originals}
    groups: dict[str, list[Copy]] = {}
    by_name: dict[str, list[Found]] = {}
    for file in found:
        claims = [(one, claim) for one in originals if (claim := _claim(file, one, known)) is not None]
        if not claims:
            by_name.setdefault(_name(file.path), []).append(file)
            continue
        original, (_rank, copy) = min(claims, key=lambda claim: _order(file, *claim))
        copy = replace(copy, used_by=uses.of(file))
        if store and file.path.startswith(f"{store}/") and file.path not in current and not copy.used_by:
            copy = replace(copy, state=CopyState.SUPERSEDED, why="an earlier artifact of this project")
            original = next((one for one in originals if _name(one.path) == _name(file.path)), original)
        groups.setdefault(original.target, []).append(copy)
    for name, files in by_name.items():
        left = [file for file in files if store and file.path.startswith(f"{store}/") and not uses.of(file)]
        for file in left:  # of targets that are no longer there
            why = "an earlier artifact of this project"
            copy = Copy(file.path, file.traces.digest, CopyState.SUPERSEDED, why)
            groups.setdefault(name, []).append(copy)
        files = [file for file in files if file not in left]
        if len(files) > 1 or any(uses.of(file) for file in files):
            groups.setdefault(name, []).extend(_builds(files, uses))
    return tuple(Group(name, tuple(copies)) for name, copies in sorted(groups.items()))


class _Rank(IntEnum):
    """How much a claim says; of several targets, the one that says most has the file. Bad news first."""

    BYTES = 0
    OTHER_STAMP = 1
    STAMP = 2
    OTHER_KERNELS = 3
    KERNELS = 4
    NAME = 5


_Claim = tuple[_Rank, Copy]


def _order(file: Found, original: Original, claim: _Claim) -> tuple[int, bool, bool]:
    """Among equal claims, that of the target whose artifact has the file's name, or its form."""
    rank, _copy = claim
    return rank, _name(file.path) != _name(original.path), file.traces.form != original.traces.form


def best_claim(file: Found, originals: Sequence[Original]) -> tuple[Original, Copy] | None:
    """The target that a file has most of, and the file as a copy of its artifact; ``None`` if of none."""
    claims = [(one, claim) for one in originals if (claim := _claim(file, one, frozenset())) is not None]
    if not claims:
        return None
    original, (_rank, copy) = min(claims, key=lambda claim: _order(file, *claim))
    return original, copy


def compare_copy(file: Found, original: Original) -> Copy | None:
    """A file as a copy of one target's artifact; ``None`` if it has nothing of it."""
    claim = best_claim(file, [original])
    return claim[1] if claim else None


def _claim(file: Found, original: Original, known: Set[tuple[str, str, str]]) -> _Claim | None:
    digest = file.traces.digest
    behind = "" if original.fresh else ", and the target is not fresh"
    current = CopyState.CURRENT if original.fresh else CopyState.STALE
    if digest == original.digest:
        return _Rank.BYTES, Copy(file.path, digest, current, f"the bytes of the artifact{behind}")
    if digest == original.unstamped:
        why = f"the bytes of the artifact before it was stamped{behind}"
        return _Rank.BYTES, Copy(file.path, digest, current, why)
    stamp = file.traces.stamps.get(SYMBOL_PREFIX + unit_of(original.target))
    if stamp == original.recipe:
        return _Rank.STAMP, Copy(file.path, digest, current, f"carries the artifact's stamp{behind}")
    if stamp is not None:
        why = f"carries the stamp of another recipe, {stamp}"
        if file.traces.form is Form.CUBIN and (other := _other_arch(file, original)):
            why = f"is for {other}, which this build of the target cannot tell the age of"
            return _Rank.STAMP, Copy(file.path, digest, CopyState.UNKNOWN, why)
        return _Rank.OTHER_STAMP, Copy(file.path, digest, CopyState.STALE, why)
    return _same_kernels(file, original, known) or _same_name(file, original)


def _other_arch(file: Found, original: Original) -> str:
    """The architecture of a cubin if the target's artifact has no code for it; else empty."""
    archs, ours = ({arch for arch, _name in one.traces.kernels} for one in (file, original))
    return ", ".join(sorted(archs)) if ours and not archs & ours else ""


def _same_kernels(file: Found, original: Original, known: Set[tuple[str, str, str]]) -> _Claim | None:
    """Code without a stamp: told by its kernels, if it has most of them.

    A kernel that is ``known`` as another target's current code is no older one of this target.
    """
    shared = file.traces.kernels.keys() & original.traces.kernels.keys()
    if not shared or 2 * len(shared) < len(original.traces.kernels):
        return None
    other = sorted(key for key in shared if file.traces.kernels[key] != original.traces.kernels[key])
    changed = [demangle(key[1]) for key in other if (*key, file.traces.kernels[key]) not in known]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        why = f"{len(changed)} of {len(shared)} kernels are other code: {changed[0]}{more}"
        return _Rank.OTHER_KERNELS, Copy(file.path, file.traces.digest, CopyState.STALE, why)
    if other:
        return None
    why = "the same kernels, without a stamp; its host code cannot be compared"
    return _Rank.KERNELS, Copy(file.path, file.traces.digest, CopyState.UNKNOWN, why)


def _same_name(file: Found, original: Original) -> _Claim | None:
    if _name(file.path) != _name(original.path):
        return None
    why = "the name of the artifact, with other code and no stamp"
    return _Rank.NAME, Copy(file.path, file.traces.digest, CopyState.STALE, why)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _builds(files: Sequence[Found], uses: _Uses) -> list[Copy]:
    """Builds of one name that no target claims: those not used are stale if another one is."""
    used = {file.traces.digest for file in files if uses.of(file)}
    builds = len({file.traces.digest for file in files})
    copies = []
    for file in files:
        digest = file.traces.digest
        if not used:
            told = f"one of {builds} builds" if builds > 1 else f"one build, at {len(files)} places"
            state, why = CopyState.UNKNOWN, f"{told}; --program tells which one is used"
        elif digest not in used:
            state, why = CopyState.STALE, "not the build that is used" + _same_device(file, files, used)
        elif len(used) > 1 and not uses.certain(file):
            state, why = CopyState.UNKNOWN, f"one of {len(used)} builds whose device code is the same"
        else:
            state, why = CopyState.CURRENT, "the build that is used"
        copies.append(Copy(file.path, digest, state, why, uses.of(file)))
    return copies


def _same_device(file: Found, files: Sequence[Found], used: Set[Digest]) -> str:
    others = [other for other in files if other.traces.digest in used]
    same = file.traces.device and any(file.traces.device == other.traces.device for other in others)
    return "; its device code is the same" if same else ""


@dataclass(frozen=True, slots=True)
class _Uses:
    """Who uses a file: programs that it is linked into, and programs that would load it."""

    programs: Sequence[Found]
    loads: Loads

    def of(self, file: Found) -> tuple[str, ...]:
        """In words, one for each program."""
        linked = (f"linked into {p.path}" for p in self._asked(file) if is_linked(p.traces, file.traces))
        loaded = (f"loaded by {program} through {why}" for program, why in self.loads.get(file.path, ()))
        return (*linked, *loaded)

    def certain(self, file: Found) -> bool:
        """Whether another build with the same device code would have been told apart."""
        return bool(self.loads.get(file.path)) or any(
            file.traces.units & program.traces.units for program in self._asked(file)
        )

    def _asked(self, file: Found) -> Iterator[Found]:
        return (program for program in self.programs if program.path != file.path)
