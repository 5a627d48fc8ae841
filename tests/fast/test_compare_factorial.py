"""What flags do: known effects are found again, by every design."""

import random
from itertools import combinations

import pytest

from orchestrator.compare.factorial import Class, attribute, block_order, design

STORY = {"A1": 5.5, "B1": 5.7, "A2": 0.0, "A4": -1.0, "D4": -0.5}
"""A set of effects in s that would explain 88.9 s becoming 106.0 s."""
TOGETHER = {(0, 1): 5.0, (1, 2): 2.4}
SHARES = (8.0, 9.4, 1.2, -1.0, -0.5)


def truth(on, alone, together, base=88.9):
    return base + sum(alone[i] for i in on) + sum(v for pair, v in together.items() if set(pair) <= on)


def blocks(alone, together, spread=0.0, count=4):
    lot = random.Random(7)
    cells = design(len(alone))
    return [{c: truth(c, alone, together) + lot.gauss(0, spread) for c in cells} for _ in range(count)]


def test_the_story_is_told_apart():
    """Effects alone add up to 9.7 s and effects last to 24.5 s, of 17.1 s; only shares add up."""
    found = attribute(blocks(list(STORY.values()), TOGETHER, spread=0.001), 5, 0.001)
    assert found.whole.value == pytest.approx(17.1, abs=0.01)
    assert [flag.share.value for flag in found.flags] == pytest.approx(SHARES, abs=0.01)
    assert sum(flag.alone.value for flag in found.flags) == pytest.approx(9.7, abs=0.02)
    assert sum(flag.last.value for flag in found.flags) == pytest.approx(24.5, abs=0.02)
    assert found.unexplained.value == pytest.approx(0, abs=0.01)
    kinds = [flag.kind for flag in found.flags]
    assert kinds == [Class.INTERACTS] * 3 + [Class.SPEEDS] * 2


@pytest.mark.parametrize("flags", range(1, 7))
def test_shares_of_any_effects_of_pairs_are_exact(flags):
    lot = random.Random(flags)
    alone = [lot.uniform(-5, 5) for _ in range(flags)]
    together = {pair: lot.uniform(-2, 2) for pair in combinations(range(flags), 2)}
    found = attribute(blocks(alone, together), flags, 0.01)
    for i, flag in enumerate(found.flags):
        joint = sum(v for pair, v in together.items() if i in pair)
        assert flag.alone.value == pytest.approx(alone[i])
        assert flag.last.value == pytest.approx(alone[i] + joint)
        assert flag.share.value == pytest.approx(alone[i] + joint / 2)
    assert found.unexplained.value == pytest.approx(0, abs=1e-9)


def test_three_that_act_together_are_split_by_the_whole_design_and_told_by_the_half():
    def three(flags):
        cells = design(flags)
        return [{c: 10.0 + 6.0 * ({0, 1, 2} <= c) for c in cells} for _ in range(3)]

    assert [f.share.value for f in attribute(three(3), 3, 0.01).flags] == pytest.approx([2, 2, 2])
    left = attribute(three(6), 6, 0.01).unexplained
    assert abs(left.value) > 0.1


def test_many_flags_are_screened_and_what_is_left_is_told():
    alone, together = [1.0] * 8, {(0, 1): 4.0}
    found = attribute(blocks(alone, together, spread=0.001), 8, 0.001)
    assert [f.share.value for f in found.flags[:2]] == pytest.approx([3, 3], abs=0.01)
    assert found.unexplained.value == pytest.approx(0, abs=0.02)
    assert [flag.kind for flag in found.flags[:3]] == [Class.INTERACTS, Class.INTERACTS, Class.SLOWS]


@pytest.mark.parametrize(("flags", "sets"), [(1, 2), (2, 4), (4, 16), (5, 17), (6, 32), (7, 16), (9, 20)])
def test_how_many_sets_a_design_has(flags, sets):
    cells = design(flags)
    assert len(cells) == len(set(cells)) == sets
    assert cells[0] == frozenset() and cells[-1] == frozenset(range(flags))
    assert len(block_order(flags)) == sets + 2


def test_a_flag_that_does_nothing_is_neutral_or_unknown_but_never_a_culprit():
    wrong = 0
    for seed in range(100):
        lot = random.Random(seed)
        cells = design(3)
        noisy = [{c: 100 + 5 * (0 in c) + lot.gauss(0, 0.3) for c in cells} for _ in range(6)]
        found = attribute(noisy, 3, 0.01)
        assert found.flags[0].kind in (Class.SLOWS, Class.INTERACTS)
        wrong += any(flag.kind in (Class.SLOWS, Class.SPEEDS) for flag in found.flags[1:])
    assert wrong <= 5


def test_no_flags_are_no_design():
    with pytest.raises(ValueError):
        design(0)
