"""`groth16 info` on what is no file of its formats."""

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
