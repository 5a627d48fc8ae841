"""The host backend, built and admitted here, against the oracle: equal bytes, not only valid proofs."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from prover import groth16
from prover.backends import PointGenerator
from prover.backends.reference import ReferenceBackend
from prover.check import Checker
from prover.formats.snarkjs import proof_json
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey
from prover.loading import artifact_from_gate, open_backend
from prover.params import CURVES, Curve
from prover.scalars import decode_scalars, encode_scalars
from prover.setup import seeded_trapdoor, write_test_key
from prover.synth import Shape, constraints_filling, synthesize

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
R, S = 0x1234567890ABCDEF, 3**150
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


@cache
def built(target: str) -> None:
    subprocess.run([sys.executable, "-m", "orchestrator", "build", target], cwd=ROOT, check=True)


def host(curve: Curve):
    built(f"host-{curve.name}")
    return open_backend("host", curve, artifact_from_gate)


@both_curves
@pytest.mark.parametrize("circuit", ["mul", "pow5"])
def test_proof_has_the_bytes_of_the_oracle(curve: Curve, circuit: str) -> None:
    folder = ROOT / "tests" / "data" / curve.file_name
    key, words = read_zkey(folder / f"{circuit}.zkey"), read_wtns(folder / f"{circuit}.wtns").words
    texts = []
    for backend in (ReferenceBackend(curve), host(curve)):
        backend.load(key)
        assert backend.check_points() is None
        texts.append(proof_json(curve, groth16.prove(key, words, R % curve.r, S % curve.r, backend)))
        backend.close()
    assert texts[0] == texts[1]


@both_curves
def test_loaded_code_is_what_the_gate_admitted(curve: Curve) -> None:
    backend = host(curve)
    artifact = artifact_from_gate(f"host-{curve.name}")
    (loaded,) = backend.loaded
    assert (loaded.target, loaded.digest, loaded.stamp) == (artifact.target, artifact.digest, artifact.stamp)
    assert loaded.how == "mapped-file" and str(artifact.path.resolve()) in Path("/proc/self/maps").read_text()
    assert backend.device is None


@both_curves
def test_points_made_are_those_of_the_oracle(curve: Curve) -> None:
    backend, oracle = host(curve), ReferenceBackend(curve)
    assert isinstance(backend, PointGenerator)
    edge = [0, 1, 2, curve.r - 1, curve.r - 2, 1 << 128, 0xFFFF, 0x10000, 12345**15 % curve.r]
    scalars = encode_scalars(edge)
    assert np.array_equal(backend.multiples_g1(scalars), oracle.multiples_g1(scalars))
    assert np.array_equal(backend.multiples_g2(scalars), oracle.multiples_g2(scalars))
    assert backend.multiples_g1(scalars[:0]).shape == (0, curve.g1_bytes)


@both_curves
@pytest.mark.parametrize(("n", "binary"), [(1, 0.0), (40, 1.0), (300, 0.4), (3000, 0.0)])
def test_circuits_made_fast_are_those_made_in_python(curve: Curve, n: int, binary: float) -> None:
    shape = Shape(curve, n, binary)
    _, slowly = synthesize(shape)
    _, fast = synthesize(shape, host(curve))
    assert np.array_equal(slowly, fast)


@both_curves
def test_keys_made_are_those_of_the_oracle(curve: Curve, tmp_path: Path) -> None:
    system, _ = synthesize(Shape(curve, 13, 0.5))
    for name, generator in (("host", host(curve)), ("oracle", ReferenceBackend(curve))):
        write_test_key(tmp_path / name, system, seeded_trapdoor(curve, "same"), generator)
    assert (tmp_path / "host").read_bytes() == (tmp_path / "oracle").read_bytes()


@both_curves
@pytest.mark.parametrize("binary", [0.0, 0.9])
def test_larger_circuit_is_proven(curve: Curve, binary: float, tmp_path: Path) -> None:
    backend = host(curve)
    system, words = synthesize(Shape(curve, constraints_filling(12), binary))
    write_test_key(tmp_path / "k", system, seeded_trapdoor(curve, "large"), backend)
    key = read_zkey(tmp_path / "k")
    backend.load(key)
    assert backend.check_points() is None
    proof = groth16.prove(key, words, *groth16.blinders(curve), backend)
    check = Checker(key.verification_key(), source="k").check(proof, decode_scalars(words[1:3]))
    assert check.valid, check.reason


@both_curves
@pytest.mark.parametrize("query", ["a_query", "b_g1_query", "b_g2_query", "l_query", "h_query"])
def test_point_off_its_curve_is_found(curve: Curve, query: str, tmp_path: Path) -> None:
    source = ROOT / "tests" / "data" / curve.file_name / "pow5.zkey"
    data = bytearray(source.read_bytes())
    key = read_zkey(source)
    points = getattr(key, query)
    data[key.query_section(query).offset + (len(points) - 2) * points.shape[1]] ^= 1
    (tmp_path / "k").write_bytes(data)
    backend = host(curve)
    backend.load(read_zkey(tmp_path / "k"))
    assert backend.check_points() == (query, len(points) - 2)
