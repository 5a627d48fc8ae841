"""Source files that no target reads: an edit there changes nothing, which its author should know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.model import Manifest

_SOURCES = (".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl")


def unused_sources(root: Path, source_roots: Iterable[str], manifests: Mapping[str, Manifest]) -> list[str]:
    """Source files below ``source_roots`` in the closure of none of ``manifests``, relative to ``root``."""
    read = {m.path for manifest in manifests.values() for m in manifest.closure.materials}
    read |= {os.path.normpath(path) for path in read if "." in path.split("/")[:-1] or ".." in path}
    found = set()
    for source_root in source_roots:
        for folder, subfolders, names in os.walk(root / source_root):
            subfolders[:] = [s for s in subfolders if not s.startswith(".") and s != "build"]
            inside = os.path.relpath(folder, root)
            for name in names:
                if name.endswith(_SOURCES):
                    found.add(name if inside == "." else f"{inside}/{name}")
    return sorted(found - read)
