"""Every constant in the curves' headers equals what its formula gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prover.params import BLS12_381, BN254

HEADERS = Path(__file__).resolve().parents[2] / "cuda_src"
STRUCT = re.compile(r"struct (\w+) \{(.*?)^  \};", re.S | re.M)
ARRAY = re.compile(r"uint32_t (\w+)\(unsigned i\) \{\s*constexpr uint32_t value\[(\d+)\] = \{([^}]*)\};")
SCALAR = re.compile(r"static constexpr \w+ (\w+) = (\w+?)(?:u|ull)?;")


def constants(text: str) -> dict[str, int]:
    """Arrays of words as one integer each, and single values."""
    found = {name: int(value, 0) for name, value in SCALAR.findall(text)}
    for name, count, words in ARRAY.findall(text):
        values = [int(word, 16) for word in words.split(",")]
        assert len(values) == int(count) and all(word < 1 << 32 for word in values)
        assert name not in found
        found[name] = sum(word << 32 * i for i, word in enumerate(values))
    return found


def prime_field(p: int, words: int) -> dict[str, int]:
    radix = 1 << 32 * words
    return {
        "words": words,
        "bits": p.bit_length(),
        "modulus": p,
        "one": radix % p,
        "r_squared": radix * radix % p,
        "negative_inverse32": -pow(p, -1, 1 << 32) % (1 << 32),
        "negative_inverse64": -pow(p, -1, 1 << 64) % (1 << 64),
    }


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda curve: curve.name)
def test_constants(curve):
    text = (HEADERS / f"params_{curve.name}.cuh").read_text()
    body = text[text.index("struct ") :].partition("{")[2]
    fields = dict(STRUCT.findall(body))
    words = curve.q_bytes // 4
    assert constants(fields.pop("FqParams")) == prime_field(curve.q, words)
    assert constants(fields.pop("FrParams")) == {
        **prime_field(curve.r, 8),
        "two_adicity": curve.two_adicity,
        "root_of_unity": curve.root_of_unity(curve.two_adicity) * curve.radix_r % curve.r,
    }
    assert not fields
    in_montgomery = curve.radix_q
    assert constants(STRUCT.sub("", body)) == {
        "b": curve.b_g1 * in_montgomery % curve.q,
        "b2_c0": curve.b_g2[0] * in_montgomery % curve.q,
        "b2_c1": curve.b_g2[1] * in_montgomery % curve.q,
    }
    assert f'"{curve.name}"' in body


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda curve: curve.name)
def test_what_the_arithmetic_relies_on(curve):
    """Free top bits, and groups without points of order 2: y = 0 never satisfies the curve's equation."""
    assert curve.q < 1 << 8 * curve.q_bytes - 1
    assert curve.r < 1 << 255
    assert curve.q % 4 == 3  # -1 is no square
    x_cubed = -curve.b_g1 % curve.q
    assert pow(x_cubed, (curve.q - 1) // 3, curve.q) != 1  # -b is no cube, so no point of G1 has y = 0
    assert not is_cube(curve, tuple(-c % curve.q for c in curve.b_g2))  # nor one of G2


def is_cube(curve, element):
    """Whether a power of (q^2 - 1) / 3 is 1, in Fq2."""
    q, exponent, power, base = curve.q, (curve.q**2 - 1) // 3, (1, 0), element
    while exponent:
        if exponent & 1:
            power = multiply(q, power, base)
        base = multiply(q, base, base)
        exponent >>= 1
    return power == (1, 0)


def multiply(q, a, b):
    return ((a[0] * b[0] - a[1] * b[1]) % q, (a[0] * b[1] + a[1] * b[0]) % q)
