"""What a target reads whose last build failed: no record tells, so its include directives are followed.

This may name too much; that costs a look and no build. What it misses, the key to look at everything again
is for.
"""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.includes import follow_includes
from orchestrator.lookup import Directives, group_by_folder, read_directives
from orchestrator.model import Action
from orchestrator.regular_file import read_file
from orchestrator.watch.scope import Unbuilt


def follow_sources(root: Path, action: Action) -> Unbuilt:
    """The files that the sources of an action include, and the names at which others may appear."""

    def read(name: str) -> Directives | None:
        try:
            return read_directives(read_file(root / name))
        except OSError:
            return None

    followed = follow_includes(
        action.target.sources, action.argv, read, lambda name: os.path.isfile(root / name)
    )
    return Unbuilt(followed.files, group_by_folder(followed.absent))
