"""Asks a tool about itself: what it says, on both outputs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from orchestrator.errors import BuildFailed


def ask(command: Sequence[str], environment: Mapping[str, str], folder: str = os.sep) -> str:
    """Run ``command`` with this environment alone. Raises `BuildFailed` if it cannot, or gives no answer."""
    try:
        done = subprocess.run(
            command, env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=120, check=False,
        )  # fmt: skip
    except OSError as error:
        raise BuildFailed(f"cannot run {command[0]}: {error.strerror}", remedy="see to that file") from None
    except subprocess.TimeoutExpired:
        raise BuildFailed(
            f"{command[0]} did not answer within two minutes", remedy="try it by hand"
        ) from None
    return done.stdout.decode("utf-8", "surrogateescape")
