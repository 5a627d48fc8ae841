"""How a workload's process is started: the command found, the environment made safe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import Missing
from orchestrator.model import Workload
from orchestrator.protocol import ARTIFACTS_VARIABLE, NONCE_VARIABLE

_HYGIENE = {
    "CUDA_MODULE_LOADING": "EAGER",  # no kernel is first loaded inside a timed region
    "CUDA_CACHE_DISABLE": "1",  # no code from an earlier run's compile cache
    "CUDA_DISABLE_PTX_JIT": "1",  # machine code from the artifact, or an error
    "PYTHONDONTWRITEBYTECODE": "1",
}


def resolve_command(workload: Workload) -> tuple[str, ...]:
    """The workload's command with its program found: ``python`` is this interpreter, other names are looked
    for beside it and then on the PATH. Raises `Missing`.
    """
    name, *arguments = workload.command
    if name == "python":
        return (sys.executable, *arguments)
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    found = beside or shutil.which(name)
    if found is None:
        raise Missing(
            f"workload {workload.name} runs {name}, which is neither beside {sys.executable} nor on the PATH",
            remedy="install what provides it into this environment",
        )
    return (found, *arguments)


def launch_variables(
    nonce: str, artifacts: str, no_bytecode: Path, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a workload's process: the caller's, made safe, with the run's identity.

    ``no_bytecode`` is an empty folder: with it as the cache prefix no older ``.pyc`` can win over a source.
    """
    return {
        **(os.environ if inherited is None else inherited),
        **_HYGIENE,
        "PYTHONPYCACHEPREFIX": str(no_bytecode),
        NONCE_VARIABLE: nonce,
        ARTIFACTS_VARIABLE: artifacts,
    }
