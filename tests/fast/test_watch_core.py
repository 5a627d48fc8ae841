"""The watch's decisions, without a clock, a file or a process."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.model import Absent, Kind, Target
from orchestrator.watch.decide import Build, BuildEnd, Cut, Decider, Doing, Run, Settle
from orchestrator.watch.mounts import Mount, is_silent, mount_of, parse_mounts
from orchestrator.watch.scope import EVERYTHING, NOTHING, Due, Scope, with_users

# What to do next

NAMES = ("a", "b", "c")
GOOD, BAD, CUT = BuildEnd(good=True, made=True), BuildEnd(good=False), BuildEnd(good=False, cut=True)


def due(*names: str) -> Due:
    return Due(frozenset(names))


def started(steps=()) -> Decider:
    """A watch whose first round is over."""
    decider = Decider(steps=steps)
    assert decider.begin() == [Build(EVERYTHING)]
    orders = decider.build_ended(BuildEnd(good=True, made=True, grew=True))
    assert orders == [Build(EVERYTHING, quiet=True)]
    orders = decider.build_ended(BuildEnd(good=True))
    for step in steps:
        assert orders == [Run(step)]
        orders = decider.step_ended(good=True)
    assert orders == [Settle(True)]
    return decider


def test_a_change_is_built_then_everything_is_made_sure_of_then_come_the_steps():
    decider = started(("verify", "bench"))
    assert decider.changed(due("a")) == [Build(due("a"))]
    assert decider.build_ended(GOOD) == [Build(EVERYTHING, quiet=True)]
    assert decider.build_ended(BuildEnd(good=True)) == [Run("verify")]
    assert decider.step_ended(good=True) == [Run("bench")]
    assert decider.step_ended(good=True) == [Settle(True)]


def test_an_edit_during_a_build_cuts_it_off_and_both_are_built():
    decider = started()
    decider.changed(due("a"))
    assert decider.changed(due("b")) == [Cut(Doing.BUILD)]
    assert decider.changed(due("c")) == []
    assert decider.build_ended(CUT) == [Build(due("a", "b", "c"))]
    assert decider.cuts == 1


def test_a_build_that_ended_before_it_could_be_cut_off_is_not_done_again():
    decider = started()
    decider.changed(due("a"))
    decider.changed(due("b"))
    assert decider.build_ended(GOOD) == [Build(due("b"))]


def test_a_save_that_changes_nothing_is_looked_into_after_the_build_at_work():
    """The build may have read the file while it held something else."""
    decider = started()
    decider.doubted(due("a"))
    assert not decider.owed
    decider.changed(EVERYTHING)
    decider.doubted(due("a"))
    assert decider.build_ended(GOOD) == [Build(due("a"))]


def test_a_build_that_waits_for_another_is_not_cut_off():
    decider = started()
    decider.changed(due("a"))
    decider.waiting(True)
    assert decider.changed(due("b")) == []
    decider.waiting(False)
    assert decider.build_ended(GOOD) == [Build(due("b"))]


def test_an_edit_during_a_step_cuts_it_off_and_the_steps_begin_anew():
    decider = started(("verify", "bench"))
    decider.changed(due("a"))
    decider.build_ended(GOOD)
    decider.build_ended(BuildEnd(good=True))
    assert decider.changed(due("b")) == [Cut(Doing.STEP)]
    assert decider.step_ended(good=False) == [Build(due("b"))]
    decider.build_ended(BuildEnd(good=True))  # undone in the meantime: nothing was made
    assert decider.build_ended(BuildEnd(good=True)) == [Run("verify")]


def test_no_step_runs_while_a_target_fails_and_all_run_once_none_does():
    decider = started(("bench",))
    decider.changed(due("a"))
    decider.build_ended(BuildEnd(good=False, made=True))
    assert decider.build_ended(BAD) == [Settle(False)]
    assert decider.changed(due("a")) == [Build(due("a"))]
    decider.build_ended(BuildEnd(good=True))
    assert decider.build_ended(BuildEnd(good=True)) == [Run("bench")]


def test_a_step_that_fails_ends_the_round_and_is_not_repeated_without_a_reason():
    decider = started(("verify", "bench"))
    decider.changed(due("a"))
    decider.build_ended(GOOD)
    decider.build_ended(BuildEnd(good=True))
    assert decider.step_ended(good=False) == [Settle(False)]
    decider.changed(due("b"))
    decider.build_ended(BuildEnd(good=True))
    assert decider.build_ended(BuildEnd(good=True)) == [Settle(True)]
    assert decider.asked() == [Build(EVERYTHING)]
    assert decider.build_ended(BuildEnd(good=True)) == [Run("verify")]


def test_asked_during_a_build_everything_is_looked_at_after_it():
    decider = started(("verify",))
    decider.changed(due("a"))
    assert decider.asked() == []
    assert decider.build_ended(GOOD) == [Build(EVERYTHING)]
    assert decider.build_ended(BuildEnd(good=True)) == [Run("verify")]
    assert decider.asked() == [Cut(Doing.STEP)]


def test_an_error_in_the_targets_is_said_and_waited_for():
    decider = started(("verify",))
    decider.changed(EVERYTHING)
    assert decider.build_ended(BuildEnd(good=False, broken=True)) == [Settle(False)]
    assert decider.changed(EVERYTHING) == [Build(EVERYTHING)]


class World:
    """Obeys a decider, and keeps count of what is stale and of what went through the steps."""

    def __init__(self) -> None:
        self.decider = Decider(steps=("verify", "bench"))
        self.stale = set(NAMES)
        self.unchecked = True
        self.at_work: Build | Run | None = None
        self.obey(self.decider.begin())

    def obey(self, orders) -> None:
        for order in orders:
            if isinstance(order, Cut):
                assert self.at_work, "there is nothing to cut off"
            elif isinstance(order, Settle):
                assert not self.at_work
                assert not order.good or not (self.stale or self.unchecked), "said to be done"
            else:
                assert not self.at_work, "two things at a time"
                assert isinstance(order, Build) or not self.stale, "a step ran on something stale"
                self.at_work = order

    def save(self, names) -> None:
        self.stale |= names
        self.obey(self.decider.changed(Due(frozenset(names))))

    def end(self, *, cut: bool, fails: bool) -> None:
        """What is at work ends; it can be cut off only if something is owed."""
        work, self.at_work = self.at_work, None
        owed = bool(self.decider.owed)
        if isinstance(work, Run):
            if work.step == "bench" and not owed and not fails:
                self.unchecked = False
            self.obey(self.decider.step_ended(good=not owed and not fails))
            self.unchecked = self.unchecked and not (fails and not owed)  # not repeated without a reason
        elif owed and cut:
            self.obey(self.decider.build_ended(CUT))
        else:
            names = set(NAMES) if work.due.everything else set(work.due.names)
            made = bool(self.stale & names) and not fails
            # A save since the build began may have come too late for it.
            self.stale -= set() if fails else names - set(self.decider.owed.names)
            self.unchecked = self.unchecked or made
            self.obey(self.decider.build_ended(BuildEnd(good=not fails, made=made)))


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sets(st.sampled_from(NAMES)), st.booleans(), st.booleans()), max_size=30))
def test_whatever_happens_all_is_built_and_checked_in_the_end_and_one_thing_done_at_a_time(happenings):
    world = World()
    for names, cut, fails in happenings:
        if names:
            world.save(names)
        elif world.at_work:
            world.end(cut=cut, fails=fails and not isinstance(world.at_work, Build))
    world.save({"a"})
    for _ in range(12):
        if world.at_work:
            world.end(cut=True, fails=False)
    assert not world.at_work and not world.stale and not world.unchecked and not world.decider.owed


# What a watch is about


def test_users_are_affected_and_only_those_watched():
    targets = [
        Target("a", Kind.OBJECT, ("a.cu",)),
        Target("link", Kind.DEVICE_LINK, (), uses=("a",)),
        Target("program", Kind.EXECUTABLE, (), uses=("a", "link")),
        Target("other", Kind.CUBIN, ("o.cu",)),
    ]
    watched = frozenset({"a", "link", "program", "other"})
    assert with_users(frozenset({"a"}), targets, watched) == {"a", "link", "program"}
    assert with_users(frozenset({"a"}), targets, frozenset({"program"})) == {"program"}


def test_records_that_disagree_about_a_file_say_nothing():
    scope = Scope()
    scope.read("x.cuh", frozenset({"a"}), "sha256:1")
    scope.read("x.cuh", frozenset({"b"}), "sha256:1")
    assert scope.recorded["x.cuh"] == "sha256:1" and scope.files["x.cuh"] == {"a", "b"}
    scope.read("x.cuh", frozenset({"c"}), "sha256:2")
    assert scope.recorded["x.cuh"] is None


def test_what_is_due_adds_up():
    assert not NOTHING and EVERYTHING and due("a")
    assert due("a") | due("b") == due("a", "b")
    assert (due("a") | EVERYTHING).everything


def test_absent_names_of_several_targets_are_kept_once():
    scope = Scope()
    absent: Absent = (("inc", ("x.h", "y.h")),)
    scope.miss(absent, frozenset({"a"}))
    scope.miss(absent, frozenset({"b"}))
    assert scope.absent == {("inc", ("x.h", "y.h")): {"a", "b"}}


# File systems

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/my\040share rw,relatime - nfs4 host:/x rw,vers=4.2
31 22 0:41 / /home/u/far rw - fuse.sshfs u@h: rw
32 22 0:42 / /work rw master:3 - 9p share rw
33 22 0:43 / /work rw - ext4 /dev/sdb rw
a line that is none
"""


def test_the_mount_of_a_path_is_the_longest_and_the_latest():
    mounts = parse_mounts(MOUNTS)
    assert mount_of("/mnt/my share/p", mounts) == Mount("/mnt/my share", "nfs4")
    assert mount_of("/home/u/farther", mounts) == Mount("/", "ext4")
    assert mount_of("/home/u/far", mounts) == Mount("/home/u/far", "fuse.sshfs")
    assert mount_of("/work/p", mounts) == Mount("/work", "ext4")
    assert mount_of("/x", ()) is None


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p", "virtiofs", "cifs", "fuse"])
def test_shared_file_systems_are_silent(kind):
    assert is_silent(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk"])
def test_local_file_systems_are_not(kind):
    assert not is_silent(kind)
