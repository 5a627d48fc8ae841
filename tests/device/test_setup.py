"""Multiples of the generators and curve checks on the GPU against the oracle."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.formats.points import encode_g1, encode_g2
from prover.reference import g1, g2
from prover.scalars import encode_scalars

pytestmark = pytest.mark.gpu


@pytest.fixture
def setup(curve, load_module, memory, stream):
    from prover.backends.cuda_setup import Setup

    return Setup(load_module(f"cuda-setup-{curve.name}"), curve, memory, stream)


def oracle(curve, group):
    if group == "g1":
        return g1(curve), curve.generator_g1, encode_g1
    return g2(curve), curve.generator_g2, encode_g2


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_multiples_of_the_generator(curve, setup, memory, group):
    reference, generator, encode = oracle(curve, group)
    draw = random.Random(group)
    edges = [0, 1, 2, 255, 256, curve.r - 1, curve.r - 2, 0]
    scalars = [*edges, *(draw.randrange(curve.r) for _ in range(40))]
    got = setup.multiples(encode_scalars(scalars), group)
    assert [row.tobytes() for row in got] == [
        encode(curve, reference.multiply(k, generator)) for k in scalars
    ]
    assert memory.used == 0
    assert setup.multiples(np.empty((0, 32), np.uint8), group).shape[0] == 0


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_many_multiples_are_consistent(curve, setup, group):
    """More than a chunk's threads: k G and (r - k) G are opposite points."""
    draw = random.Random(9)
    count = 40_000
    scalars = [draw.randrange(curve.r) for _ in range(count)]
    got = setup.multiples(encode_scalars(scalars), group)
    opposite = setup.multiples(encode_scalars([-k % curve.r for k in scalars]), group)
    half = got.shape[1] // 2
    assert np.array_equal(got[:, :half], opposite[:, :half])
    assert not np.any(np.all(got[:, half:] == opposite[:, half:], axis=1))
    reference, generator, encode = oracle(curve, group)
    for k in (0, 1, 16383, 16384, count - 1):
        assert got[k].tobytes() == encode(curve, reference.multiply(scalars[k], generator))


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_the_first_point_off_the_curve_is_found(curve, setup, memory, stream, group):
    points = setup.multiples(encode_scalars([0, *range(1, 1000)]), group).copy()

    def first_bad():
        buffer = memory.allocate(points.nbytes, "points")
        buffer.upload(points, stream)
        found = setup.first_off_curve(buffer, len(points), group)
        memory.free(buffer)
        return found

    assert first_bad() is None
    points[700, 0] ^= 1
    assert first_bad() == 700
    points[3, curve.q_bytes] ^= 1
    assert first_bad() == 3
