"""How MSMs are cut up: windows cover every scalar, memory covers every case, limits are told."""

from __future__ import annotations

import itertools

import pytest

from prover.backends import msm_plan
from prover.backends.msm_plan import MAX_BITS, Grid, Tuning, layout, shape, tuning
from prover.params import BLS12_381, BN254

CURVES = (BN254, BLS12_381)
GRID = Grid(pair=67584, accumulate=33792)


def signed_digits(scalar: int, r: int, bits: int, windows: int) -> list[int]:
    """The digits that the kernels cut a scalar into (`msm_digits.cuh`), as they say it."""
    sign = -1 if scalar > r - scalar else 1
    rest, digits = min(scalar, r - scalar), []
    for _ in range(windows):
        digit = rest % (1 << bits)
        if digit > 1 << (bits - 1):
            digit -= 1 << bits
        digits.append(sign * digit)
        rest = (rest - digit) >> bits
    assert rest == 0, "the last digit carries out of the top window"
    return digits


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("bits", range(2, MAX_BITS + 1))
def test_windows_cover_every_scalar(curve, bits):
    made = shape(curve, 1, Tuning(bits, 0), 256)
    r = curve.r
    for scalar in (0, 1, r - 1, r // 2, r // 2 + 1, (1 << 253) - 1, r // 3, int("55" * 31, 16)):
        digits = signed_digits(scalar, r, bits, made.windows)
        assert sum(d << bits * i for i, d in enumerate(digits)) % r == scalar
        assert all(abs(d) <= made.buckets // made.sets for d in digits)


@pytest.mark.parametrize("max_tables", [1, 2, 3, 7, 256])
def test_tables_and_sets_cover_the_windows(max_tables):
    made = shape(BLS12_381, 1000, Tuning(13, 3), max_tables)
    assert made.tables <= max_tables
    assert made.tables * made.sets >= made.windows
    assert (made.tables - 1) * made.sets < made.windows
    assert made.bins << made.low_bits == made.buckets


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("n", [1, 2, 1000, 1 << 16, (1 << 20) + 1, 1 << 24])
@pytest.mark.parametrize("tables", [True, False])
def test_every_length_has_a_layout_without_overlap_of_what_lives_at_once(group, curve, n, tables):
    made = shape(curve, n, tuning(group, n, tables=tables), 256 if tables else 1)
    assert made.passes == 0 or made.entries % (1 << made.passes) == 0
    assert made.entries >= made.pairs
    parts = layout(made, GRID, curve.g1_bytes, 128).parts
    reused = {"products", "odd_pass", "even_pass"}
    spans = sorted(span for name, span in parts.items() if name not in reused)
    assert all(a[0] + a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert all(start % 256 == 0 for start, _ in parts.values())
    sort_only = parts["lows"][0]
    assert all(parts[name][0] >= sort_only for name in reused & parts.keys())


def test_a_sort_block_fits_its_shared_memory():
    for n in (1, 1 << 10, 1 << 20, 1 << 24):
        for tables in (True, False):
            made = shape(BLS12_381, n, tuning("g1", n, tables=tables), 256 if tables else 1)
            pairs = made.scalars_a_tile * made.windows
            used = 8 * (made.bins + pairs) + 4 * msm_plan.SORT_THREADS
            assert made.scalars_a_tile >= 1
            assert used <= msm_plan.PARTITION_SHARED


@pytest.mark.parametrize(
    ("n", "bits", "tables"), [(1, 1, 1), (1, MAX_BITS + 1, 1), (1 << 28, 20, 256), (1 << 20, 24, 1)]
)
def test_what_an_entry_cannot_name_is_refused(n, bits, tables):
    with pytest.raises(ValueError, match=r"outside|more than"):
        shape(BLS12_381, n, Tuning(bits, 0), tables)
