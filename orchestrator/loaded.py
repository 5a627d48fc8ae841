"""Is the code in this process the code that the gate admitted? Any program may ask, about itself.

Each answer is in the form of the worker protocol; what is wrong raises `Refused`, with both digests. About
another process asks `freshproof gate --pid`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from orchestrator.canonical import digest_bytes
from orchestrator.errors import Refused
from orchestrator.mapped_files import Stretch, stretches_of
from orchestrator.objects.stamp import DIGITS, SYMBOL_PREFIX, TEXT_PREFIX
from orchestrator.protocol import Loaded, Source
from orchestrator.targets import unit_of

if TYPE_CHECKING:
    from orchestrator.model import Admitted

STAMP_BYTES = len(TEXT_PREFIX) + DIGITS + 1
"""Size of a stamp's symbol: its text ends with NUL."""


class Claim(Protocol):
    """What is to be found in the process: a `model.Admitted`, or anything that says the same."""

    @property
    def target(self) -> str:
        """The target's name."""

    @property
    def path(self) -> str | Path:
        """Of its artifact."""

    @property
    def digest(self) -> str:
        """Of the artifact's bytes."""

    @property
    def stamp(self) -> str:
        """The recipe digest that the artifact carries."""


def admitted(*targets: str, start: Path | None = None) -> tuple[Admitted, ...]:
    """What the gate admits now, in the project around ``start`` (this folder), in the order of the names.

    Raises `Refused` with every finding, and `ConfigurationError` for a name that is no target.
    """
    from orchestrator.gate import admit  # it plans and asks tools, which most callers have behind them

    admission = admit(start or Path.cwd(), targets)
    if not admission.admitted:
        found = [f"{v.target} is {v.state}: {f.message}" for v in admission.verdicts for f in v.findings]
        raise Refused(found[0], details="\n".join(found[1:]), remedy=f"freshproof build {' '.join(targets)}")
    by_name = {artifact.target: artifact for artifact in admission.artifacts}
    return tuple(by_name[name] for name in targets) if targets else admission.artifacts


def check_library(claim: Claim, address: int | None = None) -> Loaded:
    """A shared library, loaded: the mapped file has the admitted digest, and its code in memory its bytes.

    The dynamic loader goes by names, and hands out what it loaded earlier under a name even if the file has
    been replaced since; so what counts is what is mapped. ``address`` of a function that will be called says
    which of several mappings is meant; without it, all of the file's must be of the admitted one.
    """
    remedy = f"freshproof build {claim.target}"
    path = Path(claim.path)
    try:
        with path.open("rb") as file:
            inode, data = Path(f"/proc/self/fd/{file.fileno()}").stat().st_ino, file.read()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}", remedy=remedy) from None
    code = _code(path, address, remedy)
    for one in code:
        if (one.path, one.inode, one.deleted) != (str(path.resolve()), inode, False):
            was = f"{one.path}{' (deleted)' if one.deleted else ''} (inode {one.inode})"
            raise Refused(f"{path} (inode {inode}) is not what this process runs: {was} is", remedy=remedy)
        on_disk = data[one.offset : one.offset + one.end - one.start]
        if ctypes.string_at(one.start, len(on_disk)) != on_disk:
            raise Refused(f"{path}: the code in memory differs from the file's", remedy=remedy)
    if (digest := digest_bytes(data)) != claim.digest:
        raise Refused(f"{path}: its digest is {digest}; {claim.digest} wanted", remedy=remedy)
    return Loaded(claim.target, digest, claim.stamp, "mapped-file")


def _code(path: Path, address: int | None, remedy: str) -> list[Stretch]:
    """The executable stretches that must be of the file: by address, or all that go by its name."""
    stretches = [one for one in stretches_of("self") or () if "x" in one.permissions]
    if address is None:
        found = [one for one in stretches if one.path == str(path.resolve())]
    else:
        here = [(s.path, s.inode) for s in stretches if s.start <= address < s.end]
        found = [one for one in stretches if (one.path, one.inode) in here]
    if not found:
        raise Refused(f"{path}: its code is in no mapping of this process", remedy=remedy)
    return found


def stamp_symbol(claim: Claim) -> str:
    """The name of the symbol that holds the stamp; a variant in its target's place has its own."""
    return SYMBOL_PREFIX + unit_of(getattr(claim, "built_as", "") or claim.target)


def check_module(claim: Claim, read_symbol: Callable[[str, int], bytes]) -> Loaded:
    """A GPU module, loaded: the stamp read back from the device is the admitted one.

    ``read_symbol(name, size)`` copies the first bytes of a device variable back; every CUDA binding can. Load
    the module from the bytes that were checked: a path may lead to others, and some bindings remember paths.
    """
    symbol = stamp_symbol(claim)
    wanted = TEXT_PREFIX + claim.stamp.removeprefix("sha256:").encode() + b"\0"
    found = read_symbol(symbol, STAMP_BYTES)
    if found != wanted:
        raise Refused(
            f"{claim.target}: the loaded module carries the stamp {found!r}, the manifest says {wanted!r}",
            remedy=f"freshproof build {claim.target}",
        )
    return Loaded(claim.target, claim.digest, claim.stamp, "module-readback")


def running_sources(root: Path, packages: Iterable[str]) -> tuple[Source, ...]:
    """The Python files that this process runs, by content: of some packages, and the script that it was
    started with. Paths are relative to ``root`` where they lie below it.

    The digest is that of the source text, which says nothing if Python ran an older ``.pyc`` instead. So a
    module with a ``.pyc`` is refused: start Python with ``PYTHONPYCACHEPREFIX`` at an empty folder and
    ``PYTHONDONTWRITEBYTECODE=1``, as `freshproof bench` does; then every module came from its source.
    """
    wanted = frozenset(packages)
    modules = dict(sys.modules)
    main = modules.pop("__main__", None)
    script = None if main is None or main.__spec__ is not None else getattr(main, "__file__", None)
    if main is not None and main.__spec__ is not None:  # of ``python -m NAME``
        modules[main.__spec__.name] = main
    ours = [(n, m) for n, m in sorted(modules.items()) if n.partition(".")[0] in wanted]
    paths = [_source_of(name, module) for name, module in ours if not _is_folder(module)]
    paths += [Path(script).resolve()] if script else []  # Python never runs a script from a .pyc
    return tuple(
        Source(str(p.relative_to(root) if p.is_relative_to(root) else p), digest_bytes(p.read_bytes()))
        for p in paths
    )


def _is_folder(module: ModuleType) -> bool:
    """A namespace package: folders without code of their own."""
    spec = module.__spec__
    return spec is not None and spec.origin is None and spec.submodule_search_locations is not None


def _source_of(name: str, module: ModuleType) -> Path:
    spec = module.__spec__
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise Refused(f"module {name} was not loaded from a .py file", remedy="run it from its sources")
    if spec.cached is not None and Path(spec.cached).exists():
        raise Refused(
            f"module {name} may run from {spec.cached}, not from its source",
            remedy="start it with PYTHONPYCACHEPREFIX at an empty folder and PYTHONDONTWRITEBYTECODE=1",
        )
    return Path(spec.origin).resolve()
