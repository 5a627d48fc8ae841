"""Which of the products that cargo's hashes keep apart stands under the name that people run."""

from __future__ import annotations

import filecmp
import os

from orchestrator.foreign.made import Build
from orchestrator.foreign.provenance import ends, second_names


def standing_ends(build: Build) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Products that count, and older ones beside them, as they lie there now: after a change back, cargo puts
    an earlier product in its place again.
    """
    return ends(build.made, _stands)


def _stands(path: str) -> bool:
    for name in second_names(path):
        try:
            if os.path.samefile(path, name) or filecmp.cmp(path, name, shallow=False):
                return True
        except OSError:
            continue
    return False
