"""Removes what builds left behind: says what, fails for a name that is not there, checks that it is gone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchestrator.errors import AnswerIsNo, Missing
from orchestrator.recorded import read_manifest
from orchestrator.workspace import Workspace, exclusive

_OURS: Mapping[str, Callable[[Path], bool]] = {
    "artifacts": lambda path: bool(re.fullmatch(r"[0-9a-f]{64}", path.name)),
    "bin": lambda path: path.is_symlink() and str(path.readlink()).startswith("../artifacts/"),
    "manifests": lambda path: path.suffix == ".json" or path.name == "shared",
    "logs": lambda path: path.suffix == ".log",
    "work": lambda _path: True,
    "cache": lambda path: path.suffix == ".json",
}
"""Folders below build, and what in them is ours: the project may keep things of its own in some of them."""
_CUT_OFF = re.compile(r"\..+\.[0-9]+-[0-9]+")
"""A file whose writer was killed before it could give it its name."""
_OF_ALL = ("toolchain", "records")


def clean_old(workspace: Workspace, note: Callable[[str], None]) -> list[str]:
    """Remove artifacts and shared records that no manifest names; returns what was removed.

    Raises `AnswerIsNo` if a manifest cannot be read, since what it names is not known then.
    """
    if not workspace.build.is_dir():
        return []
    with exclusive(workspace, note):
        kept: set[Path] = set()
        for path in (workspace.build / "manifests").glob("*.json"):
            manifest, problem = read_manifest(workspace, path.stem)
            if manifest is None:
                raise AnswerIsNo(problem, remedy="build that target, or clean it by name, first")
            kept.add((workspace.root / manifest.product.path).parent)
            kept |= {workspace.shared(d) for d in (manifest.closure.common.digest, manifest.tools.digest)}
        there = [p for p in workspace.build.glob("artifacts/*") if _OURS["artifacts"](p)]
        there += workspace.build.glob("manifests/shared/*")
        return _remove(workspace, sorted(set(there) - kept))


def clean(
    workspace: Workspace, targets: Sequence[str], *, everything: bool, note: Callable[[str], None]
) -> list[str]:
    """Remove the artifacts, records and logs of ``targets``, or of all; returns what was removed.

    ``everything`` takes the fetched toolkit and the run records as well. Raises `AnswerIsNo` if a target
    named has nothing here, and `Missing` if something could not be removed.
    """
    if not workspace.build.is_dir():
        if targets:
            raise AnswerIsNo(f"nothing was ever built here, so there is no {targets[0]}")
        return []
    with exclusive(workspace, note):
        if targets:
            paths = [path for target in targets for path in _of_target(workspace, target)]
        else:
            paths = [path for name in _OURS for path in _ours_in(workspace.build / name)]
            paths += [workspace.build / name for name in _OF_ALL if everything]
        return _remove(workspace, [p for p in paths if os.path.lexists(p)])


def _ours_in(folder: Path) -> list[Path]:
    """The folder, if all that is in it is ours, else what is."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    there = sorted(folder.iterdir())
    ours = [path for path in there if _OURS[folder.name](path) or _CUT_OFF.fullmatch(path.name)]
    return [folder] if len(ours) == len(there) else ours


def _of_target(workspace: Workspace, target: str) -> list[Path]:
    manifest, problem = read_manifest(workspace, target)
    if manifest is None and not workspace.manifest(target).exists():
        raise AnswerIsNo(f"nothing to clean for `{target}`: {problem}", remedy="`freshproof clean` takes all")
    paths = [workspace.manifest(target), workspace.log(target)]
    if manifest is not None:
        artifact = workspace.root / manifest.product.path
        paths += [artifact.parent, workspace.link(artifact.name)]
    return paths


def _remove(workspace: Workspace, paths: Sequence[Path]) -> list[str]:
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        except OSError as error:
            raise Missing(
                f"cannot remove {path}: {error.strerror}", remedy="see to its permissions"
            ) from None
    left = [path for path in paths if os.path.lexists(path)]
    if left:
        raise Missing(f"{left[0]} came back while it was removed", remedy="end what writes there, then clean")
    return [workspace.relative(path) for path in paths]
