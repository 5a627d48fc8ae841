"""What only a benchmark asks: does an artifact hold machine code for the GPU that is here?

From PTX the driver would compile something at load time that no manifest describes, in time that no sample
should hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import ConfigurationError
from orchestrator.foreign.architectures import observe_code_for
from orchestrator.freshness import combine
from orchestrator.model import Admission, Admitted, Evidence, Kind, Link, Observation, State
from orchestrator.object_files import open_object
from orchestrator.objects.contents import Form, walk
from orchestrator.objects.cubin import read_cubin

_LOADED = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX, Kind.SHARED_LIBRARY, Kind.EXECUTABLE})


def with_machine_code(admission: Admission, gpus: Sequence[str] | str) -> Admission:
    """The same admission if all device code in it is machine code that fits; else one that refuses.

    ``gpus``: the architectures that are there, or why there is none; then any machine code will do.
    """
    found = {artifact.target: _observe(artifact, gpus) for artifact in admission.artifacts}
    verdicts = tuple(
        combine(verdict, Evidence(verdict.target, frozenset({Link.CONTENTS}), (observation,)))
        if (observation := found.get(verdict.target)) is not None
        else verdict
        for verdict in admission.verdicts
    )
    fresh = all(verdict.state is State.FRESH for verdict in verdicts)
    return Admission(verdicts, admission.artifacts if fresh else ())


def _observe(artifact: Admitted, gpus: Sequence[str] | str) -> Observation | None:
    """`None` for what holds no device code, or is linked before it is loaded."""
    if artifact.kind not in _LOADED:
        return None
    name = artifact.target
    try:
        archs = _architectures(Path(artifact.path))
    except ConfigurationError as fault:
        return Observation(Link.CONTENTS, "object-malformed", name, "machine code", None, fault.what)
    machine = [arch for arch in archs if not arch.startswith("compute_")]
    if not archs:
        return None
    if not machine:
        note = f"{name}: holds only PTX ({', '.join(archs)}): the driver would compile it when it is loaded"
        remedy = 'time machine code: kind = "cubin", or a -gencode with code=sm_NN'
        return Observation(Link.CONTENTS, "ptx-only", name, "machine code", "only PTX", note, remedy)
    if isinstance(gpus, str):
        return Observation(Link.CONTENTS, "machine-code", name, "machine code", "machine code")
    return observe_code_for(gpus[0], archs, name)


def _architectures(path: Path) -> list[str]:
    """``sm_NN`` of code that runs as it is, ``compute_NN`` of PTX."""
    found: dict[str, None] = {}
    for piece in walk(open_object(path)):
        if piece.form is Form.CUBIN and not piece.sealed:
            cubin = read_cubin(piece.data, piece.arch)
            if not cubin.relocatable and cubin.functions:
                found[cubin.arch] = None
        elif piece.form is Form.PTX and piece.arch:
            found[piece.arch] = None
    return list(found)
