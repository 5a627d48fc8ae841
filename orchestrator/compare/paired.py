"""Whether B is slower or faster than A, from blocks in which both were sampled side by side. Pure.

A block holds two samples of each in the order A B B A or B A A B, so that a machine that grows slower at an
even pace adds as much to A as to B. It gives one number, the mean of ln(t_B / t_A) over its two pairs.
Blocks, not samples, are the unit, as samples of one process have its luck in common (Kalibera and Jones,
"Rigorous benchmarking in reasonable time", section 5).

The shift is Hodges and Lehmann's estimate with the exact interval of Wilcoxon's signed-rank test, and beside
it stands Student's interval of the mean. A change counts where both exclude zero, "the same" where Student's
90 % interval lies within the threshold on both sides (two one-sided tests at 5 %).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import stdtr, stdtrit

LEAST_BLOCKS = 6
"""With fewer no interval of 95 % exists: 2 / 2^5 > 5 %."""
LOOKS = (8, 12, 16, 20)
"""Numbers of blocks after which a run that may end early looks at them."""
LOOK_ALPHA = 0.018
"""Error allowed at each of four looks, so that all of them together err in 5 % (Pocock 1977, table 1)."""
FIXED_ALPHA = 0.05
_SAME_ALPHA = 0.10

Interval = tuple[float, float]


class Answer(StrEnum):
    """What a comparison says of the second set of times."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    CONTAMINATED = "contaminated"


@dataclass(frozen=True, slots=True)
class Paired:
    """What the blocks say; ratios less one, so that -0.03 is 3 % faster."""

    answer: Answer
    blocks: int
    shift: float
    rank: Interval | None
    """Of the signed-rank test; `None` where so few blocks have none."""
    mean: Interval
    """Student's."""
    sure: float
    """Confidence of both intervals."""
    wanted: int | None
    """How many blocks would perhaps decide, if these do not."""


def block_ratio(first: Sequence[int], second: Sequence[int]) -> float:
    """The mean of ln(t_B / t_A) of one block: times of A and of B, paired as they were taken."""
    return statistics.fmean(math.log(b / a) for a, b in zip(first, second, strict=True))


def compare_blocks(
    ratios: Sequence[float], threshold: float, alpha: float = FIXED_ALPHA, *, contaminated: bool = False
) -> Paired:
    """Decide on at least two blocks. ``threshold``: the smallest change that matters, such as 0.01.

    ``contaminated``: too many were disturbed for any answer to count.
    """
    rank = signed_rank_interval(ratios, alpha)
    mean = student_interval(ratios, alpha)
    shift = statistics.median(_walsh(ratios))
    answer, wanted = Answer.CONTAMINATED if contaminated else Answer.INCONCLUSIVE, None
    if rank is not None and not contaminated:
        low, high = min(rank[0], mean[0]), max(rank[1], mean[1])
        same = student_interval(ratios, _SAME_ALPHA)
        answer = decide(math.expm1(shift), low, high, threshold, (math.expm1(same[0]), math.expm1(same[1])))
    if answer is Answer.INCONCLUSIVE:
        wanted = _wanted(ratios, threshold)
    return Paired(
        answer,
        len(ratios),
        math.expm1(shift),
        _shares(rank) if rank else None,
        _shares(mean),
        1 - alpha,
        wanted,
    )


def decide(shift: float, low: float, high: float, threshold: float, same: Interval) -> Answer:
    """The answer for a shift and the interval [low, high] about it, all less one.

    ``same`` is the interval that must lie within the threshold for the times to count as equal.
    """
    if low > 0 and shift >= threshold:
        return Answer.REGRESSED
    if high < 0 and shift <= -threshold:
        return Answer.IMPROVED
    if max(-same[0], same[1]) < threshold:
        return Answer.SAME
    return Answer.INCONCLUSIVE


def signed_rank_interval(values: Sequence[float], alpha: float) -> Interval | None:
    """The interval for the middle of a symmetric spread that belongs to the exact signed-rank test."""
    cut = _cut(len(values), alpha)
    if cut == 0:
        return None
    means = sorted(_walsh(values))
    return means[cut - 1], means[-cut]


def student_interval(values: Sequence[float], alpha: float) -> Interval:
    """Student's interval for the mean of at least two values."""
    n = len(values)
    middle = statistics.fmean(values)
    half = float(stdtrit(n - 1, 1 - alpha / 2)) * statistics.stdev(values) / math.sqrt(n)
    return middle - half, middle + half


def student_p(values: Sequence[float]) -> float:
    """Two-sided p of a mean of zero, for at least two values; 0 where all are equal and not zero."""
    n, middle, spread = len(values), statistics.fmean(values), statistics.stdev(values)
    if spread == 0:
        return 0.0 if middle else 1.0
    return 2 * float(stdtr(n - 1, -abs(middle) / (spread / math.sqrt(n))))


def holm(ps: Sequence[float], alpha: float = FIXED_ALPHA) -> list[bool]:
    """Which of several tests count when all of them together may err in ``alpha`` of cases (Holm 1979)."""
    counted = [False] * len(ps)
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        if ps[index] > alpha / (len(ps) - rank):
            break
        counted[index] = True
    return counted


def signed(share: float) -> str:
    """A change less one, such as ``+3.1 %``."""
    return f"{share * 100:+.1f} %"


def _walsh(values: Sequence[float]) -> list[float]:
    return [(a + b) / 2 for i, a in enumerate(values) for b in values[i:]]


def _cut(n: int, alpha: float) -> int:
    """The rank of the mean of two that ends the interval, from either side; 0 if there is none.

    The largest k with P(W < k) <= alpha / 2, W being the sum of a random subset of the ranks 1 to n.
    """
    ways = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    below = cut = 0
    while cut < len(ways) and below + ways[cut] <= alpha / 2 * 2**n:
        below += ways[cut]
        cut += 1
    return cut


def _wanted(ratios: Sequence[float], threshold: float) -> int | None:
    """Blocks after which an interval of this spread would lie on one side of zero or within the threshold."""
    middle, spread = abs(statistics.fmean(ratios)), statistics.stdev(ratios)
    margin = max(middle, threshold - middle) if middle < threshold else middle
    if margin <= 0 or spread == 0:
        return None
    # Student's factor is about 2.2 at the numbers of blocks at hand.
    return max(LEAST_BLOCKS, len(ratios) + 1, math.ceil((2.2 * spread / margin) ** 2))


def _shares(interval: Iterable[float]) -> Interval:
    low, high = (math.expm1(end) for end in interval)
    return low, high
