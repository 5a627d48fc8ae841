"""Numbers that sum up samples, and the estimates by which two sets of them are compared. Pure.

Paired times are compared by their log-ratios ``ln(b / a)``. Two intervals must agree before anything is
said: the exact signed-rank interval around the Hodges-Lehmann estimate (Hollander and Wolfe, Nonparametric
Statistical Methods, section 3.3), which needs no normal noise, and Student's t interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Summary:
    """Middle and spread of a set of times, in ns."""

    n: int
    median: float
    mad: float
    """Median of the absolute deviations from the median, as it is (not scaled to a normal sigma)."""
    low: int
    high: int


def summarize(values: Sequence[int]) -> Summary:
    """Sum up at least one value."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return Summary(len(values), middle, deviation, min(values), max(values))


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float
    confidence: float
    """What the interval reaches: for the exact interval at least what was asked."""


def log_ratios(before: Sequence[int], after: Sequence[int]) -> list[float]:
    """``ln(after / before)`` of each pair of times; both positive and of one length."""
    return [math.log(b / a) for a, b in zip(before, after, strict=True)]


def signed_rank_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Hodges-Lehmann estimate and exact signed-rank interval of the centre of a symmetric distribution.

    ``None`` where so few values cannot reach the confidence at all (0.95 needs six).
    """
    n = len(values)
    averages = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    tails = _signed_rank_tails(n)
    # The largest k of which P(T < k) is at most half of what may be missed: cut off k averages at each end.
    cut = sum(tail <= (1 - confidence) / 2 for tail in tails)
    if cut == 0:
        return None
    reached = 1 - 2 * tails[cut - 1]
    return Interval(statistics.median(averages), averages[cut - 1], averages[-cut], reached)


def t_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Mean and Student's t interval; ``None`` for fewer than two values."""
    if len(values) < 2:
        return None
    from scipy.stats import t  # slow to import, and only comparisons need it

    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return Interval(mean, mean - reach, mean + reach, confidence)


@cache
def _signed_rank_tails(n: int) -> tuple[float, ...]:
    """P(T <= k), k = 0, 1, ..., of the signed-rank statistic of n values without ties: subsets counted."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    tails, seen = [], 0
    for count in counts:
        seen += count
        tails.append(seen / 2**n)
    return tuple(tails)
