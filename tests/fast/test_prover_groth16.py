"""Whole proofs with the oracle, on both curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import ConfigurationError
from prover import groth16, qap
from prover.backends.reference import ReferenceBackend
from prover.check import Checker
from prover.formats.r1cs import read_r1cs
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey
from prover.groth16 import Proof
from prover.params import BLS12_381, BN254, CURVES, Curve
from prover.reference import g1, g2
from prover.scalars import decode_scalars, encode_scalars
from prover.setup import Trapdoor, seeded_trapdoor, write_test_key
from prover.synth import Shape, constraints_filling, synthesize

DATA = Path(__file__).parents[1] / "data"
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


def loaded(path: Path) -> tuple:
    key = read_zkey(path)
    backend = ReferenceBackend(key.curve)
    backend.load(key)
    assert backend.check_points() is None
    return key, backend, Checker(key.verification_key(), source=path)


@both_curves
def test_proof_from_a_ceremony_key_is_valid(curve: Curve) -> None:
    key, backend, checker = loaded(DATA / curve.file_name / "mul.zkey")
    witness = read_wtns(DATA / curve.file_name / "mul.wtns")
    proof = groth16.prove(key, witness.words, *groth16.blinders(curve), backend)
    assert checker.check(proof, witness.public_signals(1)).valid


def test_spans_cover_the_work() -> None:
    key, backend, _ = loaded(DATA / "bls12381" / "mul.zkey")
    words = read_wtns(DATA / "bls12381" / "mul.wtns").words
    groth16.prove(key, words, 1, 2, backend)
    spans = backend.phases.drain()
    names = {span.name for span in spans}
    assert {"sparse products", "ntt", "msm a_query", "msm b_g2_query", "blind", "combine"} <= names
    assert all(span.t0_ns <= span.t1_ns and span.clock == "host" for span in spans)
    assert backend.phases.drain() == ()


def test_equal_blinders_give_equal_proofs_and_fresh_ones_do_not() -> None:
    key, backend, _ = loaded(DATA / "bls12381" / "mul.zkey")
    words = read_wtns(DATA / "bls12381" / "mul.wtns").words
    first, again, other = (groth16.prove(key, words, r, 2, backend) for r in (1, 1, 3))
    assert first == again
    assert first.a != other.a and first.b == other.b and first.c != other.c
    assert groth16.blinders(BN254) != groth16.blinders(BN254)


def test_blinders_reach_from_zero_to_the_group_order() -> None:
    key, backend, checker = loaded(DATA / "bls12381" / "mul.zkey")
    witness = read_wtns(DATA / "bls12381" / "mul.wtns")
    for r, s in ((0, 0), (0, 1), (BLS12_381.r - 1, BLS12_381.r - 1)):
        proof = groth16.prove(key, witness.words, r, s, backend)
        assert checker.check(proof, witness.public_signals(1)).valid


def test_unsatisfying_witness_gives_an_invalid_proof() -> None:
    key, backend, checker = loaded(DATA / "bls12381" / "mul.zkey")
    values = decode_scalars(read_wtns(DATA / "bls12381" / "mul.wtns").words)
    values[2] += 1
    proof = groth16.prove(key, encode_scalars(values), *groth16.blinders(BLS12_381), backend)
    assert not checker.check(proof, values[1:2]).valid


def test_point_off_its_curve_is_found_with_its_place() -> None:
    key = read_zkey(DATA / "bls12381" / "mul.zkey")
    for query, index in (("a_query", 2), ("b_g2_query", 0), ("h_query", 3)):
        points = np.array(getattr(key, query))
        points[index] = 0
        points[index, 0] = 1
        object.__setattr__(key, query, points)
        backend = ReferenceBackend(BLS12_381)
        backend.load(key)
        assert backend.check_points() == (query, index)
        key = read_zkey(DATA / "bls12381" / "mul.zkey")


@both_curves
@pytest.mark.parametrize("binary", [0.0, 0.9])
def test_synthetic_circuit_is_proven_with_our_own_key(curve: Curve, binary: float, tmp_path: Path) -> None:
    system, words = synthesize(Shape(curve, 13, binary))
    write_test_key(tmp_path / "k", system, seeded_trapdoor(curve, "a"), ReferenceBackend(curve))
    key, backend, checker = loaded(tmp_path / "k")
    assert (key.n_vars, key.n_public, key.n_constraints) == (system.n_wires, 2, 13)
    assert key.domain_size == 16
    proof = groth16.prove(key, words, *groth16.blinders(curve), backend)
    assert checker.check(proof, decode_scalars(words)[1:3]).valid


def test_proof_is_what_the_paper_says_in_the_exponent(tmp_path: Path) -> None:
    """With the trapdoor known, A, B and C can be computed as scalars, with no key and no MSM."""
    curve, r, s = BLS12_381, 11, 12
    system, words = synthesize(Shape(curve, 10))
    t = Trapdoor(tau=1234567, alpha=2, beta=3, delta=5)
    write_test_key(tmp_path / "k", system, t, ReferenceBackend(curve))
    key, backend, _ = loaded(tmp_path / "k")
    p, w = curve.r, decode_scalars(words)
    k = qap.log_domain(curve, system.n_constraints, system.n_public)
    columns = qap.wire_polynomials_at(system, qap.lagrange_at(curve, k, t.tau))
    a, b, c = (sum(x * v for x, v in zip(w, column, strict=True)) for column in columns)
    A, B = t.alpha + a + r * t.delta, t.beta + b + s * t.delta
    private = sum(
        w[i] * (t.beta * columns[0][i] + t.alpha * columns[1][i] + columns[2][i]) for i in range(3, len(w))
    )
    C = (private + a * b - c) * pow(t.delta, -1, p) + s * A + r * B - r * s * t.delta
    assert groth16.prove(key, words, r, s, backend) == Proof(
        g1(curve).multiply(A % p, curve.generator_g1),
        g2(curve).multiply(B % p, curve.generator_g2),
        g1(curve).multiply(C % p, curve.generator_g1),
    )


def test_circuit_without_public_signals_or_private_wires(tmp_path: Path) -> None:
    from dataclasses import replace

    system, words = synthesize(Shape(BLS12_381, 5))
    for name, outputs in (("no public", 0), ("no private", system.n_wires - 1)):
        shaped = replace(system, n_outputs=outputs, n_public_inputs=0, n_private_inputs=0)
        write_test_key(tmp_path / name, shaped, seeded_trapdoor(BLS12_381, "b"), ReferenceBackend(BLS12_381))
        key, backend, checker = loaded(tmp_path / name)
        assert len(key.l_query) == system.n_wires - outputs - 1
        proof = groth16.prove(key, words, *groth16.blinders(BLS12_381), backend)
        public = decode_scalars(words)[1 : outputs + 1]
        assert len(public) == outputs and checker.check(proof, public).valid


@both_curves
def test_unsatisfied_constraint_is_named(curve: Curve) -> None:
    system = read_r1cs(DATA / curve.file_name / "pow5.r1cs")
    witness = decode_scalars(read_wtns(DATA / curve.file_name / "pow5.wtns").words)
    assert qap.first_unsatisfied(system, witness) is None
    witness[1] += 1
    assert qap.first_unsatisfied(system, witness) == 899


@both_curves
@pytest.mark.parametrize("binary", [0.0, 0.25, 0.9, 1.0])
def test_synthetic_witness_satisfies_its_circuit(curve: Curve, binary: float) -> None:
    shape = Shape(curve, 300, binary)
    system, words = synthesize(shape)
    values = decode_scalars(words)
    assert qap.first_unsatisfied(system, values) is None
    assert sum(v < 2 for v in values) == 1 + shape.n_binary, "the rest is spread over the field"
    for index in (11, 40, len(values) - 1):
        changed = [*values[:index], values[index] + 2, *values[index + 1 :]]
        assert qap.first_unsatisfied(system, changed) is not None, "every bit and every new wire is bound"


def test_no_row_of_a_synthetic_circuit_names_a_wire_twice() -> None:
    system, _ = synthesize(Shape(BN254, 400, 0.1))
    for matrix in (system.a, system.b, system.c):
        pairs = list(zip(matrix.rows.tolist(), matrix.wires.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs) and (np.diff(matrix.rows.astype(np.int64)) >= 0).all()


def test_equal_seeds_give_equal_circuits_and_others_do_not() -> None:
    first, again, other = (synthesize(Shape(BN254, 20, 0.5, seed))[1].tobytes() for seed in "aab")
    assert first == again != other
    assert seeded_trapdoor(BN254, "a") == seeded_trapdoor(BN254, "a") != seeded_trapdoor(BN254, "b")


@pytest.mark.parametrize("k", [3, 4, 10])
def test_domain_is_filled_and_not_exceeded(k: int) -> None:
    n = constraints_filling(k)
    system, _ = synthesize(Shape(BN254, n))
    assert qap.log_domain(BN254, system.n_constraints, system.n_public) == k
    system, _ = synthesize(Shape(BN254, n + 1))
    assert qap.log_domain(BN254, system.n_constraints, system.n_public) == k + 1


@both_curves
def test_circuit_whose_doubled_domain_does_not_exist_is_refused(curve: Curve) -> None:
    limit = constraints_filling(curve.two_adicity - 1)
    assert qap.log_domain(curve, limit, 2) == curve.two_adicity - 1
    with pytest.raises(ConfigurationError, match="are more than"):
        qap.log_domain(curve, limit + 1, 2)
    with pytest.raises(ConfigurationError, match="are more than"):
        synthesize(Shape(curve, limit + 1))


@both_curves
def test_lagrange_basis_has_its_defining_property(curve: Curve) -> None:
    """sum f(w^i) L_i(tau) = f(tau), and the same on the doubled domain's odd points for multiples of t."""
    r, k, tau = curve.r, 3, 987654321

    def f(x: int) -> int:
        return (5 + 7 * x + 11 * pow(x, 7, r)) % r

    w = curve.root_of_unity(k)
    basis = qap.lagrange_at(curve, k, tau)
    assert sum(f(pow(w, i, r)) * v for i, v in enumerate(basis)) % r == f(tau)

    def vanishing(x: int) -> int:
        return f(x) * (pow(x, 8, r) - 1) % r

    w2 = curve.root_of_unity(k + 1)
    odd = qap.odd_lagrange_at(curve, k, tau)
    assert sum(vanishing(pow(w2, 2 * i + 1, r)) * v for i, v in enumerate(odd)) % r == vanishing(tau)
