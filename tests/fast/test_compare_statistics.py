"""The statistics of comparisons: how often they err, what they need, and that SciPy's tests agree."""

import math
import random

import pytest
from scipy import stats

from orchestrator.compare.paired import (
    LOOK_ALPHA,
    LOOKS,
    Answer,
    block_ratio,
    compare_blocks,
    holm,
    signed_rank_interval,
    student_interval,
    student_p,
)

SEEDS = 200


def blocks(seed: int, count: int, shift: float, spread: float) -> list[float]:
    lot = random.Random(seed)
    return [lot.gauss(shift, spread) for _ in range(count)]


def looked_at(values: list[float], threshold: float) -> Answer:
    """As a run that may end early does."""
    for count in LOOKS:
        answer = compare_blocks(values[:count], threshold, LOOK_ALPHA).answer
        if answer is not Answer.INCONCLUSIVE:
            break
    return answer


def test_without_an_effect_a_change_is_seldom_found():
    wrong = sum(
        looked_at(blocks(seed, 20, 0, 0.005), 1e-9) in (Answer.REGRESSED, Answer.IMPROVED)
        for seed in range(SEEDS)
    )
    assert wrong <= 0.05 * SEEDS


def test_an_effect_beyond_the_threshold_is_found():
    found = [looked_at(blocks(seed, 20, 0.03, 0.01), 0.01) for seed in range(SEEDS)]
    assert found.count(Answer.REGRESSED) >= 0.98 * SEEDS
    gains = [looked_at(blocks(seed, 20, -0.03, 0.01), 0.01) for seed in range(SEEDS)]
    assert gains.count(Answer.IMPROVED) >= 0.98 * SEEDS


def test_no_effect_is_found_to_be_the_same():
    found = [looked_at(blocks(seed, 20, 0, 0.005), 0.01) for seed in range(SEEDS)]
    assert found.count(Answer.SAME) >= 0.98 * SEEDS


def test_a_steady_drift_cancels_within_a_block():
    """Each sample takes 1 % longer than the one before: A B B A shows nothing, A A B B would show 2 %."""
    times = [round(1e9 * math.exp(0.01 * k)) for k in range(4)]
    assert block_ratio((times[0], times[3]), (times[1], times[2])) == pytest.approx(0, abs=1e-9)
    assert block_ratio((times[0], times[1]), (times[2], times[3])) == pytest.approx(0.02)


def test_one_slow_block_changes_nothing():
    values = [*blocks(1, 11, 0.0, 0.002), 0.5]
    assert compare_blocks(values, 0.01).answer is Answer.INCONCLUSIVE
    values = [*blocks(1, 11, 0.05, 0.002), -0.5]
    assert compare_blocks(values, 0.01).answer is Answer.INCONCLUSIVE


@pytest.mark.parametrize("count", range(2, 6))
def test_few_blocks_decide_nothing(count):
    found = compare_blocks([0.1 + 0.001 * k for k in range(count)], 0.01)
    assert found.answer is Answer.INCONCLUSIVE
    assert found.rank is None
    assert found.wanted > count


def test_a_contaminated_run_decides_nothing():
    assert compare_blocks([0.1] * 8, 0.01, contaminated=True).answer is Answer.CONTAMINATED


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [6, 8, 12])
def test_the_interval_is_that_of_the_signed_rank_test(seed, count):
    """Just inside the interval SciPy's exact test does not exclude the shift, just outside it does."""
    values = blocks(seed, count, 0.01, 0.02)
    low, high = signed_rank_interval(values, 0.05)
    for end, outside in ((low, -1e-9), (high, 1e-9)):
        beyond = stats.wilcoxon([v - end - outside for v in values], method="exact").pvalue
        within = stats.wilcoxon([v - end + outside for v in values], method="exact").pvalue
        assert beyond <= 0.05 < within


@pytest.mark.parametrize("seed", range(8))
def test_student_is_as_scipy_has_it(seed):
    values = blocks(seed, 9, 0.01, 0.02)
    expected = stats.ttest_1samp(values, 0)
    assert student_p(values) == pytest.approx(expected.pvalue)
    assert student_interval(values, 0.05) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_equal_values_are_certain():
    assert student_p([0.0, 0.0]) == 1
    assert student_p([0.1, 0.1]) == 0


def test_of_many_phases_few_count():
    assert holm([0.01, 0.04, 0.03, 0.5]) == [True, False, False, False]
    assert holm([0.001, 0.002, 0.003, 0.5]) == [True, True, True, False]
    assert holm([]) == []
