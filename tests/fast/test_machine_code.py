"""T41: what a benchmark refuses though the gate admits it: PTX alone, and code for another GPU."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from orchestrator.machine_code import with_machine_code
from orchestrator.model import Admission, Admitted, Kind, Link, State, Verdict

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
NO_GPU = "no NVIDIA driver is installed"


def admission(path: Path, kind: Kind) -> Admission:
    admitted = Admitted("k", kind, str(path), "sha256:d", "sha256:s", "sha256:m", "sm_90")
    return Admission((Verdict("k", State.FRESH, (), ((Link.INPUTS, 1),)),), (admitted,))


def only_ptx(folder: Path) -> Path:
    """A fat binary whose entry of machine code was taken out."""
    data = (OBJECTS / "none.fatbin").read_bytes()
    first = int.from_bytes(data[24:32], "little") + int.from_bytes(data[20:24], "little")
    rest = data[16 + first :]
    path = folder / "only.fatbin"
    path.write_bytes(data[:8] + struct.pack("<Q", len(rest)) + rest)
    return path


@pytest.mark.parametrize("gpus", [NO_GPU, ["sm_90"]])
def test_machine_code_that_fits_is_admitted(gpus: list[str] | str) -> None:
    for name, kind in (("sm_90.cubin", Kind.CUBIN), ("none.fatbin", Kind.FATBIN)):
        given = with_machine_code(admission(OBJECTS / name, kind), gpus)
        assert given.admitted
        assert given.artifacts
    assert with_machine_code(admission(OBJECTS / "host.so", Kind.SHARED_LIBRARY), gpus).admitted


@pytest.mark.parametrize("gpus", [NO_GPU, ["sm_90"]])
def test_ptx_alone_is_refused_with_the_reason(tmp_path: Path, gpus: list[str] | str) -> None:
    for path, kind in ((OBJECTS / "sample.ptx", Kind.PTX), (only_ptx(tmp_path), Kind.FATBIN)):
        given = with_machine_code(admission(path, kind), gpus)
        (finding,) = given.verdicts[0].findings
        assert (given.admitted, given.artifacts, finding.code) == (False, (), "ptx-only")
        assert "only PTX (compute_90): the driver would compile it when it is loaded" in finding.message


def test_code_for_another_gpu_is_refused() -> None:
    given = with_machine_code(admission(OBJECTS / "sm_75.cubin", Kind.CUBIN), ["sm_90"])
    (finding,) = given.verdicts[0].findings
    assert (given.admitted, finding.recorded, finding.observed) == (False, "sm_90", "sm_75")
    assert with_machine_code(admission(OBJECTS / "sm_75.cubin", Kind.CUBIN), NO_GPU).admitted


def test_a_damaged_artifact_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.cubin"
    cut.write_bytes((OBJECTS / "sm_90.cubin").read_bytes()[:-8])
    assert not with_machine_code(admission(cut, Kind.CUBIN), NO_GPU).admitted
