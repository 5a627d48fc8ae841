"""Tells a program of the user's what came out of each round."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


class Notifier:
    """Runs the program without waiting for it."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """``command`` is the program with its first words; none means that nobody is told."""
        self._command, self._folder = tuple(command), folder
        self._started: list[subprocess.Popen[bytes]] = []

    def tell(self, text: str) -> str:
        """Run it with ``text`` as its last word. Why that cannot be done, or empty."""
        if not self._command:
            return ""
        self.running()
        try:
            started = subprocess.Popen(
                (*self._command, text), cwd=self._folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            return f"cannot run {self._command[0]}: {error.strerror}"
        self._started.append(started)
        return ""

    def running(self) -> set[int]:
        """The numbers of its processes that have not ended."""
        self._started = [one for one in self._started if one.poll() is None]
        return {one.pid for one in self._started}
