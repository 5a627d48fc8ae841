"""The GPU's field arithmetic, its carry chains emulated on the CPU, against Python integers."""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from prover.params import BLS12_381, BN254

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def library(emulation):
    return emulation("mont32_emulation")


@dataclass(frozen=True)
class PrimeField:
    """A field as the emulated functions see it: ``words`` 32-bit words, Montgomery radix ``radix``."""

    name: str
    p: int
    words: int

    @property
    def radix(self) -> int:
        return 1 << 32 * self.words

    def of(self, value: int) -> int:
        """value / radix mod p"""
        return value * pow(self.radix, -1, self.p) % self.p

    def call(self, library: Any, function: str, *operands: int, wide: bool = False) -> int:
        """The result as one integer; operands and result are twice as wide if asked."""
        size = 2 * self.words
        result = (ctypes.c_uint32 * size)()
        arrays = [
            (ctypes.c_uint32 * size)(*((x >> 32 * i) & 0xFFFFFFFF for i in range(size))) for x in operands
        ]
        getattr(library, f"{function}_{self.name}")(result, *arrays)
        words = result if wide else result[: self.words]
        return sum(word << 32 * i for i, word in enumerate(words))

    def edges(self) -> list[int]:
        """Residues at which carries run far, and the constants of Montgomery form."""
        p, r = self.p, self.radix
        near = [0, 1, 2, 0xFFFFFFFF, (1 << 64) - 1, p - 1, p - 2, p // 2, p // 2 + 1, r % p, r * r % p]
        long = [(1 << (p.bit_length() - 1)) - 1, ((1 << 32 * (self.words - 1)) - 1) % p]
        return [*near, *long, p - (1 << 64), p >> 32 << 32]


FIELDS = [
    PrimeField("bn254_q", BN254.q, 8),
    PrimeField("bn254_r", BN254.r, 8),
    PrimeField("bls12_381_q", BLS12_381.q, 12),
    PrimeField("bls12_381_r", BLS12_381.r, 8),
]


BASE_FIELDS = [f for f in FIELDS if f.name.endswith("_q")]
"""Those with two bits to spare above the modulus."""


@pytest.fixture(params=FIELDS, ids=lambda f: f.name)
def field(request):
    return request.param


@pytest.fixture
def values(field):
    draw = random.Random(field.name)
    return field.edges() + [draw.randrange(field.p) for _ in range(30)]


def test_two_operands(library, field, values):
    p = field.p
    for a, b in product(values, values):
        assert field.call(library, "add", a, b) == (a + b) % p
        assert field.call(library, "sub", a, b) == (a - b) % p
        assert field.call(library, "mul", a, b) == field.of(a * b)
        assert field.call(library, "wide_mul", a, b, wide=True) == a * b


def test_one_operand(library, field, values):
    for a in values:
        assert field.call(library, "sqr", a) == field.of(a * a)
        assert field.call(library, "wide_sqr", a, wide=True) == a * a
    for a in (field.radix // 2 - 1, field.radix // 2 - 2, field.radix // 4):
        assert field.call(library, "wide_sqr", a, wide=True) == a * a


@pytest.mark.parametrize("field", BASE_FIELDS, ids=lambda f: f.name)
def test_one_factor_of_a_product_may_be_twice_too_large(library, field, values):
    for a, b in product(values, values[:12]):
        assert field.call(library, "mul", a + field.p, b) == field.of(a * b)


@pytest.mark.parametrize("field", BASE_FIELDS, ids=lambda f: f.name)
def test_sums_of_products(library, field, values):
    draw = random.Random(1)
    for _ in range(600):
        a, b, c, d = draw.choices(values, k=4)
        assert field.call(library, "mul_add", a, b, c, d) == field.of(a * b + c * d)


def test_reduction_over_its_whole_range(library, field):
    p, r = field.p, field.radix
    draw = random.Random(2)
    for t in [0, 1, r - 1, r, p * r - 1, p * r - p, p * r - r, *(draw.randrange(p * r) for _ in range(400))]:
        assert field.call(library, "reduce", t) == field.of(t)


def test_inverse(library, field, values):
    draw = random.Random(3)
    for a in values + [draw.randrange(field.p) for _ in range(2000)]:
        expected = field.radix**2 * pow(a, -1, field.p) % field.p if a else 0
        assert field.call(library, "inverse", a) == expected


@pytest.mark.parametrize("field", BASE_FIELDS, ids=lambda f: f.name)
def test_quadratic_extension(library, field, values):
    draw = random.Random(4)
    for _ in range(800):
        a0, a1, b0, b1 = draw.choices(values, k=4)
        got = field.call(library, "quadratic_mul", a0, a1, b0, b1, wide=True)
        assert divmod(got, field.radix) == (field.of(a0 * b1 + a1 * b0), field.of(a0 * b0 - a1 * b1))
        got = field.call(library, "quadratic_sqr", a0, a1, wide=True)
        assert divmod(got, field.radix) == (field.of(2 * a0 * a1), field.of(a0 * a0 - a1 * a1))


@pytest.mark.parametrize("field", BASE_FIELDS, ids=lambda f: f.name)
def test_loose_residues_stay_below_twice_the_modulus(library, field, values):
    p = field.p
    loose = [*values, *(v + p for v in values[:14]), 2 * p - 1, 2 * p]
    for a, b in product(loose, loose):
        got = field.call(library, "loose_mul", a, b)
        assert got < 2 * p and got % p == field.of(a * b)
        assert field.call(library, "mul", a, b) == field.of(a * b)
    for a in loose:
        assert field.call(library, "sqr", a) == field.of(a * a)
    for a, b in product([*values, p], repeat=2):
        assert field.call(library, "loose_sub", a, b) == a - b + p
        assert field.call(library, "loose_neg", a) == p - a
