"""Which Python sources this process runs, by content."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from orchestrator.errors import Refused
from orchestrator.loaded import running_sources

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKAGES = ("prover", "orchestrator")


def imported_sources(root: Path, others: Iterable[str] = ()) -> list[dict[str, str]]:
    """Path (relative to ``root`` where it lies inside) and digest of every imported file of this project.

    ``others``: packages beside its own.
    Raises what `orchestrator.loaded.running_sources` does.
    """
    return [asdict(source) for source in running_sources(root, (*PACKAGES, *others))]


def require_same_sources(before: list[dict[str, str]], now: list[dict[str, str]]) -> None:
    """Raise `Refused`, with file and both digests, if imported sources changed or more were imported."""
    earlier = {source["path"]: source["digest"] for source in before}
    for source in now:
        recorded = earlier.get(source["path"], "not imported")
        if recorded != source["digest"]:
            raise Refused(
                f"{source['path']} changed during the run: {recorded}, now {source['digest']}",
                remedy="leave the workload's sources alone while a benchmark runs, and run it again",
            )


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that this process may use."""
    found = {"python": platform.python_version()}
    for package in ("numpy", "py-ecc", "py-arkworks-bls12381", "cupy-cuda13x", "cupy-cuda12x"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
