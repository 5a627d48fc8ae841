"""Transforms on the GPU against the oracle: every length, several vectors, and long ones by samples."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends import ntt_plan
from prover.reference import intt, ntt
from prover.scalars import decode_scalars, encode_scalars

pytestmark = pytest.mark.gpu


class Transform:
    """One length: data on the device, everything that is not data poisoned."""

    def __init__(self, curve, log_n, load_module, memory, stream):
        from prover.backends.cuda_ntt import Ntt

        self.curve, self.log_n, self.memory, self.stream = curve, log_n, memory, stream
        self.ntt = Ntt(load_module(f"cuda-fr-{curve.name}"), curve, log_n, memory, stream)

    def __call__(self, passes, words, vectors=1):
        """Words (vectors * n, 32) in, the same shape out; Montgomery or not, the map is linear."""
        data = self.memory.allocate(words.nbytes, "data")
        work = self.memory.allocate(words.nbytes, "work")
        work.fill(0xEE, self.stream)
        data.upload(np.ascontiguousarray(words), self.stream)
        self.ntt.prepare(passes)
        self.ntt.run(passes, data, work, vectors, self.stream)
        out = data.download(self.stream).reshape(-1, 32)
        self.memory.free(data)
        self.memory.free(work)
        return out


@pytest.fixture
def transform(curve, load_module, memory, stream):
    return lambda log_n: Transform(curve, log_n, load_module, memory, stream)


def vector(curve, n, seed):
    draw = random.Random(seed)
    edges = (0, 1, curve.r - 1, curve.r - 2, 1 << 224)
    return [draw.choice(edges) if draw.random() < 0.25 else draw.randrange(curve.r) for _ in range(n)]


def on_coset(curve, values, log_n):
    coefficients = intt(values, curve.root_of_unity(log_n), curve.r)
    shift, power, shifted = curve.root_of_unity(log_n + 1), 1, []
    for c in coefficients:
        shifted.append(c * power % curve.r)
        power = power * shift % curve.r
    return ntt(shifted, curve.root_of_unity(log_n), curve.r)


@pytest.mark.parametrize("log_n", range(15))
def test_every_direction_agrees_with_the_oracle(curve, transform, log_n):
    run = transform(log_n)
    values = vector(curve, 1 << log_n, log_n)
    words, w = encode_scalars(values), curve.root_of_unity(log_n)
    assert decode_scalars(run(ntt_plan.forward(log_n), words)) == ntt(values, w, curve.r)
    assert decode_scalars(run(ntt_plan.inverse(log_n), words)) == intt(values, w, curve.r)
    assert decode_scalars(run(ntt_plan.to_coset(log_n), words)) == on_coset(curve, values, log_n)


@pytest.mark.parametrize("log_n", [1, 3, 8, 12])
def test_three_vectors_at_once(curve, transform, log_n):
    run = transform(log_n)
    vectors = [vector(curve, 1 << log_n, seed) for seed in range(3)]
    words = encode_scalars([v for one in vectors for v in one])
    got = decode_scalars(run(ntt_plan.to_coset(log_n), words, vectors=3))
    assert got == [v for one in vectors for v in on_coset(curve, one, log_n)]


@pytest.mark.parametrize("log_n", [17, 19, 20, 22])
def test_long_transforms_by_samples(curve, transform, log_n):
    """A sparse input, so that any output is a short sum; and there and back over random words."""
    n, r, w = 1 << log_n, curve.r, curve.root_of_unity(log_n)
    draw = random.Random(log_n)
    run = transform(log_n)
    terms = {draw.randrange(n): draw.randrange(r) for _ in range(8)} | {0: 1, n - 1: r - 1}
    words = np.zeros((n, 32), np.uint8)
    for at, value in terms.items():
        words[at] = encode_scalars([value])[0]
    got = run(ntt_plan.forward(log_n), words)
    for k in (0, 1, n // 2, n - 1, *(draw.randrange(n) for _ in range(60))):
        expected = sum(v * pow(w, at * k, r) for at, v in terms.items()) % r
        assert decode_scalars(got[k : k + 1]) == [expected]
    words = np.random.default_rng(log_n).integers(0, 256, (n, 32), np.uint8)
    words[:, 31] &= 0x1F  # below r on both curves
    back = run(ntt_plan.inverse(log_n), run(ntt_plan.forward(log_n), words))
    assert np.array_equal(back, words)
