"""Numbers that sum up samples. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
