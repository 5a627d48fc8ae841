"""The check accepts real proofs and rejects everything near them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError
from prover.check import Checker
from prover.formats.snarkjs import read_proof, read_public, read_verification_key
from prover.formats.zkey import read_zkey
from prover.params import BLS12_381, BN254, CURVES, Curve
from prover.reference import g1, g2

DATA = Path(__file__).parents[1] / "data"
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
CHECKERS = {
    c: Checker(read_verification_key(DATA / c.file_name / "mul_vk.json"), source="mul_vk.json")
    for c in CURVES
}


def real(curve: Curve):
    """A proof and its public signals, made by snarkjs."""
    proof = read_proof(DATA / curve.file_name / "mul_proof.json")[1]
    return proof, read_public(DATA / curve.file_name / "mul_public.json")


def square_root(curve: Curve, a: tuple[int, int]) -> tuple[int, int] | None:
    """In Fq2, q = 3 mod 4: Adj and Rodriguez-Henriquez, algorithm 9."""
    q, mul = curve.q, g2(curve).field.mul

    def power(base: tuple[int, int], exponent: int) -> tuple[int, int]:
        result = (1, 0)
        for bit in bin(exponent)[2:]:
            result = mul(result, result)
            result = mul(result, base) if bit == "1" else result
        return result

    a1 = power(a, (q - 3) // 4)
    x0 = mul(a1, a)
    alpha = mul(a1, x0)
    x = mul((0, 1), x0) if alpha == (q - 1, 0) else mul(power((1 + alpha[0], alpha[1]), (q - 1) // 2), x0)
    return x if mul(x, x) == a else None


def twist_point_outside_subgroup(curve: Curve) -> tuple[tuple[int, int], tuple[int, int]]:
    group = g2(curve)
    for c in range(1, 100):
        x = (c, 1)
        y = square_root(curve, group.field.add(group.field.mul(x, group.field.mul(x, x)), group.b))
        if y is not None and not group.in_subgroup((x, y)):
            return (x, y)
    raise AssertionError("no point found")


@both_curves
def test_real_proof_is_valid_and_names_the_library(curve: Curve) -> None:
    proof, public = real(curve)
    check = CHECKERS[curve].check(proof, public)
    assert check.valid and check.reason == "" and check.seconds > 0
    assert check.by.split()[0] == {"bn254": "py_ecc", "bls12_381": "py-arkworks-bls12381"}[curve.name]
    assert check.as_json()["result"] == "pass"


@both_curves
def test_wrong_public_signal_is_rejected(curve: Curve) -> None:
    proof, public = real(curve)
    check = CHECKERS[curve].check(proof, [public[0] + 1])
    assert not check.valid and "equation" in check.reason
    assert check.as_json()["result"] == "fail"


@both_curves
def test_wrong_count_or_range_of_public_signals_is_rejected(curve: Curve) -> None:
    proof, public = real(curve)
    for signals, word in (
        ([], "0 public signals"),
        ([*public, 0], "2 public signals"),
        ([public[0] + curve.r], "not below r"),
        ([-1], "not below r"),
    ):
        check = CHECKERS[curve].check(proof, signals)
        assert not check.valid and word in check.reason


def test_each_changed_point_is_rejected() -> None:
    proof, public = real(BLS12_381)
    G1, G2 = g1(BLS12_381), g2(BLS12_381)
    for changed in (
        replace(proof, a=G1.add(proof.a, G1.generator)),
        replace(proof, b=G2.add(proof.b, G2.generator)),
        replace(proof, c=G1.add(proof.c, G1.generator)),
        replace(proof, a=G1.negate(proof.a)),
        replace(proof, a=None),
        replace(proof, b=None),
        replace(proof, c=None),
        replace(proof, a=None, b=None, c=None),
    ):
        check = CHECKERS[BLS12_381].check(changed, public)
        assert not check.valid and "equation" in check.reason


def test_identity_is_taken_by_py_ecc_too() -> None:
    proof, public = real(BN254)
    assert not CHECKERS[BN254].check(replace(proof, a=None, c=None), public).valid


@both_curves
def test_points_off_the_curve_or_above_q_are_rejected(curve: Curve) -> None:
    proof, public = real(curve)
    assert proof.a is not None and proof.b is not None
    x, y = proof.a
    (x0, x1), (y0, y1) = proof.b
    for changed, words in (
        (replace(proof, a=(x + 1, y)), "point A is not on the curve"),
        (replace(proof, a=(x + curve.q, y)), "point A has a coordinate that is not below q"),
        (replace(proof, c=(x, y + curve.q)), "point C has a coordinate that is not below q"),
        (replace(proof, b=((x0, x1), (y0, y1 + 1))), "point B is not on the curve"),
        (replace(proof, b=((x0, x1 + curve.q), (y0, y1))), "point B has a coordinate that is not below q"),
        (replace(proof, b=((1, 2), (3, 4))), "point B is not on the curve"),
    ):
        check = CHECKERS[curve].check(changed, public)
        assert not check.valid and check.reason == words


def test_point_plus_torsion_is_rejected() -> None:
    """(0, 2) has order 3 on BLS12-381: the pairing does not see it, and snarkjs accepts the sum."""
    proof, public = real(BLS12_381)
    G1 = g1(BLS12_381)
    torsion = (0, 2)
    assert G1.is_on_curve(torsion) and G1.multiply(3, torsion) is None
    for changed, name in (
        (replace(proof, a=G1.add(proof.a, torsion)), "A"),
        (replace(proof, c=G1.add(proof.c, torsion)), "C"),
    ):
        check = CHECKERS[BLS12_381].check(changed, public)
        assert not check.valid and check.reason == f"point {name} is not in the subgroup of order r"


@both_curves
def test_g2_point_outside_the_subgroup_is_rejected(curve: Curve) -> None:
    proof, public = real(curve)
    G2 = g2(curve)
    cofactor_part = G2.multiply(curve.r, twist_point_outside_subgroup(curve))
    assert cofactor_part is not None
    check = CHECKERS[curve].check(replace(proof, b=G2.add(proof.b, cofactor_part)), public)
    assert not check.valid and check.reason == "point B is not in the subgroup of order r"


@both_curves
@pytest.mark.parametrize("field", ["alpha", "beta", "gamma", "delta"])
def test_verification_key_with_the_identity_is_refused(curve: Curve, field: str) -> None:
    vk = replace(CHECKERS[curve].vk, **{field: None})
    with pytest.raises(ConfigurationError, match=f"vk.json: the verification key's {field} is the identity"):
        Checker(vk, source="vk.json")


def test_verification_key_off_the_curve_or_subgroup_is_refused() -> None:
    vk = CHECKERS[BLS12_381].vk
    for changed, words in (
        (replace(vk, alpha=(0, 2)), "alpha is not in the subgroup"),
        (replace(vk, ic=(vk.ic[0], (1, 1))), r"IC\[1\] is not on the curve"),
        (replace(vk, gamma=twist_point_outside_subgroup(BLS12_381)), "gamma is not in the subgroup"),
        (replace(vk, delta=((1, 2), (3, 4))), "delta is not on the curve"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            Checker(changed, source="vk.json")


@pytest.mark.parametrize("name", ["beta_g1", "delta_g1"])
def test_proving_key_with_a_point_outside_the_subgroup_is_refused(name: str) -> None:
    """No verifier has these two; proofs made with them would fail, and their witness look guilty."""
    key = read_zkey(DATA / "bls12381" / "mul.zkey")
    Checker.of_key(key)
    damaged = replace(key, **{name: g1(BLS12_381).add(getattr(key, name), (0, 2))})
    with pytest.raises(ConfigurationError, match=f"mul.zkey: {name} is not in the subgroup"):
        Checker.of_key(damaged)


@both_curves
def test_identity_among_the_ic_points_is_legal(curve: Curve) -> None:
    proof, public = real(curve)
    vk = replace(CHECKERS[curve].vk, ic=(CHECKERS[curve].vk.ic[0], None))
    check = Checker(vk, source="vk.json").check(proof, public)
    assert not check.valid and "equation" in check.reason


def test_key_without_public_signals_is_legal() -> None:
    """With no signal, IC[0] alone stands for them: move it there and the same proof stays valid."""
    proof, public = real(BLS12_381)
    vk = CHECKERS[BLS12_381].vk
    G1 = g1(BLS12_381)
    fixed = replace(vk, ic=(G1.add(vk.ic[0], G1.multiply(public[0], vk.ic[1])),))
    assert Checker(fixed, source="vk.json").check(proof, []).valid
    assert not Checker(fixed, source="vk.json").check(proof, public).valid
