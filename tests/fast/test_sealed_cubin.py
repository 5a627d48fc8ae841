"""Which bytes may go to a GPU's driver."""

from __future__ import annotations

import hashlib
import struct

import pytest

from orchestrator.errors import Missing, Refused
from prover.artifact import Artifact
from prover.backends.sealed import sealed_cubin

CUBIN = b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", 190) + bytes(60)


def artifact(path, data=CUBIN, arch="sm_90"):
    return Artifact("kernels", path, "sha256:" + hashlib.sha256(data).hexdigest(), "0" * 64, arch)


@pytest.fixture
def cubin(tmp_path):
    path = tmp_path / "kernels.cubin"
    path.write_bytes(CUBIN)
    return path


def test_the_admitted_bytes_come_back(cubin):
    assert sealed_cubin(artifact(cubin), "sm_90", "H200") == CUBIN


def test_other_bytes_at_the_path_are_refused(cubin):
    admitted = artifact(cubin)
    cubin.write_bytes(CUBIN[:-1] + b"\1")
    with pytest.raises(Refused, match="the gate admitted"):
        sealed_cubin(admitted, "sm_90", "H200")


def test_a_missing_file_names_the_build(tmp_path):
    with pytest.raises(Missing) as caught:
        sealed_cubin(artifact(tmp_path / "gone.cubin"), "sm_90", "H200")
    assert "freshproof build kernels" in caught.value.remedy


@pytest.mark.parametrize("arch", ["sm_80", None])
def test_code_for_another_gpu_is_missing(cubin, arch):
    with pytest.raises(Missing) as caught:
        sealed_cubin(artifact(cubin, arch=arch), "sm_90", "H200")
    assert "sm_90" in caught.value.what and "None" not in caught.value.what
    assert "freshproof build kernels" in caught.value.remedy


@pytest.mark.parametrize("arch", ["sm_90", "sm_80", None])
@pytest.mark.parametrize(
    "data",
    [
        b"//\n.version 9.0\n.target sm_90\n" + bytes(64),
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64) + bytes(64),
        b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", 62) + bytes(60),
        CUBIN[:40],
        b"",
    ],
    ids=["ptx", "fatbin", "x86-64", "cut", "empty"],
)
def test_what_is_no_machine_code_of_a_gpu_is_refused(tmp_path, data, arch):
    """Whatever its record says of architectures: that of a fatbin names none."""
    path = tmp_path / "kernels.cubin"
    path.write_bytes(data)
    with pytest.raises(Refused, match="no cubin") as caught:
        sealed_cubin(artifact(path, data, arch), "sm_90", "H200")
    assert 'kind = "cubin"' in caught.value.remedy
