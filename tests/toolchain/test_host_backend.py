"""Proofs on the host backend, and the proof that the library in the process is the admitted one."""

from __future__ import annotations

import random
import shutil
import tracemalloc
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import Missing, Refused
from prover import groth16, memory
from prover.backends import PointGenerator
from prover.backends.host import HostBackend, proof_bytes
from prover.backends.host_combine import HostCombine
from prover.backends.host_library import load_library
from prover.backends.reference import ReferenceBackend
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey
from prover.params import BLS12_381, BN254
from prover.reference import g1, g2
from prover.scalars import encode_scalars

pytestmark = pytest.mark.toolchain

DATA = Path(__file__).resolve().parents[1] / "data"


def files(curve, circuit):
    folder = DATA / curve.file_name
    return read_zkey(folder / f"{circuit}.zkey"), read_wtns(folder / f"{circuit}.wtns")


@pytest.fixture
def backend(curve, host_artifact):
    return HostBackend(curve, host_artifact(curve))


def test_the_same_proof_as_the_oracle(backend, curve):
    """Equal r and s give equal points, time after time, with any number of threads."""
    key, witness = files(curve, "mul")
    oracle = ReferenceBackend(curve)
    for one in (backend, oracle):
        one.load(key)
    assert backend.check_points() is None
    r, s = 12345, curve.r - 1
    want = groth16.prove(key, witness.words, r, s, oracle)
    for threads in (1, 2, 9):
        backend.threads = threads
        assert groth16.prove(key, witness.words, r, s, backend) == want
    names = {span.name for span in backend.phases.drain()}
    assert {"sparse products", "ntt", "msm a_query", "msm b_g2_query", "msm h_query"} <= names


def test_a_key_too_large_for_memory_is_refused(backend, curve, monkeypatch):
    key, witness = files(curve, "pow5")
    tracemalloc.start()
    try:
        backend.load(key)
        groth16.prove(key, witness.words, 1, 2, backend)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    need = proof_bytes(key)
    assert need <= taken <= 3 * need
    monkeypatch.setattr(memory, "available", lambda: (need - 1, "here"))
    with pytest.raises(Missing, match=r"needed at least for proofs with pow5\.zkey"):
        backend.load(key)


@pytest.mark.parametrize("query", ["a_query", "b_g1_query", "b_g2_query", "l_query", "h_query"])
def test_a_point_off_its_curve_is_named(backend, curve, query):
    key, _ = files(curve, "pow5")
    points = np.array(getattr(key, query))
    points[2, 0] ^= 1
    backend.load(replace(key, **{query: points}))
    assert backend.check_points() == (query, 2)


def test_closing_erases_what_held_the_witness(backend, curve):
    key, witness = files(curve, "pow5")
    backend.load(key)
    w = backend.witness(witness.words)
    vectors = [w, *backend.sparse_products(w)]
    assert all(v.any() for v in vectors)
    backend.close()
    assert not any(v.any() for v in vectors)


def test_multiples_for_test_keys(backend, curve):
    assert isinstance(backend, PointGenerator)
    scalars, oracle = encode_scalars([0, 1, 5, curve.r - 1]), ReferenceBackend(curve)
    assert (backend.multiples_g1(scalars) == oracle.multiples_g1(scalars)).all()
    assert (backend.multiples_g2(scalars) == oracle.multiples_g2(scalars)).all()


@pytest.fixture
def copied(host_artifact, tmp_path):
    """A BN254 library at a path of its own, as an artifact."""
    artifact = host_artifact(BN254)
    path = tmp_path / artifact.path.name
    shutil.copyfile(artifact.path, path)
    return replace(artifact, path=path)


def test_what_was_loaded_is_reported(copied):
    _, loaded = load_library(copied, "bn254")
    assert (loaded.target, loaded.digest, loaded.stamp) == ("host-bn254", copied.digest, copied.stamp)
    assert loaded.how == "mapped-file"


def test_a_variant_in_its_targets_place_has_a_stamp_of_its_own_name(copied):
    stands_in = replace(copied, target="host", built_as=copied.target)
    assert load_library(stands_in, "bn254")[1].target == "host"
    with pytest.raises(Refused, match="carries no stamp"):
        load_library(replace(copied, target="host"), "bn254")


@pytest.mark.parametrize("field", ["digest", "stamp"])
def test_another_digest_or_stamp_is_refused(copied, field):
    other = f"sha256:{'0' * 64}"
    with pytest.raises(Refused, match=f"its {field} is {getattr(copied, field)}; {other} wanted"):
        load_library(replace(copied, **{field: other}), "bn254")


def test_another_curve_is_refused(copied):
    with pytest.raises(Refused, match="curve is bn254; bls12_381 wanted"):
        load_library(copied, "bls12_381")


def test_a_file_replaced_under_a_loaded_library_is_refused(copied, host_artifact):
    """The loader hands out the old library for the old name: only the mapping tells."""
    load_library(copied, "bn254")
    other = host_artifact(BLS12_381)
    shutil.copyfile(other.path, copied.path.with_name("new"))
    copied.path.with_name("new").replace(copied.path)
    with pytest.raises(Refused, match="is not what this process runs"):
        load_library(replace(other, path=copied.path), "bls12_381")


def test_a_file_deleted_and_written_anew_is_refused(copied):
    """Equal bytes, but not those that are mapped."""
    load_library(copied, "bn254")
    data = copied.path.read_bytes()
    keep = copied.path.open("rb")  # holds the inode, so that it cannot come back
    copied.path.unlink()
    copied.path.write_bytes(data)
    with keep, pytest.raises(Refused, match="is not what this process runs"):
        load_library(copied, "bn254")


def test_bytes_added_to_a_loaded_library_are_refused(copied):
    load_library(copied, "bn254")
    with copied.path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(Refused, match="its digest is"):
        load_library(copied, "bn254")


def test_a_library_without_a_stamp_is_refused(copied, compiled):
    """Such as one compiled by hand."""
    path = compiled(BN254, "FRESHPROOF_PORTABLE")
    digest = f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    with pytest.raises(Refused, match="carries no stamp"):
        load_library(replace(copied, path=path, digest=digest), "bn254")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library at all"])
def test_what_is_no_library_cannot_be_loaded(copied, content):
    copied.path.write_bytes(content)
    with pytest.raises(Missing, match="cannot be loaded"):
        load_library(copied, "bn254")


def test_a_kept_point_changes_no_sum(curve, host_artifact):
    """Products by the kept multiples: alone, beside sums, and where another product has doublings."""
    combine, draw = HostCombine(curve, host_artifact(curve)), random.Random(3)
    r = curve.r
    for of, group, generator in (
        ("g1", g1(curve), curve.generator_g1),
        ("g2", g2(curve), curve.generator_g2),
    ):
        points = [group.multiply(k, generator) for k in (3, 5, 7)]
        sums = [
            (scalars, chosen)
            for edge in (0, 1, 2, 31, 32, r - 1, draw.randrange(r))
            for scalars, chosen in (
                ([edge], points[:1]),
                ([1, edge], [points[1], points[0]]),
                ([edge, r - 2, 1], [points[0], points[2], None]),
                ([edge, draw.randrange(r)], points[:2]),
            )
        ]
        add = getattr(combine, f"combine_{of}")
        before = [add(*terms) for terms in sums]
        assert before == [group.msm(*terms) for terms in sums]
        for point in (points[0], points[2]):
            getattr(combine, f"keep_{of}")(point)
        assert [add(*terms) for terms in sums] == before
