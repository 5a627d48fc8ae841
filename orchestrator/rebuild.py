"""The audit: every command run again in an empty folder, and its product compared with the artifact.

Byte identity is promised for cubins, fat binaries and PTX, unless a flag forbids it; for the rest the
normalised digest, which leaves out temporary names and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.digests import Digests
from orchestrator.errors import FreshproofError
from orchestrator.evidence import digest_tools
from orchestrator.make import Maker, Means
from orchestrator.model import Action, Kind, Manifest, Member
from orchestrator.object_files import open_object, reading
from orchestrator.objects.compare import Difference, compare, hold
from orchestrator.objects.digests import device_digest
from orchestrator.recorded import Records
from orchestrator.situation import survey
from orchestrator.workspace import Workspace, exclusive

_SAME_BYTES = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX})
_TIMED_FLAGS = frozenset({"-lineinfo", "--generate-line-info", "-G", "--device-debug"})


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How a target's second product compares with its artifact."""

    target: str
    promised: str
    """``bytes`` or ``normalised``."""
    kept: bool
    """Whether what was promised was found."""
    difference: Difference | None
    """`None` if the second build failed."""
    digests: tuple[tuple[str, str | None, str | None], ...] = ()
    """Of the file, of the file but for noise, of its device code: level, recorded, of the second build."""
    note: str = ""
    """Why there was no second product, or why less is promised than for others of its kind."""


def rebuild(
    workspace: Workspace, names: Sequence[str], environ: Mapping[str, str], note: Callable[[str], None]
) -> tuple[Rebuilt, ...]:
    """Build the targets named (all if none is) a second time and compare; records nothing.

    Raises what `orchestrator.situation.survey` does.
    """
    with exclusive(workspace, note) as lock:
        situation = survey(workspace, names, environ)
        digests, records = Digests(workspace.root), Records(workspace)
        maker = Maker(workspace, digests, records, lock, note)
        rebuilt = []
        for action in situation.actions:
            toolchain = situation.toolchains[action.target.name]
            found = {name: records.read(name) for name in (action.target.name, *action.target.uses)}
            missing = [why for manifest, why in found.values() if manifest is None]
            if missing:
                rebuilt.append(_not_compared(action, missing[0]))
                continue
            manifests = {name: manifest for name, (manifest, _why) in found.items() if manifest}
            members = tuple(
                Member(u, manifests[u].product.digest, manifests[u].recipe_digest) for u in action.target.uses
            )
            means = Means(toolchain, digest_tools(toolchain.components, digests), members)
            rebuilt.append(_compare(maker, action, means, manifests[action.target.name]))
        return tuple(rebuilt)


def _compare(maker: Maker, action: Action, means: Means, manifest: Manifest) -> Rebuilt:
    target = action.target
    promised, reason = _promise(action)
    path = maker.workspace.root / manifest.product.path
    try:
        second = maker.remake(action, means)
        with reading(path):
            first = open_object(path)
            ours, theirs = hold(first), hold(second)
            digests = (
                ("file", ours.file, theirs.file),
                ("normalised", ours.normalised, theirs.normalised),
                ("device", device_digest(first), device_digest(second)),
            )
            difference = compare(ours, theirs)
    except FreshproofError as error:
        return _not_compared(action, error.what)
    kept = difference.identical if promised == "bytes" else difference.same
    return Rebuilt(target.name, promised, kept, difference, digests, reason)


def _promise(action: Action) -> tuple[str, str]:
    """What a second build must have in common with the first, and why it is not more."""
    if action.target.kind not in _SAME_BYTES:
        return "normalised", ""
    added = " ".join(value for name, value in action.environment if name.endswith("PEND_FLAGS"))
    for flag in (*action.target.flags, *added.split()):
        if flag in _TIMED_FLAGS:
            return "normalised", f"{flag} writes the source's folder and modification time into the code"
    return "bytes", ""


def _not_compared(action: Action, why: str) -> Rebuilt:
    return Rebuilt(action.target.name, _promise(action)[0], False, None, note=why)
