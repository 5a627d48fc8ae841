"""Tapes: the same calls again, in order; failed work leaves none; what arguments point to stays alive."""

from __future__ import annotations

import gc
import weakref

import pytest

from prover.backends.cuda_tape import Tapes, put


def test_the_second_time_repeats_what_was_put_and_works_nothing_out():
    done, worked_out, tapes = [], [], Tapes()

    def work() -> None:
        worked_out.append(1)
        put(done.append, "a")
        put(done.append, "b")

    for _ in range(3):
        tapes.play("name", work)
    assert done == ["a", "b"] * 3 and worked_out == [1]


def test_tapes_are_told_apart_by_name():
    done, tapes = [], Tapes()
    for name in (("msm", 1), ("msm", 2), ("msm", 1)):
        tapes.play(name, lambda name=name: put(done.append, name))
    assert done == [("msm", 1), ("msm", 2), ("msm", 1)]


def test_work_that_fails_leaves_no_tape_and_no_recording():
    done, tapes, faults = [], Tapes(), [True, False]

    def work() -> None:
        put(done.append, 1)
        if faults.pop(0):
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        tapes.play("name", work)
    put(done.append, 2)  # on no tape
    tapes.play("name", work)
    tapes.play("name", work)
    assert done == [1, 2, 1, 1]


def test_what_arguments_point_to_lives_as_long_as_the_tape():
    class Arguments:
        pass

    tapes = Tapes()

    def work() -> weakref.ref:
        packed = Arguments()
        put(id, packed and 7, keep=packed)
        seen.append(weakref.ref(packed))

    seen: list[weakref.ref] = []
    tapes.play("name", work)
    gc.collect()
    assert seen[0]() is not None
    del tapes
    gc.collect()
    assert seen[0]() is None


def test_nothing_is_kept_outside_of_recording():
    done = []
    put(done.append, 1)
    Tapes().play("name", lambda: None)
    put(done.append, 2)
    assert done == [1, 2]
