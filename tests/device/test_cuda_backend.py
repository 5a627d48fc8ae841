"""Whole proofs on the GPU: the oracle's bytes, nothing compiled, nothing allocated, nothing left behind."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from prover import groth16, setup, synth
from prover.backends import residence
from prover.backends.reference import ReferenceBackend
from prover.check import Checker
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey

pytestmark = pytest.mark.gpu

DATA = Path(__file__).resolve().parents[1] / "data"
CIRCUITS = [(folder, name) for folder in ("bn128", "bls12381") for name in ("mul", "pow5")]
R, S = 0x1234567890ABCDEF << 128 | 77, 0xFEDCBA9876543210 << 120 | 5


@pytest.fixture(scope="module")
def backend(gpu, find_artifact):
    from prover.backends.cuda import CudaBackend

    made = {}

    def backend(curve):
        if curve not in made:
            made[curve] = CudaBackend(gpu, curve, find_artifact)
        return made[curve]

    yield backend
    for one in made.values():
        one.close()


@pytest.fixture
def synthetic(tmp_path, curve, backend):
    """A key and a witness of a synthetic circuit; the points come from the GPU."""

    def synthetic(n_constraints, binary_share=0.5):
        shape = synth.Shape(curve, n_constraints, binary_share)
        system, witness = synth.synthesize(shape)
        path = tmp_path / f"{n_constraints}.zkey"
        setup.write_test_key(path, system, setup.seeded_trapdoor(curve, "gpu"), backend(curve))
        return read_zkey(path), witness

    return synthetic


@pytest.mark.parametrize(("folder", "name"), CIRCUITS)
def test_proofs_are_the_oracles(backend, folder, name):
    key = read_zkey(DATA / folder / f"{name}.zkey")
    witness = read_wtns(DATA / folder / f"{name}.wtns")
    oracle = ReferenceBackend(key.curve)
    oracle.load(key)
    expected = groth16.prove(key, witness.words, R, S, oracle)
    cuda = backend(key.curve)
    cuda.load(key)
    assert cuda.check_points() is None
    assert groth16.prove(key, witness.words, R, S, cuda) == expected
    assert groth16.prove(key, witness.words, R, S, cuda) == expected, "a second proof differs"
    assert groth16.prove(key, witness.words, S, R, cuda) != expected


@pytest.mark.parametrize("n_constraints", [1, 2, 5, 60, 1000, 5000])
def test_synthetic_circuits_prove_and_check(synthetic, backend, curve, n_constraints):
    key, witness = synthetic(n_constraints)
    cuda = backend(curve)
    cuda.load(key)
    assert cuda.check_points() is None
    proof = groth16.prove(key, witness, R, S, cuda)
    public = [int.from_bytes(w.tobytes(), "little") for w in witness[1 : key.n_public + 1]]
    checker = Checker(key.verification_key(), source=key.file.path)
    assert checker.check(proof, public).valid
    if n_constraints <= 60:
        oracle = ReferenceBackend(curve)
        oracle.load(key)
        assert proof == groth16.prove(key, witness, R, S, oracle)
    wrong = witness.copy()
    wrong[-1, 0] ^= 1
    assert not checker.check(groth16.prove(key, wrong, R, S, cuda), public).valid
    assert groth16.prove(key, witness, R, S, cuda) == proof, "launched from graphs, it differs"


@pytest.mark.parametrize("log_piece", [4, 7, 22])
def test_a_streamed_key_gives_the_same_proof_and_finds_the_same_fault(
    synthetic, backend, curve, monkeypatch, log_piece
):
    key, witness = synthetic(700)
    cuda = backend(curve)
    cuda.load(key)
    expected = groth16.prove(key, witness, R, S, cuda)
    monkeypatch.setattr(residence, "_resident", lambda *_: None)
    monkeypatch.setattr(residence, "LARGEST_PIECE", log_piece)
    monkeypatch.setattr(residence, "SMALLEST_PIECE", log_piece)
    cuda.load(key)
    assert cuda.arrangement["points"].startswith("streamed, ")
    assert cuda.check_points() is None
    for _ in range(2):
        assert groth16.prove(key, witness, R, S, cuda) == expected
    points = key.h_query.copy()
    points[611, 3] ^= 1
    cuda.load(dataclasses.replace(key, h_query=points))
    assert cuda.check_points() == ("h_query", 611)


def test_fewer_tables_for_less_memory_give_the_same_proof(synthetic, gpu, find_artifact, backend, curve):
    from prover.backends.cuda import HEADROOM, CudaBackend

    key, witness = synthetic(5000)
    cuda = backend(curve)
    cuda.load(key)
    expected, whole = groth16.prove(key, witness, R, S, cuda), cuda._memory.used
    seen = set()
    for tenths in range(9, 2, -1):
        small = CudaBackend(gpu, curve, find_artifact, HEADROOM + whole * tenths // 10)
        small.load(key)
        assert small._memory.used <= whole * tenths // 10
        assert groth16.prove(key, witness, R, S, small) == expected
        seen.add(small.arrangement["points"])
        small.close()
    assert len(seen) > 2


def test_a_key_for_one_proof_has_no_tables(synthetic, gpu, find_artifact, backend, curve):
    from prover.backends.cuda import CudaBackend

    key, witness = synthetic(5000)
    cuda = backend(curve)
    cuda.load(key)
    single = CudaBackend(gpu, curve, find_artifact, once=True)
    single.load(key)
    assert single.arrangement["points"] == "resident, no tables"
    assert single._memory.used < cuda._memory.used
    for _ in range(3):
        assert groth16.prove(key, witness, R, S, single) == groth16.prove(key, witness, R, S, cuda)
    single.close()


def test_a_witness_in_page_locked_memory_is_taken_from_there(synthetic, backend, curve):
    key, witness = synthetic(300)
    cuda = backend(curve)
    cuda.load(key)
    expected = groth16.prove(key, witness, R, S, cuda)
    words = cuda.host_words(key.n_vars)
    words[:] = witness
    assert groth16.prove(key, words, R, S, cuda) == expected
    cuda.close()
    assert not words.any()


def test_a_point_off_the_curve_is_found(synthetic, backend, curve):
    key, _ = synthetic(40)
    cuda = backend(curve)
    for query in ("a_query", "b_g2_query", "h_query"):
        points = getattr(key, query).copy()
        points[7, 0] ^= 1
        cuda.load(dataclasses.replace(key, **{query: points}))
        assert cuda.check_points() == (query, 7)


def test_a_proof_compiles_and_allocates_nothing(synthetic, backend, curve, monkeypatch):
    import cupy
    from cupy.cuda import compiler

    key, witness = synthetic(300)
    cuda = backend(curve)
    cuda.load(key)
    groth16.prove(key, witness, R, S, cuda)

    def forbidden(*_args, **_kwargs):
        raise AssertionError("not in a proof")

    for name in ("compile_using_nvrtc", "compile_using_nvcc", "_compile_module_with_cache"):
        assert hasattr(compiler, name), f"CuPy has no {name} any more: watch its successor"
        monkeypatch.setattr(compiler, name, forbidden)
    for name in ("Memory", "PinnedMemory", "alloc", "alloc_pinned_memory"):
        monkeypatch.setattr(cupy.cuda, name, forbidden)
    free_before, _ = cuda._gpu.memory()
    groth16.prove(key, witness, R, S, cuda)
    assert cuda._gpu.memory()[0] == free_before
    mapped = Path("/proc/self/maps").read_text()
    assert "libnvrtc" not in mapped, "the run-time compiler is in this process"


def test_spans_are_measured_on_their_streams(synthetic, backend, curve):
    key, witness = synthetic(300)
    cuda = backend(curve)
    cuda.load(key)
    groth16.prove(key, witness, R, S, cuda)
    cuda.phases.drain()
    groth16.prove(key, witness, R, S, cuda)
    spans = [s for s in cuda.phases.drain() if s.clock == "cuda"]
    names = {s.name for s in spans}
    assert {"upload witness", "sparse products", "ntt", "quotient"} <= names
    assert {f"msm {q}" for q in ("a_query", "b_g1_query", "b_g2_query", "l_query", "h_query")} <= names
    assert all(s.t0_ns <= s.t1_ns and s.stream for s in spans)
    on_main = sorted((s for s in spans if s.stream == "main"), key=lambda s: s.t0_ns)
    assert all(a.t1_ns <= b.t0_ns + 10_000 for a, b in itertools.pairwise(on_main))


def test_closing_leaves_no_witness(synthetic, gpu, find_artifact, curve):
    from prover.backends.cuda import CudaBackend
    from prover.backends.cuda_device import Stream

    key, witness = synthetic(300)
    cuda = CudaBackend(gpu, curve, find_artifact)
    cuda.load(key)
    groth16.prove(key, witness, R, S, cuda)
    resident = cuda._key
    assert resident is not None
    held = [resident.witness, resident.vectors, resident.work, *resident.queries._workspaces.values()]
    slots = resident.staging._slots
    cuda.close()
    stream = Stream(non_blocking=True)
    assert not any(buffer.download(stream).any() for buffer in held)
    assert not any(slot.any() for slot in slots)


def test_a_key_too_large_says_need_and_have(synthetic, backend, curve, monkeypatch):
    from orchestrator.errors import Missing
    from prover.backends.cuda_device import Gpu

    key, _ = synthetic(300)
    monkeypatch.setattr(Gpu, "memory", lambda _self: (1 << 20, 1 << 37))
    with pytest.raises(Missing, match=r"are needed for .* has 1.00 MiB free of 128.00 GiB"):
        backend(curve).load(key)


def test_public_wires_alone(backend, curve, tmp_path):
    """No private wire: l_query is empty, and its MSM gives the identity."""
    key = read_zkey(DATA / curve.file_name / "mul.zkey")
    cuda = backend(curve)
    cuda.load(dataclasses.replace(key, l_query=key.l_query[:0]))
    witness = cuda.witness(np.zeros((key.n_vars, 32), np.uint8))
    assert cuda.fetch([cuda.msm_g1("l_query", witness[:0])]) == [None]
