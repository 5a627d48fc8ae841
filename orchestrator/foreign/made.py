"""What is recorded of a build by another build system, and its document. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.canonical import encode, parse_json, seal, unseal
from orchestrator.foreign.steps import Tool
from orchestrator.model import Absent, Digest

SCHEMA = "freshproof/foreign/5"

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What was found in a file that can hold code."""

    digest: Digest
    size: int
    form: str
    """Such as ``archive``; empty for a file that holds no code."""
    normalised: Digest = ""
    device: Digest = ""
    """Of its device code; empty if it has none."""
    pieces: tuple[Digest, ...] = ()
    """Of each stretch of device code in it."""
    kernels: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    """``sm_90`` of machine code, ``compute_90`` of PTX."""
    members: tuple[tuple[str, Digest, bool], ...] = ()
    """Of an archive: name, digest of the bytes, and whether it holds device code."""
    sealed: str = ""
    """Why some of it could not be read."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file that a step of a build made. Paths are full."""

    path: str
    tool: Tool
    mode: str
    argv: tuple[str, ...]
    folder: str
    content: Content
    inputs: Pairs
    """Objects, archives and libraries that went in, with their digests."""
    materials: Pairs
    """Sources that rustc read, with their digests."""
    listed: bool
    """Whether all that the step read is known."""
    manifest: str
    """Name of the manifest of a compile by nvcc or a host compiler, which has its closure; else empty."""
    unknown: tuple[str, ...]
    """What could not be established, in words."""
    receipt: Digest
    """Of the project as it was in that build."""
    run: int
    milliseconds: int
    made_ns: int
    """When the step ended."""
    programs: Pairs = ()
    """What ran in a step without a manifest, with digests."""
    absent: Absent = ()
    """Where a library that went in would have been found before it was."""
    earlier: tuple[Digest, ...] = ()
    """What lay at this path after earlier recorded builds, the latest first."""
    before: tuple[Digest, Digest] | None = None
    """Normalised digest and device digest of the latest of them."""
    plan: tuple[str, ...] = ()
    """What the build system said that it runs for it: see `orchestrator.foreign.plans`."""
    planned: Digest = ""
    """Receipt of the latest build, of those that left it alone, after which that was still so."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A project at one build: its files, and what else decides what is built."""

    files: Mapping[str, Digest]
    unsettled: tuple[str, ...]
    """Files that changed while the build ran."""
    variables: Mapping[str, str]
    asked: tuple[str, ...]
    """Further variables that Rust sources and build scripts ask for; their values are kept as digests."""
    tools: Mapping[str, str]
    """What the PATH gave for the name of each tool that ran."""
    roots: tuple[str, ...]
    """The folders whose files these are."""
    absent: tuple[str, ...] = ()
    """Files that would describe the build and were not there."""
    displaced: tuple[str, ...] = ()
    """Files that came into their place while the build ran, with a folder that was moved: they look old."""
    consulted: tuple[str, ...] = ()
    """What build scripts looked at: files, and names that were not there."""
    parsed: Mapping[str, Digest] = field(default_factory=dict)
    """Of descriptions of the build what they say, whatever their comments."""
    given: Mapping[str, str] = field(default_factory=dict)
    """What commands of make set, by the folder in which each ran last."""


@dataclass(frozen=True, slots=True)
class Build:
    """All that is recorded below one project."""

    root: str
    command: tuple[str, ...] = ()
    folder: str = ""
    code: int = 0
    run: int = 0
    lost: tuple[str, ...] = ()
    """What the last build hid from the observer, in words."""
    receipt: Digest = ""
    """Of the project at the last build."""
    made: Mapping[str, Made] = field(default_factory=dict)


def build_bytes(build: Build) -> bytes:
    """The canonical document."""
    return seal({"schema": SCHEMA, **asdict(build)})


def read_build(data: bytes) -> Build:
    """Raises `ValueError` for anything that `build_bytes` does not write."""
    document = unseal(data)
    try:
        document.pop("self_digest")
        if document.pop("schema") != SCHEMA:
            raise ValueError("it is of another release")
        made = {path: _made(fields) for path, fields in document.pop("made").items()}
        return Build(**{name: _frozen(value) for name, value in document.items()}, made=made)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is damaged, or of another release") from error


def _made(fields: dict[str, Any]) -> Made:
    content = Content(**{name: _frozen(value) for name, value in fields.pop("content").items()})
    tool = Tool(fields.pop("tool"))
    return Made(**{name: _frozen(value) for name, value in fields.items()}, tool=tool, content=content)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def receipt_bytes(receipt: Receipt) -> bytes:
    """The canonical document."""
    return encode(asdict(receipt))


def read_receipt(data: bytes) -> Receipt:
    """Raises `ValueError` for anything that `receipt_bytes` does not write."""
    try:
        return Receipt(**{name: _frozen(value) for name, value in parse_json(data).items()})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a receipt: {error}") from None
