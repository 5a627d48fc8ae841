"""Fields and groups of the kernels' headers on a CPU, against Python integers."""

from __future__ import annotations

import random

import pytest

from prover.params import BN254

pytestmark = pytest.mark.toolchain

FQ, FR, FQ2 = 0, 1, 2


def elements(p: int, seed: int, count: int = 60) -> list[int]:
    """Edges, sparse and dense patterns of bits, and random residues."""
    draw = random.Random(seed)
    edges = [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, 2**32, 2**64 - 1, 2**64, p - 2**64, p >> 1]
    patterns = [(1 << bit) % p for bit in range(0, p.bit_length(), 31)] + [
        (1 << b) - 1 for b in (33, 63, 127)
    ]
    return edges + patterns + [draw.randrange(p) for _ in range(count)]


def pairs(p: int, seed: int) -> tuple[list[int], list[int]]:
    """Every edge with every edge, and random pairs."""
    values = elements(p, seed)
    draw = random.Random(seed + 1)
    a = [x for x in values[:12] for _ in range(12)] + values + values
    b = values[:12] * 12 + values + [draw.choice(values) for _ in values]
    return a, b


def prime_of(arithmetic, field):
    curve = arithmetic.curve
    return (curve.q, 8 * curve.q_bytes) if field == FQ else (curve.r, 256)


@pytest.mark.parametrize("field", [FQ, FR], ids=["fq", "fr"])
def test_prime_field(arithmetic, field):
    p, bits = prime_of(arithmetic, field)
    radix = 1 << bits
    down = pow(radix, -1, p)
    a, b = pairs(p, 1)

    def agrees(operation, want, *operands):
        got = arithmetic.field(field, operation, *operands)
        assert got == [want(*row) for row in zip(*operands, strict=True)]

    agrees("add", lambda x, y: (x + y) % p, a, b)
    agrees("sub", lambda x, y: (x - y) % p, a, b)
    agrees("mul", lambda x, y: x * y * down % p, a, b)
    agrees("sqr", lambda x: x * x * down % p, a)
    agrees("neg", lambda x: -x % p, a)
    agrees("dbl", lambda x: 2 * x % p, a)
    agrees("to_montgomery", lambda x: x * radix % p, a)
    agrees("from_montgomery", lambda x: x * down % p, a)
    agrees("inverse", lambda x: pow(x, -1, p) * radix * radix % p if x else 0, elements(p, 2))


def test_quadratic_field(arithmetic):
    q, width = arithmetic.curve.q, 8 * arithmetic.curve.q_bytes
    down = pow(1 << width, -1, q)
    low_a, low_b = pairs(q, 3)
    high_a, high_b = low_b[::-1], low_a[::-1]
    a = list(zip(low_a, high_a, strict=True))
    b = list(zip(low_b, high_b, strict=True))

    def joined(values):
        return [low | high << width for low, high in values]

    def mul(x, y):
        return (
            (x[0] * y[0] - x[1] * y[1]) * down % q,
            (x[0] * y[1] + x[1] * y[0]) * down % q,
        )

    def agrees(operation, want, *operands):
        got = arithmetic.field(FQ2, operation, *[joined(values) for values in operands])
        assert got == joined([want(*row) for row in zip(*operands, strict=True)])

    agrees("add", lambda x, y: ((x[0] + y[0]) % q, (x[1] + y[1]) % q), a, b)
    agrees("sub", lambda x, y: ((x[0] - y[0]) % q, (x[1] - y[1]) % q), a, b)
    agrees("mul", mul, a, b)
    agrees("sqr", lambda x: mul(x, x), a)
    agrees("neg", lambda x: (-x[0] % q, -x[1] % q), a)
    one = (1 << width) % q
    some = [x for x in a if x != (0, 0)][:60]
    inverses = arithmetic.field(FQ2, "inverse", joined(some))
    split = [(value & ((1 << width) - 1), value >> width) for value in inverses]
    assert [mul(x, y) for x, y in zip(some, split, strict=True)] == [(one, 0)] * len(some)
    assert arithmetic.field(FQ2, "inverse", [0]) == [0]


def sample_points(arithmetic, group):
    """Multiples of the generator with its opposite, neighbours and the identity among them."""
    oracle = arithmetic.groups[group]
    r = arithmetic.curve.r
    return [oracle.multiply(k, oracle.generator) for k in (0, 1, 2, 3, r - 1, r - 2, r - 3, 2**64, 12345)]


@pytest.mark.parametrize("group", [1, 2], ids=["g1", "g2"])
@pytest.mark.parametrize("operation", ["mixed_add", "xyzz_add"])
def test_addition_is_complete(arithmetic, group, operation):
    """Every point with every point: equal, opposite, the identity on either side or on both."""
    oracle = arithmetic.groups[group]
    points = sample_points(arithmetic, group)
    a = [p for p in points for _ in points]
    b = points * len(points)
    assert arithmetic.group(group, operation, a, b) == [oracle.add(p, q) for p, q in zip(a, b, strict=True)]


@pytest.mark.parametrize("group", [1, 2], ids=["g1", "g2"])
@pytest.mark.parametrize("operation", ["affine_dbl", "xyzz_dbl"])
def test_doubling(arithmetic, group, operation):
    oracle = arithmetic.groups[group]
    points = sample_points(arithmetic, group)
    if operation == "affine_dbl":
        points = [p for p in points if p is not None]  # an affine doubling is only asked of a true point
    assert arithmetic.group(group, operation, points) == [oracle.add(p, p) for p in points]


@pytest.mark.parametrize("group", [1, 2], ids=["g1", "g2"])
def test_points_off_the_curve_are_found(arithmetic, group):
    rows = arithmetic.points(group, sample_points(arithmetic, group) * 3).copy()
    assert arithmetic.first_bad(group, rows) == len(rows)
    assert arithmetic.first_bad(group, rows[:0]) == 0
    half = rows.shape[1] // 2
    for index in (20, 7):
        rows[index, 0] ^= 1
        assert arithmetic.first_bad(group, rows) == index
    rows[3] = 0
    rows[3, half] = 1  # x = 0, y = R^-1: not the identity
    assert arithmetic.first_bad(group, rows) == 3
    width = arithmetic.curve.q_bytes
    rows[1, :width] = list((arithmetic.curve.q + 1).to_bytes(width, "little"))
    assert arithmetic.first_bad(group, rows) == 1


def test_a_coordinate_of_q_is_no_zero(host):
    """(q, 0) reduces to the identity, but its words are not canonical."""
    width = host.curve.q_bytes
    rows = host.points(1, [None]).copy()
    rows[0, :width] = list(host.curve.q.to_bytes(width, "little"))
    assert host.first_bad(1, rows) == 0


@pytest.mark.parametrize("group", [1, 2], ids=["g1", "g2"])
def test_multiples_of_a_base(arithmetic, group):
    oracle, r = arithmetic.groups[group], arithmetic.curve.r
    scalars = [0, 1, 2, 255, 256, r - 1, r - 2, 2**128 + 1, random.Random(5).randrange(r)]
    base = oracle.multiply(77, oracle.generator)
    rows = arithmetic.multiples(group, scalars, base)
    assert arithmetic.decoded(group, rows) == [oracle.multiply(k, base) for k in scalars]
    assert len(arithmetic.multiples(group, [])) == 0


def test_curves_differ(arithmetic):
    """A guard on the fixtures: the library under test is that of the curve."""
    p = arithmetic.curve.q
    assert arithmetic.field(FQ, "add", [p - 1], [1]) == [0]
    assert (arithmetic.curve is BN254) == (p < 2**255)
