"""A real proof, timed under the gate as a user does it."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.records import read_record

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.toolchain


def test_a_proof_is_timed_checked_and_recorded_with_all_that_made_it(curve, host_artifact):
    workload = f"pow5-{curve.name}"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "orchestrator",
            "bench",
            workload,
            "--samples",
            "2",
            "--warmups",
            "1",
            "--json",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (result,) = json.loads(run.stdout)["runs"]
    assert (result["state"], result["level"], result["samples"]) == ("fresh", "loaded-proven", 2)
    (checker,) = result["checked_by"]
    assert checker.startswith(("py_ecc ", "py-arkworks-bls12381 "))
    assert result["work"]["constraints"] == 900
    assert result["artifacts"][0]["digest"] == host_artifact(curve).digest
    phases = {phase["name"]: phase["median"] for phase in result["phases"]}
    assert phases["total"] > 0 and "unaccounted" in phases and "msm a_query" in phases

    lines = read_record(ROOT / result["record"])
    (drivers,) = [line for line in lines if line["kind"] == "drivers"]
    sources = {Path(source["path"]).name: source["digest"] for source in drivers["sources"]}
    text = (ROOT / "prover" / "groth16.py").read_bytes()
    assert sources["groth16.py"] == f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert drivers["versions"]["numpy"]
    assert all(line["check"]["passed"] for line in lines if line["kind"] == "sample")
