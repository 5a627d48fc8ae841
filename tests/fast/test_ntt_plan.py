"""The passes of a transform, and the layout of what they read."""

from __future__ import annotations

import pytest

from prover.backends import ntt_plan
from prover.backends.ntt_plan import Tile
from prover.params import BLS12_381, BN254


@pytest.mark.parametrize("log_n", range(28))
def test_passes_multiply_to_the_length(log_n):
    bits = ntt_plan.split(log_n)
    assert sum(bits) == log_n
    assert max(bits) <= ntt_plan.MAX_BITS
    assert max(bits) - min(bits) <= 4
    assert len(bits) == 1 or min(bits) >= ntt_plan.MIN_BITS


@pytest.mark.parametrize("log_n", [-1, 28])
def test_lengths_out_of_range_are_refused(log_n):
    with pytest.raises(ValueError, match=r"0\.\.27"):
        ntt_plan.split(log_n)


def test_passes_of_another_length_are_refused():
    with pytest.raises(ValueError, match="do not make"):
        ntt_plan.forward(10, (4, 4))


@pytest.mark.parametrize("log_n", range(1, 28))
def test_exponents_stay_below_the_order_of_the_root(log_n):
    """alpha q r + beta k < 2n: both tables of powers reach it, and it fits 32 bits."""
    for step in (*ntt_plan.inverse(log_n), *ntt_plan.to_coset(log_n)):
        if table := step.table:
            q, r = (1 << table.log_f) - 1, (1 << table.bits) - 1
            largest = table.alpha * q * r + table.beta * (q + (r << table.log_f))
            assert largest < 2 << log_n


def test_the_scale_goes_into_one_table_only():
    for log_n in (2, 8, 14, 20):
        scaled = [p.table for p in ntt_plan.inverse(log_n) if p.table and p.table.scaled]
        assert len(scaled) == 1
        assert sum(1 for p in ntt_plan.to_coset(log_n) if p.table and p.table.scaled) == 1


@pytest.mark.parametrize("bits", range(3, 10))
def test_tiles_fit_an_sm_several_times(bits):
    tile = Tile.of(bits)
    assert tile.threads * 8 == tile.columns << bits
    assert 4 * (tile.shared_bytes + 1024) <= 227 * 1024


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("bits", [4, 6, 8, 9])
def test_round_twiddles_at_their_places(curve, bits):
    data = ntt_plan.round_twiddles(curve, bits).tobytes()

    def entry(k: int) -> tuple[int, int]:
        at = 16 * ((k >> 3) * 32 + (k & 7))
        pieces = [data[at + 128 * m : at + 128 * m + 16] for m in range(4)]
        return int.from_bytes(pieces[0] + pieces[1], "little"), int.from_bytes(
            pieces[2] + pieces[3], "little"
        )

    for log_s in range(3, bits, 3):
        radix = 1 << min(3, bits - log_s)
        root = curve.root_of_unity(log_s + radix.bit_length() - 1)
        for k in range(1, radix):
            for q in (0, 1, (1 << log_s) - 1):
                w = pow(root, q * k, curve.r)
                assert entry((k << log_s) + q - 8) == (w, (w << 256) // curve.r)
