"""Numbers that sum up samples. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MOST_DISTURBANCE = 0.1
"""Share of all processors that other programs may use while times are taken that are to be compared."""


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


def disturbs(others: float, processors: int) -> bool:
    """Whether others used so many of the processors that the times say nothing beside other times."""
    return others > MOST_DISTURBANCE * processors
