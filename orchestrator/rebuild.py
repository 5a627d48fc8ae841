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
from orchestrator.model import Action, Kind, Manifest, Member, Target
from orchestrator.object_files import open_object, reading
from orchestrator.objects.compare import Difference, compare, hold
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
                rebuilt.append(_not_compared(action.target, missing[0]))
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
    promised, reason = _promise(target)
    path = maker.workspace.root / manifest.product.path
    try:
        second = maker.remake(action, means)
        with reading(path):
            difference = compare(hold(open_object(path)), hold(second))
    except FreshproofError as error:
        return _not_compared(target, error.what)
    kept = difference.identical if promised == "bytes" else difference.same
    return Rebuilt(target.name, promised, kept, difference, reason)


def _promise(target: Target) -> tuple[str, str]:
    """What a second build must have in common with the first, and why it is not more."""
    if target.kind not in _SAME_BYTES:
        return "normalised", ""
    for flag in target.flags:
        if flag in _TIMED_FLAGS:
            return "normalised", f"{flag} writes the source's folder and modification time into the code"
    return "bytes", ""


def _not_compared(target: Target, why: str) -> Rebuilt:
    return Rebuilt(target.name, _promise(target)[0], False, None, why)
