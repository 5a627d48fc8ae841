"""The host's multi-scalar multiplication against the oracle and against known logarithms."""

from __future__ import annotations

import random

import pytest

from orchestrator.errors import BrokenRun

pytestmark = pytest.mark.toolchain

GROUPS = pytest.mark.parametrize("group", [1, 2], ids=["g1", "g2"])


def logarithms(draw: random.Random, n: int, r: int) -> list[int]:
    return [draw.randrange(r) for _ in range(n)]


def by_logarithm(arithmetic, group, scalars, logs):
    """The sum of scalars[i] * logs[i] * G, which takes one multiplication."""
    oracle = arithmetic.groups[group]
    total = sum(k * m for k, m in zip(scalars, logs, strict=True))
    return oracle.multiply(total % arithmetic.curve.r, oracle.generator)


@GROUPS
@pytest.mark.parametrize(("n", "seed"), [(n, 0) for n in (0, 1, 2, 3, 7, 33)] + [(4, s) for s in range(6)])
def test_agrees_with_the_oracle(arithmetic, group, n, seed):
    """Small and odd lengths, with the identity, P and -P, and edge scalars among them."""
    oracle, r = arithmetic.groups[group], arithmetic.curve.r
    draw = random.Random(n + 100 * seed)
    base = oracle.multiply(draw.randrange(r), oracle.generator)
    choices = [None, base, oracle.negate(base), oracle.generator]
    points = [draw.choice(choices) for _ in range(n)]
    edges = [0, 1, 2, r - 1, r - 2, 2**64, 2**128 - 1]
    scalars = [draw.choice(edges) if draw.random() < 0.6 else draw.randrange(r) for _ in range(n)]
    assert arithmetic.msm(group, scalars, points) == oracle.msm(scalars, points)


@GROUPS
def test_a_few_points_and_every_digit(host, group):
    """One to five points with scalars at both ends of each digit's range, and ones beside them."""
    r, draw = host.curve.r, random.Random(5)
    half = sum(1 << (4 + 5 * j) for j in range(51))
    edges = [r - 1, r >> 1, (r >> 1) + 1, half % r, (half - 1) % r, (half + 1) % r, 2, 15, 16, 17, 31, 32]
    powers = [(1 << bit) - down for bit in range(8, r.bit_length() - 1, 9) for down in (0, 1)]
    for at, scalar in enumerate(edges + powers):
        scalars = [
            scalar,
            *(draw.choice((0, 1, scalar, r - scalar, draw.randrange(r))) for _ in range(at % 5)),
        ]
        logs = [draw.choice((7, r - 7, 0, draw.randrange(r))) for _ in scalars]
        assert host.msm(group, scalars, host.multiples(group, logs)) == by_logarithm(
            host, group, scalars, logs
        )


@pytest.mark.parametrize(("group", "window"), [(1, c) for c in range(3, 21)] + [(2, 3), (2, 8), (2, 15)])
def test_every_window_holds_every_digit(host, group, window):
    """Digits at both ends of their range, carries through all of them, and the top window's."""
    r = host.curve.r
    half = sum(1 << (window - 1 + window * j) for j in range(256 // window))
    edges = [r - 1, r - 2, r >> 1, (r >> 1) + 1, half % r, (half - 1) % r, (half + 1) % r, 1, 2, 3]
    powers = [1 << bit for bit in range(r.bit_length() - 1)] + [(1 << b) - 1 for b in range(1, 254)]
    scalars = edges + powers[window % 5 :: 5]
    logs = logarithms(random.Random(window), len(scalars), r)
    rows = host.multiples(group, logs)
    assert host.msm(group, scalars, rows, window) == by_logarithm(host, group, scalars, logs)


LARGE = 20011  # a prime: odd, and no multiple of a chunk


@pytest.mark.parametrize("scalars", ["random", "one", "all equal", "few", "small", "0 and 1", "top"])
@pytest.mark.parametrize("points", ["random", "all equal", "pairs of opposites", "mostly identity"])
def test_large_and_skewed(host, scalars, points):
    """Runs that fill many chunks, one bucket with every point, cancellation in every round."""
    r, draw = host.curve.r, random.Random(7)
    some = draw.randrange(r)
    logs = {
        "random": lambda: logarithms(draw, LARGE, r),
        "all equal": lambda: [some] * LARGE,
        "pairs of opposites": lambda: [some if i % 2 else r - some for i in range(LARGE)],
        "mostly identity": lambda: [draw.randrange(r) if draw.random() < 0.3 else 0 for _ in range(LARGE)],
    }[points]()
    values = {
        "random": lambda: logarithms(draw, LARGE, r),
        "one": lambda: [1] * LARGE,
        "all equal": lambda: [some] * LARGE,
        "few": lambda: [draw.choice((some, r - some, 2)) for _ in range(LARGE)],
        "small": lambda: [draw.randrange(300) for _ in range(LARGE)],
        "0 and 1": lambda: [draw.randrange(2) for _ in range(LARGE)],
        "top": lambda: [r - 1 - draw.randrange(2) for _ in range(LARGE)],
    }[scalars]()
    assert host.msm(1, values, host.multiples(1, logs)) == by_logarithm(host, 1, values, logs)


@GROUPS
@pytest.mark.parametrize("threads", [1, 3, 64])
def test_threads_do_not_change_the_sum(host, group, threads):
    """Also with more threads than windows, where each window's buckets are cut into ranges."""
    r, n = host.curve.r, 5000
    logs = logarithms(random.Random(1), n, r)
    scalars = logarithms(random.Random(2), n, r)
    rows = host.multiples(group, logs)
    host.threads = threads
    assert host.msm(group, scalars, rows) == by_logarithm(host, group, scalars, logs)


@pytest.mark.parametrize("index", [0, 4, 8])
def test_a_scalar_that_is_not_below_r_is_refused(host, index):
    scalars = [3] * 9
    for value in (host.curve.r, 2**256 - 1):
        scalars[index] = value
        with pytest.raises(BrokenRun, match="not below r"):
            host.msm(1, scalars, [host.curve.generator_g1] * 9)


def test_points_off_the_curve_do_no_harm(host):
    """(x, 0) doubles to nothing that can be inverted; the other points' sum must survive it."""
    n = 600
    rows = host.multiples(1, [5] * n).copy()
    rows[:300, rows.shape[1] // 2 :] = 0
    scalars = [9] * 300 + [4] * 300
    want = host.groups[1].multiply(5 * 4 * 300, host.curve.generator_g1)
    assert host.msm(1, scalars, rows) == want
