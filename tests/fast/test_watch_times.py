"""Times of two rounds beside each other, and benchmarks that do not count."""

import random
import statistics
from dataclasses import replace

import pytest

from orchestrator.compare.rank_sum import Answer, compare_times, delta_text
from orchestrator.watch.timing import Timed, parse_bench, timed_fields


def test_few_samples_never_tell():
    """With three beside three, even times that lie far apart come about by chance once in ten."""
    delta = compare_times([100, 101, 102], [10, 11, 12])
    assert delta.answer is Answer.UNKNOWN and delta.low is None
    assert "not enough samples to tell: 3 samples beside 3" in delta_text(delta)


def test_a_clear_change_is_told_with_its_interval():
    delta = compare_times([1000, 1010, 990, 1005, 995], [900, 905, 895, 910, 890])
    assert delta.answer is Answer.FASTER and -0.12 < delta.low < delta.shift < delta.high < -0.08
    assert "-10.0 %, faster (95 % interval" in delta_text(delta)
    assert compare_times([900] * 5, [1000] * 5).answer is Answer.SLOWER


def test_a_wide_interval_is_not_called_no_change():
    delta = compare_times([100, 140, 90, 120, 95], [105, 130, 100, 98, 115])
    assert delta.answer is Answer.UNKNOWN and delta.low < 0 < delta.high
    assert "anything from" in delta_text(delta)


def test_a_narrow_interval_around_nothing_is_the_same():
    delta = compare_times([1000, 1001, 999, 1002, 998], [1000, 1001, 999, 1002, 999])
    assert delta.answer is Answer.SAME and delta_text(delta).startswith("the same within 1%")


@pytest.mark.parametrize(("sizes", "rank"), [((5, 5), 3), ((10, 10), 24), ((4, 4), 1), ((3, 5), 1)])
def test_the_interval_ends_at_the_ranks_of_the_published_tables(sizes, rank):
    """Mann and Whitney's critical values at 5 %, two-sided: 2, 23, 0 and 0; the interval ends one further."""
    n, m = sizes
    earlier, later = [10**9 + i for i in range(n)], [10**9 + 1000 * (i + 1) for i in range(m)]
    pairs = sorted(b / a - 1 for a in earlier for b in later)
    assert compare_times(earlier, later).low == pytest.approx(pairs[rank - 1], abs=1e-12)


def test_one_interval_in_twenty_misses_at_most():
    random.seed(3)
    missed = sum(
        compare_times(
            [round(random.lognormvariate(14, 0.05)) for _ in range(6)],
            [round(random.lognormvariate(14, 0.05)) for _ in range(6)],
        ).answer
        in (Answer.FASTER, Answer.SLOWER)
        for _ in range(1000)
    )
    assert missed < 75


def test_many_samples_are_compared_as_well():
    random.seed(4)
    before = [round(random.gauss(1e6, 1e4)) for _ in range(60)]
    after = [round(random.gauss(1.02e6, 1e4)) for _ in range(60)]
    delta = compare_times(before, after)
    assert delta.answer is Answer.SLOWER and delta.low < 0.02 < delta.high
    assert delta.shift == pytest.approx(statistics.median(after) / statistics.median(before) - 1, abs=0.005)


def test_times_taken_beside_other_programs_say_nothing():
    before = Timed("10:00:00", (1000, 1001, 1002, 1003, 1004), "r1", others=0.1, processors=2)
    after = Timed("10:01:00", (2000, 2001, 2002, 2003, 2004), "r2", others=0.8, processors=2)
    (against,) = timed_fields(after, before, before)["against"]
    assert against["answer"] == "unknown"
    assert against["text"].endswith("says nothing: other programs used 0.8 of 2 processors at 10:01:00")
    (against,) = timed_fields(replace(after, others=0.1), before, before)["against"]
    assert against["answer"] == "slower"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "it gave no result"),
        ("[]", "it gave no result"),
        ("7", "it gave no result"),
        ("[" * 100_000, "it gave no result"),
        ("9" * 9999, "it gave no result"),
        ('{"error": "no GPU", "remedy": ""}', "no GPU"),
        ('{"runs": [{"state": "broken", "error": "the worker died"}]}', "broken: the worker died"),
        (
            '{"runs": [{"state": "refused", "verdicts": [{"findings": [{"message": "k is stale"}]}]}]}',
            "refused: k is stale",
        ),
    ],
)
def test_a_bench_that_does_not_count_says_why(said, why):
    assert parse_bench(said) == ("", why)
