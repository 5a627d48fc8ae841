"""Small projects on disk, and the tool run in them as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def lay_out(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a project, by their names below ``root``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def build_project(root: Path, files: Mapping[str, str]) -> Path:
    """The same, and all of its targets built."""
    done = freshproof(lay_out(root, files), "build")
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def freshproof(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def edit(path: Path, old: str, new: str) -> None:
    """Change a file's content and nothing else: its time stamps stay, and where the texts allow its size."""
    before = path.stat()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
