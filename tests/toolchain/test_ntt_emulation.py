"""The NTT kernels' threads, run on the CPU with the device's arithmetic emulated, against the oracle."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from prover.backends import ntt_plan
from prover.params import BLS12_381, BN254, Curve
from prover.reference import intt, ntt
from prover.scalars import decode_scalars, encode_scalars

pytestmark = pytest.mark.toolchain

CURVES = (BN254, BLS12_381)


@pytest.fixture(scope="module")
def library(emulation):
    return emulation("ntt_emulation")


class Emulation:
    """Runs the passes of a plan on host arrays as `cuda_ntt` runs them on device buffers."""

    def __init__(self, library: ctypes.CDLL, curve: Curve) -> None:
        self.library = library
        self.curve = curve
        self.index = CURVES.index(curve)

    def run(self, passes, log_n: int, values: list[int]) -> list[int]:
        data = aligned(ntt_plan.montgomery(self.curve, values))
        work = aligned(np.full_like(data, 0xEE))
        made = {table: self.factors(log_n, table) for table in ntt_plan.tables(passes)}
        source = data
        for at, step in enumerate(passes):
            factors = pointer(made[step.table]) if step.table else None
            if step.bits < ntt_plan.MIN_BITS:
                roots = aligned(ntt_plan.direct_roots(self.curve, step.bits))
                self.library.emulate_direct(
                    self.index, pointer(data), factors, pointer(roots), step.bits, step.flip
                )
                continue
            ends = at + 1 == len(passes) or passes[at + 1].log_s == 0
            target = data if ends else (work if source is data else data)
            twiddles = aligned(ntt_plan.round_twiddles(self.curve, step.bits))
            log_f = step.table.log_f if step.table else 0
            assert not self.library.emulate_pass(
                self.index,
                step.bits,
                pointer(target),
                pointer(source),
                factors,
                pointer(twiddles),
                log_n,
                step.log_s,
                log_f,
                step.flip,
            )
            source = target
        radix = pow(self.curve.radix_r, -1, self.curve.r)
        return [v * radix % self.curve.r for v in decode_scalars(data.reshape(-1, 32))]

    def factors(self, log_n: int, table: ntt_plan.FactorTable):
        powers = ntt_plan.power_tables(self.curve, log_n)
        scale = aligned(powers.one_over_n if table.scaled else powers.one)
        low, high = aligned(powers.low), aligned(powers.high)
        out = aligned(np.zeros(table.nbytes, np.uint8))
        self.library.emulate_factors(
            self.index,
            pointer(out),
            pointer(low),
            pointer(high),
            pointer(scale),
            powers.log_low,
            table.log_entries,
            table.log_f,
            table.alpha,
            table.beta,
        )
        return out


def aligned(array: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    room = np.empty(len(flat) + 64, np.uint8)
    start = -room.ctypes.data % 64
    out = room[start : start + len(flat)]
    out[:] = flat
    return out


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def vector(curve: Curve, n: int, seed: int) -> list[int]:
    """Random values with the extremes among them."""
    draw = random.Random(seed)
    edges = (0, 1, curve.r - 1, curve.r - 2, 1 << 224)
    return [draw.choice(edges) if draw.random() < 0.25 else draw.randrange(curve.r) for _ in range(n)]


SIZES = [(log_n, None) for log_n in range(13)] + [
    (6, (3, 3)),
    (9, (4, 5)),
    (10, (7, 3)),
    (11, (8, 3)),
    (12, (9, 3)),
    (12, (4, 4, 4)),
    (12, (3, 5, 4)),
    (13, (3, 7, 3)),
]


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize(("log_n", "bits"), SIZES)
def test_forward_agrees_with_the_oracle(library, curve, log_n, bits):
    values = vector(curve, 1 << log_n, log_n)
    got = Emulation(library, curve).run(ntt_plan.forward(log_n, bits), log_n, values)
    assert got == ntt(values, curve.root_of_unity(log_n), curve.r)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize(("log_n", "bits"), SIZES)
def test_inverse_agrees_with_the_oracle(library, curve, log_n, bits):
    values = vector(curve, 1 << log_n, 100 + log_n)
    got = Emulation(library, curve).run(ntt_plan.inverse(log_n, bits), log_n, values)
    assert got == intt(values, curve.root_of_unity(log_n), curve.r)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize(("log_n", "bits"), SIZES)
def test_coset_agrees_with_the_oracle(library, curve, log_n, bits):
    r = curve.r
    values = vector(curve, 1 << log_n, 200 + log_n)
    got = Emulation(library, curve).run(ntt_plan.to_coset(log_n, bits), log_n, values)
    coefficients = intt(values, curve.root_of_unity(log_n), r)
    shift = curve.root_of_unity(log_n + 1)
    shifted = [c * pow(shift, k, r) % r for k, c in enumerate(coefficients)]
    assert got == ntt(shifted, curve.root_of_unity(log_n), r)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_shoup_product_of_every_extreme(library, curve):
    """x up to 2p - 1 (an unreduced difference), w up to p - 1."""
    p = curve.r
    ends = [0, 1, 2, 1 << 32, (1 << 32) - 1, 1 << 224, p >> 1, p - 2, p - 1]
    draw = random.Random(5)
    xs = [*ends, *(p + e for e in ends if p + e < 2 * p), *(draw.randrange(2 * p) for _ in range(200))]
    ws = [*ends, *(draw.randrange(p) for _ in range(50))]
    pairs = [(x, w) for x in xs for w in ws]
    x, w, quotient = (
        aligned(encode_scalars(v))
        for v in ([x for x, _ in pairs], [w for _, w in pairs], [(w << 256) // p for _, w in pairs])
    )
    out = aligned(np.zeros(32 * len(pairs), np.uint8))
    library.emulate_shoup(
        CURVES.index(curve), pointer(out), pointer(x), pointer(w), pointer(quotient), len(pairs)
    )
    assert decode_scalars(out.reshape(-1, 32)) == [x * w % p for x, w in pairs]
