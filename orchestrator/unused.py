"""Source files that no target reads: an edit there changes nothing, which its author should know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.model import Manifest

_SOURCES = frozenset({".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl"})


def unused_sources(root: Path, source_roots: Iterable[str], manifests: Mapping[str, Manifest]) -> list[str]:
    """Source files below ``source_roots`` in the closure of none of ``manifests``, relative to ``root``."""
    read = {os.path.normpath(m.path) for manifest in manifests.values() for m in manifest.closure.materials}
    found = set()
    for source_root in source_roots:
        for folder, subfolders, names in os.walk(root / source_root):
            subfolders[:] = [s for s in subfolders if not s.startswith(".") and s != "build"]
            for name in names:
                relative = os.path.relpath(f"{folder}/{name}", root)
                if Path(name).suffix in _SOURCES and relative not in read:
                    found.add(relative)
    return sorted(found)
