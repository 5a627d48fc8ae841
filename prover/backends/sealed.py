"""A cubin's bytes, read once and checked before a driver sees them. No GPU is needed here."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from orchestrator.errors import Missing, Refused

if TYPE_CHECKING:
    from prover.artifact import Artifact

EM_CUDA = 190
"""e_machine of an ELF file that holds machine code for NVIDIA GPUs."""


def sealed_cubin(artifact: Artifact, arch: str, gpu_name: str) -> bytes:
    """The bytes to load on a GPU of architecture ``arch`` (``sm_NN``).

    Raises `Missing` (no file, or no code for this GPU) and `Refused` (other bytes than admitted, or no
    cubin: out of a fatbin the driver chooses, and from PTX it compiles, what no manifest describes). That it
    is no cubin comes first: a fatbin may hold code for this GPU, and its record names no architecture.
    """
    build = f"freshproof build {artifact.target}"
    try:
        data = artifact.path.read_bytes()
    except OSError as error:
        raise Missing(f"{artifact.path}: {error.strerror}", remedy=build) from None
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if digest != artifact.digest:
        raise Refused(
            f"{artifact.path}: its bytes are {digest}, the gate admitted {artifact.digest}",
            remedy=f"freshproof build --explain {artifact.target}",
        )
    if not _is_machine_code(data):
        raise Refused(
            f"{artifact.path} is no cubin: the driver would choose or compile code at load time, and nothing "
            "describes what it would run",
            remedy=f'give {artifact.target} kind = "cubin", then {build}',
        )
    if artifact.arch != arch:
        held = artifact.arch or "an architecture that its record does not name"
        raise Missing(
            f"{artifact.target} holds code for {held}, and this GPU ({gpu_name}) is {arch}",
            remedy=f'set arch = "{arch}" or "auto" in manifests/targets.toml, then {build}',
        )
    return data


def _is_machine_code(data: bytes) -> bool:
    return len(data) >= 64 and data[:5] == b"\x7fELF\x02" and struct.unpack_from("<H", data, 18)[0] == EM_CUDA
