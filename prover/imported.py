"""Which Python sources this process runs, by content."""

from __future__ import annotations

import hashlib
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Refused

if TYPE_CHECKING:
    from types import ModuleType

PACKAGES = ("prover", "orchestrator")


def imported_sources(root: Path) -> list[dict[str, str]]:
    """Path (relative to ``root`` where it lies inside) and digest of every imported file of this project.

    The digest is that of the source text, which says nothing if Python ran an older ``.pyc`` instead. So a
    module with a ``.pyc`` is refused: the orchestrator starts workers with an empty folder as cache prefix
    (PYTHONPYCACHEPREFIX) and PYTHONDONTWRITEBYTECODE, and then every module came from its source.
    """
    sources = []
    for name, module in sorted(_named_modules().items()):
        if name.partition(".")[0] in PACKAGES:
            path = _source_of(name, module)
            digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
            shown = path.relative_to(root) if path.is_relative_to(root) else path
            sources.append({"path": str(shown), "digest": digest})
    return sources


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


def _named_modules() -> dict[str, ModuleType]:
    """Imported modules by name; that of ``python -m prover`` is registered as ``__main__``."""
    modules = dict(sys.modules)
    main = modules.pop("__main__", None)
    if main is not None and main.__spec__ is not None:
        modules[main.__spec__.name] = main
    return modules


def _source_of(name: str, module: ModuleType) -> Path:
    spec = module.__spec__
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise Refused(f"module {name} was not loaded from a .py file", remedy="use a checkout of Freshproof")
    if spec.cached is not None and Path(spec.cached).exists():
        raise Refused(
            f"module {name} may run from {spec.cached}, not from its source",
            remedy="start the worker with `freshproof bench`, which gives Python an empty cache folder",
        )
    return Path(spec.origin).resolve()


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that this process may use."""
    found = {"python": platform.python_version()}
    for package in ("numpy", "py-ecc", "py-arkworks-bls12381", "cupy-cuda13x", "cupy-cuda12x"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
