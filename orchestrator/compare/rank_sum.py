"""Whether one set of times is really faster or slower than another. Pure.

The shift between two sets is estimated as Hodges and Lehmann do (the median of all differences between one
time of each, here of logarithms, so that it is a ratio), with the exact interval that belongs to the rank-sum
test of Mann and Whitney: no assumption about the shape of the spread, and few samples give a wide interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SURE = 0.95
SAME_WITHIN = 0.01
"""Two sets count as the same if the whole interval lies within this share of no difference."""
_TOO_FEW = "not enough samples to tell"
_EXACT_PAIRS = 2500
"""With more pairs the normal approximation of the rank sum is as good."""


class Answer(StrEnum):
    """What the samples show."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Delta:
    """The later set beside the earlier one; ratios less one, so that -0.03 is 3 % faster."""

    answer: Answer
    shift: float
    low: float | None
    """Ends of the interval at `SURE`; ``None`` if so few samples allow none."""
    high: float | None
    counts: tuple[int, int]
    doubt: str = ""
    """Why the answer is unknown whatever the times say."""


def compare_times(earlier: Sequence[int], later: Sequence[int], doubt: str = "") -> Delta:
    """Compare two sets of positive times, at least one each."""
    pairs = sorted(math.log(b / a) for a in earlier for b in later)
    counts = (len(earlier), len(later))
    shift = math.expm1(statistics.median(pairs))
    cut = _cut(*counts)
    if cut == 0:
        return Delta(Answer.UNKNOWN, shift, None, None, counts, doubt)
    low, high = math.expm1(pairs[cut - 1]), math.expm1(pairs[-cut])
    if doubt:
        answer = Answer.UNKNOWN
    elif high < 0:
        answer = Answer.FASTER
    elif low > 0:
        answer = Answer.SLOWER
    elif max(-low, high) <= SAME_WITHIN:
        answer = Answer.SAME
    else:
        answer = Answer.UNKNOWN
    return Delta(answer, shift, low, high, counts, doubt)


def _cut(n: int, m: int) -> int:
    """The rank of the pair that ends the interval at `SURE`, from either side; 0 if there is none.

    The largest k with P(U < k) <= (1 - SURE) / 2, U being the rank-sum statistic of two equal populations.
    """
    if n * m > _EXACT_PAIRS:
        sigma = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(n * m / 2 - statistics.NormalDist().inv_cdf((1 + SURE) / 2) * sigma))
    ways = _ways(n, m)
    allowed = math.comb(n + m, n) * (1 - SURE) / 2
    below = cut = 0
    while cut < len(ways) and below + ways[cut] <= allowed:
        below += ways[cut]
        cut += 1
    return cut


def _ways(n: int, m: int) -> list[int]:
    """How many of the orders of n + m values have each value of U: coefficients of a Gaussian binomial."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways


def delta_text(delta: Delta) -> str:
    """Such as ``3.1 % faster (95 % interval 1.9 to 4.4 % faster)``."""
    beside = f"{delta.counts[1]} samples beside {delta.counts[0]}"
    if delta.doubt:
        return f"{_signed(delta.shift)} %, which says nothing: {delta.doubt}"
    if delta.low is None or delta.high is None:
        return f"{_TOO_FEW}: {beside}"
    interval = f"{_signed(delta.low)} to {_signed(delta.high)} %"
    if delta.answer is Answer.UNKNOWN:
        return f"{_TOO_FEW}: anything from {interval} fits ({beside})"
    if delta.answer is Answer.SAME:
        return f"the same within {SAME_WITHIN:.0%} ({interval})"
    return f"{_signed(delta.shift)} %, {delta.answer} (95 % interval {interval}; {beside})"


def _signed(share: float) -> str:
    return f"{share * 100:+.1f}"
