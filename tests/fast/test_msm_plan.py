"""How MSMs are cut up: windows cover every scalar, memory covers every case, limits are told."""

from __future__ import annotations

import itertools

import pytest

from prover.backends import msm_plan
from prover.backends.cuda_msm import Bases, Msm
from prover.backends.msm_plan import MAX_BITS, MAX_INDEX, Grid, Shape, Tuning, layout, shape, tuning
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
    reused = {"products", "lists"}
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


class Stretch:
    """Memory that is only counted: parts of it must lie inside."""

    def __init__(self, nbytes: int, offset: int = 0) -> None:
        self.nbytes, self.offset = nbytes, offset

    def part(self, offset: int, nbytes: int) -> Stretch:
        assert 0 <= offset <= offset + nbytes <= self.nbytes
        return Stretch(nbytes, self.offset + offset)

    def fill(self, byte: int, stream: object) -> None:
        """Nothing to fill."""


def launches(msm: Msm, made: Shape) -> dict[str, tuple[int, list[object]]]:
    """What one MSM of that shape would launch: grid and arguments by kernel, the last of each."""
    workspace = Stretch(msm.workspace_bytes(made))
    msm.run(Bases(made, Stretch(msm.table_bytes(made)), Stretch(0)), Stretch(0), workspace, Stretch(0), None)
    return msm.launched


@pytest.fixture
def msm() -> Msm:
    launched: dict[str, tuple[int, list[object]]] = {}

    def find(name: str):
        def launch(grid, block, args, stream, *, shared=0):
            assert 0 < grid < 1 << 31 and 0 < block <= 1024 and shared <= 227 * 1024
            launched[name] = grid, list(args)

        return launch

    made = Msm(BLS12_381, "g1", find, 132)
    made.launched = launched
    return made


LARGE = [(26, 256, 11), (26, 1, 1), (27, 4, 4), (28, 1, 1), (28, 256, 7)]
"""log2 of n, tables allowed, tables that an index of 31 bits still allows."""


@pytest.mark.parametrize(("log_n", "allowed", "tables"), LARGE)
def test_very_long_msms_stay_within_their_indices(msm, log_n, allowed, tables):
    n = 1 << log_n
    made = msm.shape(n, max_tables=allowed)
    assert made.tables <= tables
    assert made.tables * n < MAX_INDEX
    assert made.pairs + msm_plan.TILE <= made.entries + msm_plan.TILE < 1 << 32
    seen = launches(msm, made)
    assert seen["msm_partition"][0] * made.scalars_a_tile >= n
    assert seen["msm_place"][0] * msm_plan.TILE >= made.pairs
    entries, final = seen["msm_add_pairs"][1][1], seen["msm_add_pairs"][1][-1]
    assert entries.nbytes >= 4 * made.pairs
    assert final.nbytes == made.accumulated * msm.point_bytes


def test_more_entries_than_half_of_an_unsigned_index_are_planned(msm):
    made = msm.shape(1 << 28, max_tables=1)
    assert made.entries > 1 << 31
    starts = layout(made, msm.grid, msm.point_bytes, 128).parts
    assert starts["list"][0] > 1 << 32


def test_what_no_index_reaches_is_refused_with_the_reason(msm):
    with pytest.raises(ValueError, match="more than an entry can name"):
        msm.shape(1 << 29, max_tables=1)


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("tables", [True, False])
def test_a_few_points_more_than_a_power_of_two_are_tuned_as_it_is(group, tables):
    for log_n in range(5, 27):
        assert tuning(group, (1 << log_n) + 8, tables=tables) == tuning(group, 1 << log_n, tables=tables)


@pytest.mark.parametrize("passes", range(1, 6))
@pytest.mark.parametrize("n", [1, 100, 5000, 1 << 20, 1 << 24])
def test_a_share_of_pairs_fits_its_memory(msm, n, passes):
    made = shape(BLS12_381, n, Tuning(12, passes), 256)
    most = msm_plan.batch(made, msm.grid)
    assert most % (1 << passes) == 0 and (1 << passes) <= most <= max(msm_plan.BATCH, 1 << passes)
    parts = layout(made, msm.grid, msm.point_bytes, 128).parts
    assert parts["products"][1] == most * msm.grid.pair * msm.point_bytes // 2
    assert parts["lists"][1] >= (most + most // 2) * msm.grid.pair * msm.point_bytes


@pytest.mark.parametrize("bits", [2, 12, 18, MAX_BITS])
def test_as_many_bucket_sets_as_are_said_are_possible(bits):
    choice = Tuning(bits, 0)
    sets = min(msm_plan.most_sets(choice), msm_plan.windows(BLS12_381, bits))
    made = shape(BLS12_381, 1, choice, -(-msm_plan.windows(BLS12_381, bits) // sets))
    assert made.bins <= msm_plan.MAX_BINS
