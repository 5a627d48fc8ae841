"""The oracle against other people's libraries, and the constants against their formulas."""

from __future__ import annotations

import random

import py_arkworks_bls12381 as arkworks
import pytest
from py_ecc import optimized_bls12_381, optimized_bn128

from prover.params import BLS12_381, BN254, CURVES, NON_RESIDUE, Curve, curve_by_name, curve_by_primes
from prover.reference import g1, g2, intt, ntt

LIBRARIES = {BN254: optimized_bn128, BLS12_381: optimized_bls12_381}
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


def in_integers(library, point):
    """A py_ecc point as the oracle has it."""
    if library.is_inf(point):
        return None
    x, y = library.normalize(point)
    return tuple(tuple(map(int, c.coeffs)) if hasattr(c, "coeffs") else int(c) for c in (x, y))


@both_curves
def test_constants_are_those_of_py_ecc(curve: Curve) -> None:
    library = LIBRARIES[curve]
    assert (curve.q, curve.r) == (library.field_modulus, library.curve_order)
    assert curve.generator_g1 == in_integers(library, library.G1)
    assert curve.generator_g2 == in_integers(library, library.G2)
    assert curve.b_g1 == int(library.b)
    assert curve.b_g2 == tuple(map(int, library.b2.coeffs))


@both_curves
def test_root_of_unity_is_the_one_of_snarkjs(curve: Curve) -> None:
    s = curve.two_adicity
    assert (curve.r - 1) % 2**s == 0 and (curve.r - 1) >> s & 1
    root = curve.root_of_unity(s)
    assert pow(root, 2 ** (s - 1), curve.r) == curve.r - 1, "primitive"
    assert all(curve.root_of_unity(k) == curve.root_of_unity(k + 1) ** 2 % curve.r for k in range(s))
    smallest = next(g for g in range(2, 100) if pow(g, (curve.r - 1) // 2, curve.r) != 1)
    assert smallest == NON_RESIDUE


def test_bls12_381_root_differs_from_that_of_arkworks() -> None:
    assert BLS12_381.root_of_unity(32) != pow(7, (BLS12_381.r - 1) >> 32, BLS12_381.r)


def test_no_root_of_unity_beyond_the_two_adicity() -> None:
    with pytest.raises(ValueError, match="2\\^29"):
        BN254.root_of_unity(29)


@both_curves
def test_curves_are_found_by_each_of_their_names_and_primes(curve: Curve) -> None:
    assert curve_by_name(curve.name) == curve_by_name(curve.file_name) == curve
    assert curve_by_primes(curve.q, curve.r) == curve
    assert curve_by_primes(curve.r, curve.q) is None


@both_curves
@pytest.mark.parametrize("scalar", [0, 1, 2, 3, 0xDEADBEEF, -1, -2])
def test_multiples_agree_with_py_ecc(curve: Curve, scalar: int) -> None:
    library, k = LIBRARIES[curve], scalar % curve.r
    expected = in_integers(library, library.multiply(library.G1, k))
    assert g1(curve).multiply(k, curve.generator_g1) == expected
    expected = in_integers(library, library.multiply(library.G2, k))
    assert g2(curve).multiply(k, curve.generator_g2) == expected


@pytest.mark.parametrize("group_of", [g1, g2], ids=["g1", "g2"])
@both_curves
def test_group_laws_hold_in_every_case(curve: Curve, group_of) -> None:
    group = group_of(curve)
    p = group.generator
    double, minus = group.add(p, p), group.negate(p)
    assert group.add(p, None) == group.add(None, p) == p
    assert group.add(p, minus) is None
    assert group.add(double, minus) == p
    assert double == group.multiply(2, p)
    assert group.msm([5, 7], [p, p]) == group.multiply(12, p), "equal points meet in one step"
    assert group.msm([7, 7], [p, minus]) is None, "opposite points meet in one step"
    assert group.multiply(group.order, p) is None and group.in_subgroup(p)
    assert group.msm([], []) is None
    assert group.msm([3, 4], [None, p]) == group.multiply(4, p)
    assert group.is_on_curve(None) and group.is_on_curve(double)
    assert not group.is_on_curve((p[0], p[0]))


def test_msm_agrees_with_arkworks() -> None:
    rng = random.Random(1)
    group = g1(BLS12_381)
    scalars = [0, 1, BLS12_381.r - 1, *(rng.randrange(BLS12_381.r) for _ in range(5))]
    points = [group.multiply(rng.randrange(1000), group.generator) for _ in scalars]
    total = arkworks.G1Point.identity()
    for k, (x, y) in zip(scalars, points, strict=True):
        total += arkworks.G1Point.from_xy_bytes_be(
            x.to_bytes(48, "big") + y.to_bytes(48, "big")
        ) * arkworks.Scalar(k)
    data = total.to_xy_bytes_be()
    expected = (int.from_bytes(data[:48], "big"), int.from_bytes(data[48:], "big"))
    assert group.msm(scalars, points) == expected


@both_curves
@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_ntt_is_evaluation_and_intt_undoes_it(curve: Curve, k: int) -> None:
    rng = random.Random(k)
    r, n, w = curve.r, 1 << k, curve.root_of_unity(k)
    values = [rng.randrange(r) for _ in range(n)]
    direct = [sum(v * pow(w, i * j, r) for i, v in enumerate(values)) % r for j in range(n)]
    assert ntt(values, w, r) == direct
    assert intt(direct, w, r) == values
