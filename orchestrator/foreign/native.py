"""The two small C libraries that watch processes, compiled when they are first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from orchestrator.errors import Missing
from orchestrator.foreign.variables import KEPT
from orchestrator.workspace import write_atomically

_SOURCES = Path(__file__).parent
_FLAGS = ("-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


def library(name: str) -> Path:
    """The compiled ``name.c``, kept in the user's cache under the digest of its source and its own headers.

    Raises `Missing` without a C compiler.
    """
    source = b"".join(path.read_bytes() for path in sorted(_SOURCES.glob(f"{name}*.[ch]")))
    settings = "".join(f'"{variable}",\n' for variable in KEPT)
    digest = hashlib.sha256(source + settings.encode() + " ".join(_FLAGS).encode()).hexdigest()
    path = _cache() / digest[:32] / f"{name}.so"
    if not path.is_file():
        write_atomically(path, _compile(name, settings), mode=0o755)
    return path


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(folder) if folder.startswith("/") else Path.home() / ".cache") / "freshproof"


def _compile(name: str, settings: str) -> bytes:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise Missing("no C compiler to make the observer of builds with", remedy="install gcc")
    with tempfile.TemporaryDirectory(prefix="freshproof-") as folder:
        (Path(folder) / "settings.inc").write_text(settings)
        out = Path(folder) / f"{name}.so"
        command = [compiler, *_FLAGS, f"-I{folder}", str(_SOURCES / f"{name}.c"), "-o", str(out), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing("the observer of builds does not compile here:", details=done.stderr.strip())
        return out.read_bytes()
