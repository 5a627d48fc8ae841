"""How the prover finds compiled code: only through the gate, and no other backend than the one asked for.

`groth16 worker` is handed what the gate admitted; every other command asks the gate itself, which plans
again and digests again. No path, variable or fallback leads around it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import ConfigurationError, Missing, Refused
from orchestrator.model import State
from orchestrator.protocol import ARTIFACTS_VARIABLE
from prover.artifact import Artifact
from prover.backends import PointGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.model import Admission
    from prover.backends import Backend
    from prover.params import Curve

    FindArtifact = Callable[[str], Artifact]

BACKENDS = ("host", "cuda", "reference")
_BUILD = "freshproof build"


def open_backend(
    name: str, curve: Curve, find_artifact: FindArtifact, gpu_memory: int | None = None, *, once: bool = False
) -> Backend:
    """The backend asked for, its code loaded. Raises `Missing` or `Refused`; never falls back.

    ``gpu_memory``: bytes of the GPU to use at most; `ConfigurationError` for a backend that uses none.
    ``once``: a key will serve one proof, so it is made ready for nothing more.
    """
    if gpu_memory is not None and name != "cuda":
        raise ConfigurationError(f"the {name} backend uses no GPU memory", remedy="leave --gpu-memory out")
    if name == "reference":
        from prover.backends.reference import ReferenceBackend

        return ReferenceBackend(curve)
    if name == "host":
        from prover.backends.host import HostBackend

        host: Backend = HostBackend(curve, find_artifact(f"host-{curve.name}"))
        return host
    if name == "cuda":
        from prover.backends.cuda import CudaBackend, open_gpu

        gpu = open_gpu()  # without a GPU, that is the news, and not what the gate says of the cubins
        cuda: Backend = CudaBackend(gpu, curve, find_artifact, gpu_memory, once=once)
        return cuda
    raise ConfigurationError(f"no backend {name!r}", remedy=f"choose one of {', '.join(BACKENDS)}")


def open_generator(name: str, curve: Curve, find_artifact: FindArtifact) -> PointGenerator:
    """As `open_backend`, for making keys. Raises `Missing` when this backend cannot make points."""
    backend = open_backend(name, curve, find_artifact)
    if not isinstance(backend, PointGenerator):
        raise Missing(f"the {name} backend cannot make keys", remedy="use --backend host or reference")
    return backend


def artifact_from_gate(target: str) -> Artifact:
    """The fresh artifact of this checkout. Raises `Refused` with every finding when it is not fresh."""
    return _admitted([target])[target]


def gated(name: str, curve: Curve) -> FindArtifact:
    """What a backend loads, by one question to the gate: each digests the whole toolchain.

    Raises as `artifact_from_gate`, and `Missing` when the backend is the GPU's and there is none.
    """
    targets: Sequence[str] = (f"host-{curve.name}",) if name == "host" else ()
    if name == "cuda":
        from prover.backends import cuda

        cuda.open_gpu()
        targets = cuda.targets(curve)
    artifacts = _admitted(targets)
    return lambda target: artifacts[target] if target in artifacts else artifact_from_gate(target)


def _admitted(targets: Sequence[str]) -> dict[str, Artifact]:
    if not targets:
        return {}
    from orchestrator.gate import admit

    root = checkout()
    admission = admit(root, targets)
    if not admission.admitted:
        first, *others = _findings(admission, targets)
        raise Refused(first, details="\n".join(others), remedy=_remedy(admission, targets))
    return {
        a.target: Artifact(a.target, root / a.path, a.digest, a.stamp, a.arch)
        for a in admission.artifacts
        if a.target in targets
    }


def artifact_from_orchestrator(target: str) -> Artifact:
    """The artifact that the orchestrator admitted for this worker. Raises `Refused` when it admitted none."""
    try:
        admitted = json.loads(os.environ[ARTIFACTS_VARIABLE])
        fields = admitted[target]
        path, built_as = Path(fields["path"]).absolute(), fields.get("built_as", "")
        return Artifact(target, path, fields["digest"], fields["stamp"], fields["arch"], built_as)
    except (KeyError, ValueError, TypeError):
        raise Refused(
            f"{ARTIFACTS_VARIABLE} names no admitted artifact {target}",
            remedy=f"start the worker with `freshproof bench`, and name {target} in the workload's `uses`",
        ) from None


def checkout() -> Path:
    """The root of the checkout that this code belongs to, else of the one around the working folder.

    Raises `Missing` when there is neither.
    """
    for folder in (Path(__file__).resolve().parents[1], *(Path.cwd() / "x").parents):
        if (folder / "manifests" / "targets.toml").is_file():
            return folder
    raise Missing(
        "no manifests/targets.toml in or above this folder, so there is no fresh artifact to load",
        remedy="run groth16 inside a checkout of Freshproof, after `freshproof build`",
    )


def _remedy(admission: Admission, targets: Sequence[str]) -> str:
    """What the findings ask for, each once; a build names its targets."""
    refused = [v for v in admission.verdicts if v.state is not State.FRESH]
    asked = dict.fromkeys(f.remedy for v in refused for f in v.findings) or {_BUILD: None}
    build = f"{_BUILD} {' '.join([v.target for v in refused] or targets)}"
    return ", then ".join(build if remedy == _BUILD else remedy for remedy in asked)


def _findings(admission: Admission, targets: Sequence[str]) -> list[str]:
    lines = [
        f"{verdict.target} is {verdict.state}: {finding.message}"
        for verdict in admission.verdicts
        if verdict.state is not State.FRESH
        for finding in verdict.findings
    ]
    return lines or [f"the gate admitted nothing for {', '.join(targets)}"]
