"""`groth16 info` on what is no file of its formats, or a damaged one."""

import os
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError
from prover.describe import describe


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "the file is empty"), (b"PK\x03\x04", "byte 0: starts with")]
)
def test_what_is_no_proof_file_is_said(tmp_path, data, says):
    path = tmp_path / "x.zkey"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=says):
        describe(path)


@pytest.mark.timeout(10)
def test_what_is_no_file_is_refused_at_once(tmp_path):
    """A pipe that nobody writes to keeps whoever opens it waiting."""
    os.mkfifo(tmp_path / "pipe.zkey")
    for path in (tmp_path / "pipe.zkey", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="is not a regular file"):
            describe(path)


def test_a_key_with_a_damaged_point_is_not_described(tmp_path):
    key = bytearray((Path(__file__).parents[1] / "data" / "bn128" / "mul.zkey").read_bytes())
    # beta_g1 lies behind the file's header, section 1, and of section 2 the primes, the counts and alpha_g1
    at = 12 + 16 + 12 + 4 + 32 + 4 + 32 + 12 + 64
    key[at] ^= 1
    (tmp_path / "k.zkey").write_bytes(key)
    with pytest.raises(ConfigurationError, match=f"byte {at}: section 2 .header.: beta_g1 is not on the"):
        describe(tmp_path / "k.zkey")
