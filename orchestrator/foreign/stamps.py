"""What the stamp of an object stands for, and what is kept of each step that has one. Pure.

A stamp names a step; it proves nothing, since anyone can write a note into a file. It is made of what is
known when the step ends, and is the same wherever the project lies: the command without machine paths and
without where it writes, nvcc's variables, the sources and the toolkit by content, and the code that came of
it, in which headers show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from orchestrator.canonical import digest_document, seal, unseal
from orchestrator.foreign.made import Build
from orchestrator.foreign.steps import Step
from orchestrator.foreign.words import without_outputs
from orchestrator.model import Digest, Tools
from orchestrator.plan import HONOURED

SCHEMA = "freshproof/stamps/1"
_STEP = "freshproof/step/1"
_MOST_OF_A_PATH = 20
"""How many stamps of one object are remembered."""


@dataclass(frozen=True, slots=True)
class Stamped:
    """An object that got a stamp, and the step that made it."""

    stamp: Digest
    sources: tuple[str, ...]
    """Their names in the stamp."""
    path: str
    argv: tuple[str, ...]
    folder: str
    made_ns: int
    """When the object was written last, of all times that equal steps made it there."""
    manifest: str = ""
    """Name of the document with everything that the step read; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """All that is kept of stamps below one project."""

    given: tuple[Stamped, ...] = ()
    """In the order in which they were given. Equal steps that write elsewhere give equal stamps."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Objects of the last build that stayed as nvcc wrote them, and why."""


def step_digest(
    step: Step, root: str, sources: Iterable[tuple[str, Digest]], tools: Tools, code: Digest
) -> Digest:
    """The stamp for a step of the project at ``root``; ``code`` is its object's normalised digest."""
    near = [step.event.folder, root]
    environment = step.event.environment
    return digest_document(
        {
            "schema": _STEP,
            "argv": [_anywhere(word, near) for word in without_outputs(step.event.argv[1:])],
            "environment": {n: _anywhere(environment[n], near) for n in HONOURED if n in environment},
            "sources": [[name, digest] for name, digest in sources],
            "toolkit": {c.role: c.digest for c in tools.components if c.portable},
            "code": code,
        }
    )


def _anywhere(word: str, folders: Iterable[str]) -> str:
    """A word of a command without the places of the project and of the folder it ran in, the deeper first."""
    for folder in sorted(folders, key=len, reverse=True):
        word = word.replace(f"{folder}/", "")
    return word


def source_name(path: str, root: str) -> str:
    """A source as its stamp names it: relative to the project, of others the last part alone."""
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else path.rpartition("/")[2]


def with_build(earlier: Stamps, given: Stamps, build: Build) -> Stamps:
    """What is kept after a build that gave stamps: the latest of each object, and where its closure is."""
    again = {(one.stamp, one.path) for one in given.given}
    kept = [one for one in earlier.given if (one.stamp, one.path) not in again]
    for one in given.given:
        made = build.made.get(one.path)
        kept.append(replace(one, manifest=made.manifest if made else ""))
    return Stamps(_latest(kept), given.left)


def _latest(given: Sequence[Stamped]) -> tuple[Stamped, ...]:
    count: dict[str, int] = {}
    kept = []
    for one in reversed(given):
        count[one.path] = count.get(one.path, 0) + 1
        if count[one.path] <= _MOST_OF_A_PATH:
            kept.append(one)
    return tuple(reversed(kept))


def stamps_bytes(stamps: Stamps) -> bytes:
    """The canonical document."""
    return seal({"schema": SCHEMA, "given": [asdict(one) for one in stamps.given], "left": dict(stamps.left)})


def read_stamps(data: bytes) -> Stamps:
    """Raises `ValueError` for anything that `stamps_bytes` does not write."""
    document = unseal(data)
    try:
        if document["schema"] != SCHEMA:
            raise ValueError("it is of another release")
        return Stamps(tuple(map(_stamped, document["given"])), document["left"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is damaged, or of another release") from error


def _stamped(fields: dict[str, Any]) -> Stamped:
    sources, argv = tuple(fields.pop("sources")), tuple(fields.pop("argv"))
    return Stamped(sources=sources, argv=argv, **fields)
