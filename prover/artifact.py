"""The compiled code that a backend runs: what the gate admitted, and what was found in the process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the gate let through, and what it must turn out to be when loaded."""

    target: str
    path: Path
    digest: str
    """``sha256:<hex>`` of the file's bytes."""
    stamp: str
    """The recipe digest that the file carries inside."""
    arch: str | None
    """``sm_NN`` of a cubin; ``None`` for host code."""
    built_as: str = ""
    """The variant that stands in the target's place, if one does: its stamp's symbol is named after it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An artifact as found inside this process after loading: the proof that it is the admitted one."""

    target: str
    digest: str
    stamp: str
    how: Literal["mapped-file", "module-readback"]

    def as_json(self) -> dict[str, object]:
        """The form of the worker protocol."""
        return asdict(self)
