"""What each of several flags does to a time, alone and together: designs and their analysis. Pure.

With flags on or off, y(S) is the time with the set S on. The whole effect is D = y(all) - y(none). A flag
has an effect alone, y({i}) - y(none); an effect last, y(all) - y(all without i), which is what reverting it
would give; and a share of D, its Shapley value, the mean effect over all orders of switching flags on
(Shapley 1953). Shares add up to D; effects alone or last do not where flags act on each other.

Designs: all 2^k sets up to four flags. Five and six: the half of the sets that leaves out an even number
of flags (resolution V and VI, Box and Hunter 1961), and none; effects of pairs are then clear, those of three
are taken to be nothing, and what the model leaves of D is told as unexplained. From seven flags on: none,
all, each alone and each left out; a share is then the mean of alone and last.

Every block holds each set once, and none and all twice, in an order drawn by lot. Each number is made within
a block, and its interval comes from the spread over blocks.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from orchestrator.compare.paired import FIXED_ALPHA, Interval, holm, student_interval, student_p

Cell = frozenset[int]
"""The numbers of the flags that are on."""
Block = Mapping[Cell, float]
"""The time of each set in one block."""

_FULL, _HALF = 4, 6
"""Up to so many flags all sets are timed; up to so many, half of them."""


class Class(StrEnum):
    """What a flag turned out to do."""

    SLOWS = "slows"
    SPEEDS = "speeds up"
    NEUTRAL = "neutral"
    INTERACTS = "depends on others"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Effect:
    """A number with its 95 % interval, in the unit of the times."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class FlagEffect:
    """What one flag does."""

    alone: Effect
    last: Effect
    share: Effect
    kind: Class


@dataclass(frozen=True, slots=True)
class Attribution:
    """All flags, and what they leave unexplained of the whole."""

    none: float
    all: float
    whole: Effect
    flags: tuple[FlagEffect, ...]
    unexplained: Effect
    exact: bool
    """Whether shares are Shapley values over all sets, so that nothing can be left over."""


def design(flags: int) -> tuple[Cell, ...]:
    """The sets to time, none first and all last. Raises `ValueError` for no flags."""
    if flags < 1:
        raise ValueError("no flags")
    if flags > _HALF:
        return each_alone_and_left_out(flags)
    sets = [frozenset(on) for n in range(flags + 1) for on in itertools.combinations(range(flags), n)]
    if flags > _FULL:
        sets = [on for on in sets if (flags - len(on)) % 2 == 0 or not on]
    return tuple(sets)


def each_alone_and_left_out(flags: int) -> tuple[Cell, ...]:
    """None, each alone, each left out, and all."""
    everything = frozenset(range(flags))
    alone = [frozenset({i}) for i in range(flags)]
    return tuple(dict.fromkeys((frozenset[int](), *alone, *(everything - one for one in alone), everything)))


def block_order(flags: int) -> tuple[Cell, ...]:
    """The sets of one block before they are shuffled: none and all are there twice."""
    cells = design(flags)
    return (*cells, cells[0], cells[-1])


def attribute(blocks: Sequence[Block], flags: int, threshold: float) -> Attribution:
    """Analyse at least two blocks of the design for so many flags.

    ``threshold``: the smallest share of the time with no flag on that matters.
    """
    everything = frozenset(range(flags))
    per_block = [_effects(block, flags) for block in blocks]
    whole = [block[everything] - block[frozenset()] for block in blocks]
    none = statistics.fmean(block[frozenset()] for block in blocks)
    alone, last, share = ([[one[part][i] for one in per_block] for i in range(flags)] for part in range(3))
    differ = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(alone, last, strict=True)]
    interacts = holm([student_p(values) for values in differ])
    matters = holm([student_p(values) for values in share])
    kinds = [
        _class(share[i], (alone[i], last[i]), interacts[i] and flags > 1, matters[i], threshold * none)
        for i in range(flags)
    ]
    left = [d - sum(one[2]) for d, one in zip(whole, per_block, strict=True)]
    return Attribution(
        none=none,
        all=statistics.fmean(block[everything] for block in blocks),
        whole=_effect(whole),
        flags=tuple(
            FlagEffect(_effect(alone[i]), _effect(last[i]), _effect(share[i]), kinds[i]) for i in range(flags)
        ),
        unexplained=_effect(left),
        exact=flags <= _FULL,
    )


_Effects = tuple[list[float], list[float], list[float]]
"""Alone, last and share of each flag."""


def _effects(block: Block, flags: int) -> _Effects:
    if flags <= _FULL:
        return _of_all_sets(block, flags)
    if flags <= _HALF:
        return _of_model(block, flags)
    none, everything = frozenset[int](), frozenset(range(flags))
    alone = [block[frozenset({i})] - block[none] for i in range(flags)]
    last = [block[everything] - block[everything - {i}] for i in range(flags)]
    return alone, last, [(a + b) / 2 for a, b in zip(alone, last, strict=True)]


def _of_all_sets(block: Block, flags: int) -> _Effects:
    everything = frozenset(range(flags))
    shares = []
    for i in range(flags):
        total = 0.0
        for on in block:
            if i not in on:
                weight = math.factorial(len(on)) * math.factorial(flags - len(on) - 1)
                total += weight * (block[on | {i}] - block[on])
        shares.append(total / math.factorial(flags))
    alone = [block[frozenset({i})] - block[frozenset()] for i in range(flags)]
    return alone, [block[everything] - block[everything - {i}] for i in range(flags)], shares


def _of_model(block: Block, flags: int) -> _Effects:
    """Fit y = b0 + sum of b_i + sum of b_ij over the flags that are on, by least squares."""
    pairs = list(itertools.combinations(range(flags), 2))
    rows = [
        [1.0, *(float(i in on) for i in range(flags)), *(float(i in on and j in on) for i, j in pairs)]
        for on in block
    ]
    fitted = np.linalg.lstsq(np.array(rows), np.array(list(block.values())), rcond=None)[0]
    alone = [float(b) for b in fitted[1 : flags + 1]]
    together = dict(zip(pairs, map(float, fitted[flags + 1 :]), strict=True))
    joint = [sum(b for pair, b in together.items() if i in pair) for i in range(flags)]
    last = [a + b for a, b in zip(alone, joint, strict=True)]
    return alone, last, [a + b / 2 for a, b in zip(alone, joint, strict=True)]


def _class(
    share: Sequence[float],
    alone_and_last: tuple[Sequence[float], Sequence[float]],
    interacts: bool,
    matters: bool,
    least: float,
) -> Class:
    if interacts:
        return Class.INTERACTS
    if matters and abs(statistics.fmean(share)) >= least:
        return Class.SLOWS if statistics.fmean(share) > 0 else Class.SPEEDS
    ends = [end for values in alone_and_last for end in student_interval(values, 2 * FIXED_ALPHA)]
    return Class.NEUTRAL if max(map(abs, ends)) < least else Class.UNKNOWN


def _effect(values: Sequence[float]) -> Effect:
    return Effect(statistics.fmean(values), student_interval(values, FIXED_ALPHA))
