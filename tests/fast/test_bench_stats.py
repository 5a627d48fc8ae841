"""Estimates against independent implementations, known tables and simulation."""

import math
import random

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats import log_ratios, signed_rank_interval, t_interval

numbers = st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=14, unique=True)


def test_log_ratios_are_of_pairs():
    assert log_ratios([100, 200], [200, 100]) == pytest.approx([math.log(2), -math.log(2)])
    with pytest.raises(ValueError):
        log_ratios([1], [1, 2])


@pytest.mark.parametrize(("n", "reached"), [(6, 0.96875), (7, 0.953125), (8, 0.9609375), (10, 0.951171875)])
def test_the_exact_interval_reaches_what_the_published_tables_say(n, reached):
    """Critical values of the signed-rank statistic at 0.05 two-sided: 0, 2, 3, 8 for n = 6, 7, 8, 10."""
    assert signed_rank_interval([float(i) for i in range(n)], 0.95).confidence == pytest.approx(reached)


@pytest.mark.parametrize("n", range(6))
def test_too_few_values_decide_nothing(n):
    assert signed_rank_interval([float(i) for i in range(n)], 0.95) is None


@given(numbers)
def test_the_interval_holds_just_the_centres_that_the_test_accepts(values):
    """scipy's exact test, at a centre inside and beyond each end, agrees with the interval."""
    interval = signed_rank_interval(values, 0.95)
    assert interval.low <= interval.estimate <= interval.high

    def p(centre: float) -> float:
        return scipy.stats.wilcoxon([v - centre for v in values], method="exact").pvalue

    step = 1e-6 + 1e-9 * max(map(abs, values))
    averages = {(a + b) / 2 for i, a in enumerate(values) for b in values[i:]}
    for end, outwards in ((interval.low, -step), (interval.high, step)):
        if min(abs(end + outwards - average) for average in averages) > step / 2:
            assert p(end + outwards) <= 0.05


def test_the_t_interval_agrees_with_scipy():
    values = [0.01, 0.03, 0.02, -0.01, 0.025, 0.04]
    ours = t_interval(values, 0.95)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert t_interval([1.0], 0.95) is None


@pytest.mark.parametrize("n", [6, 8, 12])
def test_both_intervals_cover_the_truth_as_often_as_they_say(n):
    """300 fixed draws each; at 0.95 a count below 271 has a probability under one in a thousand."""
    rng = random.Random(n)
    draws = [[rng.gauss(0.02, 0.01) for _ in range(n)] for _ in range(300)]
    for interval in (signed_rank_interval, t_interval):
        covered = sum((i := interval(draw, 0.95)).low <= 0.02 <= i.high for draw in draws)
        assert covered >= 271
