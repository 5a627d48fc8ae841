"""Where a watch looks, and that what happens there is noticed, by events and by looking."""

import errno
import os
import queue
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.watch import inotify as inotify_module
from orchestrator.watch import observer as observer_module
from orchestrator.watch.gathering import ANYWHERE, Sort
from orchestrator.watch.inotify import LimitReached
from orchestrator.watch.mounts import Mount
from orchestrator.watch.observer import Observer, events_come
from orchestrator.watch.places import find_places
from orchestrator.watch.scope import Scope
from orchestrator.watch.writers import open_for_writing

A = frozenset({"a"})


def scope_of(files=(), absent=()):
    scope = Scope()
    for path in files:
        scope.read(path, A)
    for folder, names in absent:
        scope.miss(((folder, names),), A)
    return scope


@pytest.fixture
def root(tmp_path):
    tmp_path = Path(os.path.realpath(tmp_path))
    (tmp_path / "p" / "src").mkdir(parents=True)
    (tmp_path / "p" / "src" / "k.cu").write_text("1")
    return tmp_path / "p"


def places(root, **what):
    found = find_places(str(root), scope_of(**what))
    return {
        (str(Path(f).relative_to(root.parent)), n): e
        for f, es in found.folders.items()
        for n, e in es.items()
    }


def test_a_file_and_the_folders_on_its_way_count(root):
    found = places(root, files=["src/k.cu"])
    assert {place: entry.leaf for place, entry in found.items()} == {
        ("p", "src"): False,
        ("p/src", "k.cu"): True,
    }
    assert found["p/src", "k.cu"].shown == "src/k.cu"


def test_a_missing_folder_counts_where_it_would_appear(root):
    found = places(root, absent=[("later/deep", ("x.h",)), ("src", ("y.h",))])
    assert found["p", "later"].leaf is False
    assert found["p/src", "y.h"].leaf is True
    assert not any(name == "x.h" for _folder, name in found)


def test_links_count_with_all_that_they_lead_through(root):
    outside = root.parent / "lib-2"
    outside.mkdir()
    (outside / "h.cuh").write_text("")
    (root.parent / "lib").symlink_to("lib-2")
    (root / "inc").symlink_to("../lib")
    (root / "src" / "l.cu").symlink_to("k.cu")
    found = places(root, files=["inc/h.cuh", "src/l.cu"])
    assert set(found) == {
        ("p", "inc"), ("p", "src"), (".", "lib"), ("lib-2", "h.cuh"), ("p/src", "l.cu"), ("p/src", "k.cu"),
    }  # fmt: skip
    assert found["p/src", "k.cu"].shown == "src/l.cu"


def test_links_in_a_circle_end(root):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "c.cu").symlink_to("c.cu")
    assert places(root, files=["a/x.cu", "c.cu"])


def test_folders_outside_are_watched_for_their_own_fate_alone(root):
    found = find_places(str(root), scope_of(files=["/usr/include/stdio.h"]))
    assert {"/usr", "/usr/include"} <= found.ways
    assert list(found.folders) == ["/usr/include"]


class Watched:
    """An observer and what it told."""

    def __init__(self, root, *, poll=False, **what):
        self.root, self.notes = root, []
        self.notices = queue.SimpleQueue()
        probe = root / "build"
        probe.mkdir(exist_ok=True)
        self.observer = Observer(root, probe, self.notices.put, self.notes.append, poll=poll)
        self.grew = self.set(**what)

    def set(self, **what):
        return self.observer.set(find_places(str(self.root), scope_of(**what)))

    def until(self, place, *sorts):
        """The sorts told of a place, up to one of ``sorts``."""
        told = []
        while not told or told[-1] not in sorts:
            notice = self.notices.get(timeout=30)
            if (Path(notice.place[0]), notice.place[1]) == place:
                told.append(notice.sort)
        return told


@pytest.fixture(params=["events", "looking"])
def watched(request, root):
    made = []

    def make(**what):
        made.append(Watched(root, poll=request.param == "looking", **what))
        return made[-1]

    yield make
    for one in made:
        one.observer.close()


def test_every_way_to_save_is_noticed_and_its_end_too(root, watched):
    path = root / "src" / "k.cu"
    place = (root / "src", "k.cu")
    watch = watched(files=["src/k.cu"])
    assert watch.grew
    with path.open("w") as file:
        file.write("2")
        file.flush()
        assert watch.until(place, Sort.WRITING)[-1] is Sort.WRITING
    watch.until(place, Sort.WRITTEN)
    other = root / "src" / "k.cu.new"
    other.write_text("33")
    other.rename(path)
    watch.until(place, Sort.WRITTEN)
    path.unlink()
    watch.until(place, Sort.GONE)
    other.write_text("444")
    os.link(other, path)
    watch.until(place, Sort.WRITTEN)
    path.unlink()
    path.symlink_to("k.cu.new")
    watch.until(place, Sort.WRITTEN)


def test_names_that_do_not_matter_are_passed_over(root, watched):
    watch = watched(files=["src/k.cu"], absent=[("src", ("x.h",))])
    (root / "src" / "unrelated").write_text("")
    (root / "src" / "x.h").write_text("")
    watch.until((root / "src", "x.h"), Sort.WRITTEN)
    assert not watch.notices.qsize()


def test_places_come_and_go(root, watched):
    watch = watched(files=["src/k.cu"], absent=[("later", ("x.h",))])
    (root / "later").mkdir()
    watch.until((root, "later"), Sort.WRITTEN, Sort.WRITING)
    assert watch.set(files=["src/k.cu"], absent=[("later", ("x.h",))])
    assert not watch.set(files=["src/k.cu"], absent=[("later", ("x.h",))])
    (root / "later" / "x.h").write_text("")
    watch.until((root / "later", "x.h"), Sort.WRITTEN)
    assert not watch.set(files=["src/k.cu"])


def test_a_folder_put_in_anothers_place_is_watched_in_its_stead(root):
    watch = Watched(root, files=["src/k.cu"])
    shutil.copytree(root / "src", root / "new")
    (root / "src").rename(root / "old")
    (root / "new").rename(root / "src")
    watch.until((root, "src"), Sort.WRITTEN)
    watch.observer.moved((str(root), "src"))
    assert watch.set(files=["src/k.cu"])
    (root / "src" / "k.cu").write_text("5")
    watch.until((root / "src", "k.cu"), Sort.WRITTEN)
    watch.observer.close()


def test_a_folder_that_is_moved_away_itself_is_told(root):
    outside = root.parent / "lib"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "h.cuh").write_text("")
    watch = Watched(root, files=[str(outside / "deep" / "h.cuh")])
    outside.rename(root.parent / "away")
    watch.until((outside, ""), Sort.GONE)
    watch.observer.close()


def test_lost_events_are_told(root, monkeypatch):
    watch = Watched(root, files=["src/k.cu"])
    callbacks = [
        c for w in watch.observer._inotify._descriptor._watch_for_wd.values() for c in w.callbacks.values()
    ]
    callbacks[0].on_queue_overflow()
    notice = watch.notices.get(timeout=30)
    assert (notice.place, notice.sort) == (ANYWHERE, Sort.LOST)
    watch.observer.close()


# Where events do not come


def test_events_come_here(tmp_path):
    assert events_come(tmp_path)
    assert not list(tmp_path.iterdir())


def refuse(number):
    def refused(*_arguments, **_keywords):
        raise OSError(number, "inotify limit reached")

    return refused


@pytest.mark.parametrize(
    ("number", "setting"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
def test_a_limit_is_named_with_its_setting_and_the_rest_is_looked_at(root, monkeypatch, number, setting):
    monkeypatch.setattr(observer_module, "events_come", lambda _folder: True)
    with monkeypatch.context() as patched:
        if number == errno.EMFILE:
            patched.setattr(inotify_module, "InotifyFD", refuse(number))
        else:
            patched.setattr(inotify_module.InotifyFD, "add_callback", refuse(number))
        watch = Watched(root, files=["src/k.cu"])
    (note,) = watch.notes
    assert f"fs.inotify.{setting}" in note and "looking at" in note
    assert watch.observer.polled == 2
    (root / "src" / "k.cu").write_text("6")
    watch.until((root / "src", "k.cu"), Sort.WRITTEN)
    watch.observer.close()


def test_a_limit_met_by_the_probe_is_no_failure(root, monkeypatch):
    monkeypatch.setattr(inotify_module, "InotifyFD", refuse(errno.EMFILE))
    with pytest.raises(LimitReached, match=r"fs\.inotify\.max_user_instances \(now \d+\)"):
        events_come(root)
    watch = Watched(root, files=["src/k.cu"])
    assert len(watch.notes) == 1 and watch.observer.polled
    watch.observer.close()


def test_a_shared_file_system_is_looked_at_and_the_others_are_not(root, monkeypatch):
    mounts = (Mount("/", "ext4"), Mount(str(root / "src"), "nfs4"))
    monkeypatch.setattr(observer_module, "_read_mounts", lambda: mounts)
    watch = Watched(root, files=["src/k.cu", "top.cu"])
    assert watch.observer.polled == 1
    (note,) = watch.notes
    assert "nfs4" in note and str(root / "src") in note
    (root / "src" / "k.cu").write_text("7")
    watch.until((root / "src", "k.cu"), Sort.WRITTEN)
    (root / "top.cu").write_text("8")
    watch.until((root, "top.cu"), Sort.WRITTEN)
    watch.observer.close()


def test_a_file_system_without_events_is_found_out(root, monkeypatch):
    monkeypatch.setattr(observer_module, "events_come", lambda _folder: False)
    watch = Watched(root, files=["src/k.cu"])
    assert watch.observer.polled and "no events come" in watch.notes[0]
    watch.observer.close()


def test_what_is_open_for_writing_is_seen_in_other_processes(tmp_path):
    written, read = tmp_path / "written", tmp_path / "read"
    for path in (written, read):
        path.write_text("")
    code = "import sys; a = open(sys.argv[1], 'a'); b = open(sys.argv[2]); print(flush=True); input()"
    paths = {str(written), str(read)}
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, (written, read))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        assert open_for_writing(paths) == {str(written)}
        process.communicate(b"\n")
    assert open_for_writing(paths) == set()


def test_a_folder_with_two_paths_is_watched_by_both(root, monkeypatch):
    """As with a bind mount: one inode, and each path has its own names."""
    other = root.parent / "other"
    other.symlink_to(root / "src")
    told = queue.SimpleQueue()
    inotify = inotify_module.Inotify(told.put, lambda _place: True)
    assert inotify.watch(str(root / "src"), contents=True) and inotify.watch(str(other), contents=True)
    (root / "src" / "k.cu").write_text("9")
    folders = set()
    while len(folders) < 2:
        folders.add(told.get(timeout=30).place[0])
    inotify.forget(str(other))
    (root / "src" / "k.cu").write_text("10")
    while told.get(timeout=30).sort is not Sort.WRITTEN:
        pass
    inotify.close()
