"""Removes what builds left behind: says what, fails for a name that is not there, checks that it is gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.errors import AnswerIsNo, Missing
from orchestrator.recorded import read_manifest
from orchestrator.workspace import Workspace, exclusive

_OF_A_BUILD = ("artifacts", "bin", "manifests", "logs", "work", "cache")


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
        there = [*workspace.build.glob("artifacts/*"), *workspace.build.glob("manifests/shared/*")]
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
            names = sorted(p.name for p in workspace.build.iterdir()) if everything else _OF_A_BUILD
            paths = [workspace.build / name for name in names if name != "lock"]
        return _remove(workspace, [p for p in paths if os.path.lexists(p)])


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
