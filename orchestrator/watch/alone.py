"""Only one watch is at work in a tree."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from orchestrator.errors import Undecided
from orchestrator.workspace import Workspace, explained


@contextlib.contextmanager
def only_watch(workspace: Workspace) -> Iterator[None]:
    """Hold the right to watch this tree. Raises `Undecided` if another watch has it."""
    path = workspace.build / "watch.lock"
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read(20).strip()
            raise Undecided(
                f"another watch is at work in {workspace.root}" + (f" (process {who})" if who else ""),
                remedy="use that one, or end it",
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
