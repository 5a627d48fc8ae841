"""What a target reads whose last build failed: no record tells, so its include directives are followed.

This may name too much; that costs a look and no build. What it misses, the key to look at everything again
is for.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.lookup import group_by_folder, read_directives
from orchestrator.model import Action
from orchestrator.watch.scope import Unbuilt

_MOST_FILES = 5000
_FOLDER_FLAGS = ("-I", "-isystem", "--include-path", "-include-path")


def follow_includes(root: Path, action: Action) -> Unbuilt:
    """The files that the sources of an action include, and the names at which others may appear."""
    folders = tuple(_include_folders(action.argv))
    found: dict[str, None] = dict.fromkeys(action.target.sources)
    absent: set[str] = set()
    left = deque(action.target.sources)
    while left and len(found) < _MOST_FILES:
        path = left.popleft()
        try:
            directives = read_directives((root / path).read_bytes())
        except OSError:
            continue
        near = (os.path.dirname(path), *folders)
        for name in sorted(directives.quoted | directives.bracketed | directives.nexts):
            for candidate in (os.path.normpath(os.path.join(folder, name)) for folder in near):
                if not os.path.isfile(root / candidate):
                    absent.add(candidate)
                elif candidate not in found:
                    found[candidate] = None
                    left.append(candidate)
    return Unbuilt(tuple(found), group_by_folder(absent))


def _include_folders(argv: Sequence[str]) -> Iterator[str]:
    for number, word in enumerate(argv):
        for flag in _FOLDER_FLAGS:
            if word == flag and number + 1 < len(argv):
                yield argv[number + 1]
            elif word.startswith(flag) and word != flag:
                yield word[len(flag) :].lstrip("=")
