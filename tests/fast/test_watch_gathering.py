"""When a burst of saves is over, without a clock or a file."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.watch.gathering import (
    ANYWHERE,
    GONE_SECONDS,
    HELD_SECONDS,
    HOLD_SECONDS,
    LONGEST_SECONDS,
    QUIET_SECONDS,
    STORM_PLACES,
    STORM_SECONDS,
    WRITING_SECONDS,
    Gathering,
    Notice,
    Sort,
)

K = ("/p/src", "k.cu")


def gathered(*notices: tuple[float, Sort], place=K) -> Gathering:
    gathering = Gathering()
    for when, sort in notices:
        gathering.take(Notice(place, sort), when)
    return gathering


# When a burst is over


def test_without_notices_there_is_nothing_to_wait_for():
    assert not Gathering() and Gathering().rests_at() is None


def test_a_closed_file_is_at_rest_at_once():
    assert gathered((1.0, Sort.WRITING), (1.2, Sort.WRITTEN)).rests_at() == 1.2 + QUIET_SECONDS


def test_half_a_save_is_waited_for():
    """Cut to nothing, or partly written, and not closed."""
    assert gathered((1.0, Sort.WRITTEN), (1.2, Sort.WRITING)).rests_at() == 1.2 + WRITING_SECONDS


def test_a_change_of_mode_does_not_end_a_write():
    assert gathered((1.0, Sort.WRITING), (1.1, Sort.TOUCHED)).rests_at() == 1.1 + WRITING_SECONDS
    assert gathered((1.0, Sort.TOUCHED)).rests_at() == 1.0 + QUIET_SECONDS


def test_a_name_that_vanished_has_time_to_come_back():
    gathering = gathered((1.0, Sort.GONE))
    assert gathering.rests_at() == 1.0 + GONE_SECONDS
    gathering.take(Notice(K, Sort.WRITTEN), 1.05)
    assert gathering.rests_at() == 1.05 + QUIET_SECONDS


def test_many_files_at_once_are_gathered():
    gathering = Gathering()
    for number in range(STORM_PLACES):
        gathering.take(Notice(("/p", str(number)), Sort.WRITTEN), number * 0.01)
    last = (STORM_PLACES - 1) * 0.01
    assert gathering.rests_at() == last + STORM_SECONDS
    assert set(gathering.release()) == {("/p", str(number)) for number in range(STORM_PLACES)}
    assert not gathering


def test_a_file_that_is_written_all_the_time_blocks_nothing():
    gathering = Gathering()
    for number in range(1000):
        gathering.take(Notice(K, Sort.WRITING), number * 0.1)
        assert gathering.rests_at() <= LONGEST_SECONDS


def test_a_burst_is_held_while_a_file_is_open_and_not_for_ever():
    gathering = gathered((1.0, Sort.WRITING))
    assert gathering.unfinished() == [K]
    assert gathering.hold(2.5) and gathering.rests_at() == 2.5 + HOLD_SECONDS
    assert gathering.hold(40.0) and gathering.rests_at() == 40.0 + HOLD_SECONDS
    assert not gathering.hold(1.0 + HELD_SECONDS)
    gathering.take(Notice(K, Sort.WRITTEN), 41.0)
    assert not gathering.unfinished() and gathering.rests_at() <= 41.0 + QUIET_SECONDS


def test_patience_makes_it_wait_longer():
    gathering = gathered((1.0, Sort.WRITTEN))
    gathering.patience = 4
    assert gathering.rests_at() == 1.0 + 4 * QUIET_SECONDS


@given(st.lists(st.tuples(st.sampled_from(Sort), st.sampled_from("abc"), st.floats(0, 2)), min_size=1))
def test_a_burst_ends_after_its_last_notice_and_not_too_late(steps):
    gathering, now = Gathering(), 0.0
    for sort, name, wait in steps:
        now += wait
        gathering.take(Notice(("/p", name), sort), now)
    rest = gathering.rests_at()
    first = next(wait for _, _, wait in steps)
    assert min(now, first + LONGEST_SECONDS) <= rest <= max(now, first + LONGEST_SECONDS)
    assert set(gathering.release()) == {("/p", name) for _, name, _ in steps}


def test_lost_notices_stand_for_anything():
    gathering = Gathering()
    gathering.take(Notice(ANYWHERE, Sort.LOST), 1.0)
    assert gathering.release() == {ANYWHERE: Sort.LOST}
