"""The values that flow through the tool. Frozen, comparable, without behaviour that touches the world.

    targets.toml -> Target -> Plan -> Action -> Artifact -> Manifest -> Evidence -> Verdict
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

Digest = str
"""``sha256:<hex>`` of bytes. Never a time stamp."""


class State(StrEnum):
    """What is known about an artifact (DESIGN: fresh, defined)."""

    FRESH = "fresh"
    STALE = "stale"
    UNPROVEN = "unproven"


class Link(StrEnum):
    """One link of the chain of evidence; each is checked anew before and after a benchmark."""

    PLAN = "plan"
    INPUTS = "inputs"
    TOOLCHAIN = "toolchain"
    ARTIFACT = "artifact"
    CONTENTS = "contents"
    MEMBERS = "members"
    LOADED = "loaded"
    DRIVERS = "drivers"


class Kind(StrEnum):
    """What a target produces."""

    CUBIN = "cubin"
    FATBIN = "fatbin"
    PTX = "ptx"
    OBJECT = "object"
    DEVICE_LINK = "device-link"
    ARCHIVE = "archive"
    SHARED_LIBRARY = "shared-library"
    EXECUTABLE = "executable"


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing compared: what the record says and what is there now.

    Equal and both known: a positive match. Both known and different: stale. Either unknown (``None``):
    unproven, and ``note`` says why it could not be established.
    """

    link: Link
    code: str
    """Stable kebab-case name of the check, such as ``input-changed``."""
    subject: str
    """The file, variable, kernel or tool concerned."""
    recorded: str | None
    observed: str | None
    note: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All observations about one target, and the links that must each have at least one match."""

    target: str
    required: frozenset[Link]
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mismatch, or one thing that could not be established."""

    state: State
    link: Link
    code: str
    subject: str
    recorded: str | None
    observed: str | None
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of `freshness.judge`: a state, every finding, and how many matches back it, by link."""

    target: str
    state: State
    findings: tuple[Finding, ...]
    matches: tuple[tuple[Link, int], ...]


@dataclass(frozen=True, slots=True)
class Expectations:
    """What targets.toml demands of an artifact's contents."""

    kernels: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    no_spills: bool = False
    max_registers: int | None = None
    max_code_bytes: int | None = None
    texts_present: tuple[str, ...] = ()
    texts_absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A named thing to have, for one architecture."""

    name: str
    kind: Kind
    sources: tuple[str, ...]
    arch: str | None = None
    """``auto`` (the GPU that is there, else sm_90), ``native`` or ``sm_NN``; ``None`` for host code."""
    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    """Targets whose products are inputs of this one (device link, archive, executable)."""
    variant: str | None = None
    expect: Expectations = field(default_factory=Expectations)
    line: int = 0
    """Where targets.toml defines it, for messages."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A command to time, and the targets whose code it loads."""

    name: str
    command: tuple[str, ...]
    uses: tuple[str, ...]
    samples: int = 5
    warmups: int = 1
    worker: bool = True
    """Speaks the worker protocol (one resident process, one answer a sample); else one process a sample."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Project:
    """The whole of targets.toml."""

    name: str
    source_roots: tuple[str, ...]
    targets: tuple[Target, ...]
    workloads: tuple[Workload, ...]


@dataclass(frozen=True, slots=True)
class Admitted:
    """An artifact that the gate let through: the only form in which a benchmark receives one."""

    target: str
    kind: Kind
    path: str
    digest: Digest
    stamp: str
    manifest_digest: Digest
    arch: str | None
