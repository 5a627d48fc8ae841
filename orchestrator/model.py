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


class Origin(StrEnum):
    """Where a material lies, which decides how the portable recipe names it."""

    PROJECT = "project"
    """Below the project's root: named relative to it."""
    TOOLKIT = "toolkit"
    """Below the CUDA toolkit: named relative to the include folder."""
    EXTERNAL = "external"
    """Any other folder that the project's flags name: by its full path."""
    SYSTEM = "system"
    """The host compiler's and the system's own folders: part of the action, not of the recipe."""
    MEMBER = "member"
    """The product of another target: the recipe names that target's recipe instead."""


class Link(StrEnum):
    """One link of the chain of evidence; each is checked anew before and after a benchmark."""

    PLAN = "plan"
    INPUTS = "inputs"
    TOOLCHAIN = "toolchain"
    ARTIFACT = "artifact"
    CONTENTS = "contents"
    MEMBERS = "members"
    DEVICE_LINK = "device-link"
    """Linked device code beside the relocatable code of its members. Where there is nothing to compare, the
    members speak for it.
    """
    COPIES = "copies"
    """Other files that carry the target's code: only `verify` looks for them."""
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
    sources_line: int = 0
    """Where it names the sources."""


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
    default: bool = True
    """Runs when no workload is named; else only by name, or with all."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Project:
    """The whole of targets.toml."""

    name: str
    source_roots: tuple[str, ...]
    """Folders below which `build` names the source files that no target reads."""
    targets: tuple[Target, ...]
    workloads: tuple[Workload, ...]
    source_roots_line: int = 0
    """Where targets.toml names them, for messages."""


COMPILERS = frozenset({"nvcc", "nvcc.profile", "cudafe++", "cicc", "ptxas", "fatbinary", "nvlink"})
"""Roles of the toolkit's programs."""


@dataclass(frozen=True, slots=True)
class Component:
    """One file of the toolchain: ``role`` is stable across machines (``ptxas``, ``host/cc1plus``)."""

    role: str
    path: str
    digest: Digest

    @property
    def portable(self) -> bool:
        """Part of every recipe: the programs and the library that turn a source into machine code.

        Wrappers and the host compiler belong to one machine, headers are in the closure where read, and
        the rest of a toolkit (stubs, libnvvm) is there or not as it was installed.
        """
        return self.role in COMPILERS or self.role.startswith("libdevice/")


@dataclass(frozen=True, slots=True)
class Tools:
    """The files of a toolchain; all targets of a project mostly have the same."""

    digest: Digest
    """Of their canonical document, which is kept once for all of them."""
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """A small file that the plan itself writes before the command runs (the stamp's header)."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """One command fully expanded. Paths are relative to the project's root, which is the working folder."""

    target: Target
    arch: str | None
    """Resolved (``sm_90``); ``None`` for host code."""
    argv: tuple[str, ...]
    recipe_argv: tuple[str, ...]
    """The same command without machine paths; decides the stamp."""
    environment: tuple[tuple[str, str], ...]
    """All of it: the command sees nothing else."""
    generated: tuple[Generated, ...]
    options_files: tuple[str, ...]
    """Files of further options named in argv (``@file``, ``-optf file``)."""
    product_name: str
    members: tuple[str, ...] = ()
    """Where the products of the targets used are found, in the order of `Target.uses`."""


@dataclass(frozen=True, slots=True)
class Member:
    """A used target as it was when its product went into another."""

    target: str
    digest: Digest
    """Of its product."""
    recipe_digest: Digest


@dataclass(frozen=True, slots=True)
class Material:
    """One file of the closure as the compile read it."""

    path: str
    digest: Digest
    origin: Origin
    recipe_name: str
    """Its name in the recipe; empty for `Origin.SYSTEM`."""


Absent = tuple[tuple[str, tuple[str, ...]], ...]
"""Names that a step looked for and did not find: folder, names in it."""


@dataclass(frozen=True, slots=True)
class Common:
    """What the toolkit and the system contributed to a closure; many targets have the same."""

    digest: Digest
    """Of its canonical document, which is kept once for all of them."""
    materials: tuple[Material, ...]
    absent: Absent
    absent_names: int
    """How many names ``absent`` holds."""


@dataclass(frozen=True, slots=True)
class Closure:
    """Every file that a step read, and every name it looked for and did not find."""

    materials: tuple[Material, ...]
    """The project's own, those of other folders that flags name, and members."""
    absent: Absent
    common: Common
    unknown: tuple[str, ...] = ()
    """What could not be followed, in words: makes the target unproven."""

    @property
    def files(self) -> int:
        """How many files were read."""
        return len(self.materials) + len(self.common.materials)

    @property
    def absent_names(self) -> int:
        """How many names must stay absent."""
        return sum(len(names) for _folder, names in self.absent) + self.common.absent_names


@dataclass(frozen=True, slots=True)
class Product:
    """The output of an action."""

    path: str
    digest: Digest
    unstamped_digest: Digest
    """Digest of the bytes as compiled, with the placeholder in the stamp's place."""
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of one successful action."""

    target: str
    kind: Kind
    arch: str | None
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    generated: tuple[tuple[str, Digest], ...]
    closure: Closure
    members: tuple[Member, ...]
    tools: Tools
    toolkit_version: str
    action_digest: Digest
    recipe_digest: Digest
    product: Product
    seconds: float
    log: str


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


@dataclass(frozen=True, slots=True)
class Substitute(Admitted):
    """A variant's artifact in its target's place: ``target`` is the name that the workload asks for."""

    built_as: str
    """The variant, after which the stamp's symbol is named."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The gate's answer: a verdict for every target asked for, and artifacts only if all are fresh."""

    verdicts: tuple[Verdict, ...]
    artifacts: tuple[Admitted, ...]

    @property
    def admitted(self) -> bool:
        """Whether the command behind the gate may run."""
        return bool(self.verdicts) and all(v.state is State.FRESH for v in self.verdicts)
