"""Digests, atomic files, the lock, and the root of a project."""

import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator import digests as module
from orchestrator.canonical import digest_bytes
from orchestrator.digests import Digests, Unreadable
from orchestrator.errors import ConfigurationError, Missing
from orchestrator.workspace import Workspace, exclusive, find_root, link_atomically, write_atomically


@pytest.fixture(autouse=True)
def _settled(monkeypatch):
    """Files of a test are as good as old."""
    monkeypatch.setattr(module, "_SETTLED_NS", -1)


def edit_unseen(path, data):
    """Change content alone: size and modification time as before."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_kept_signature_saves_reading_and_an_edit_with_restored_time_is_seen(tmp_path, monkeypatch):
    memory, file = tmp_path / "memory.json", tmp_path / "f"
    file.write_bytes(b"one")
    first = Digests(tmp_path, memory)
    assert first.get("f") == digest_bytes(b"one")
    first.save()
    with monkeypatch.context() as patched:
        patched.setattr(module, "read_digest", lambda _path: pytest.fail("read again"))
        assert Digests(tmp_path, memory).get("f") == digest_bytes(b"one")
    time.sleep(0.02)
    edit_unseen(file, b"two")
    assert Digests(tmp_path, memory).get("f") == digest_bytes(b"two")


def test_without_memory_every_byte_is_read(tmp_path):
    (tmp_path / "f").write_bytes(b"one")
    looks = Digests(tmp_path)
    assert looks.get("f") == digest_bytes(b"one")
    (tmp_path / "f").write_bytes(b"two")
    assert looks.get("f") == digest_bytes(b"one")
    assert looks.current("f") == digest_bytes(b"two")


def test_a_file_just_written_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SETTLED_NS", 10**12)
    (tmp_path / "f").write_bytes(b"one")
    looks = Digests(tmp_path, tmp_path / "memory.json")
    looks.get("f")
    looks.save()
    assert not (tmp_path / "memory.json").exists()


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"f": 1}', b"\xff"])
def test_a_damaged_memory_counts_as_none(tmp_path, damage):
    (tmp_path / "memory.json").write_bytes(damage)
    (tmp_path / "f").write_bytes(b"one")
    assert Digests(tmp_path, tmp_path / "memory.json").get("f") == digest_bytes(b"one")


def test_what_is_no_file_is_unreadable_and_what_is_not_there_is_none(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    looks = Digests(tmp_path)
    assert looks.get("nothing") is None
    assert looks.get("nothing/below") is None
    for name in ("folder", "loop", "pipe"):
        with pytest.raises(Unreadable, match=name):
            looks.get(name)


def test_many_files_at_once(tmp_path):
    names = [f"f{i}" for i in range(200)]
    for name in names[:-1]:
        (tmp_path / name).write_bytes(name.encode())
    looks = Digests(tmp_path)
    looks.load(names)
    assert [looks.get(n) for n in names[:-1]] == [digest_bytes(n.encode()) for n in names[:-1]]
    assert looks.get(names[-1]) is None


def test_files_dated_1970_and_2038_are_judged_by_content(tmp_path):
    memory = tmp_path / "m"
    for year in (0, 2**31 - 1):
        (tmp_path / "f").write_bytes(str(year).encode())
        os.utime(tmp_path / "f", (year, year))
        assert Digests(tmp_path, memory).get("f") == digest_bytes(str(year).encode())


def test_a_written_file_is_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "deep" / "f"
    write_atomically(path, b"x", mode=0o444)
    assert path.read_bytes() == b"x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert [p.name for p in path.parent.iterdir()] == ["f"]
    write_atomically(path, b"y")
    assert path.read_bytes() == b"y"


def test_many_threads_may_write_one_file(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write_atomically(tmp_path / "f", b"same"), range(200)))
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_disk_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Missing, match="cannot write"):
        write_atomically(tmp_path / "file" / "below", b"x")


def test_a_full_disk_is_explained(monkeypatch, tmp_path):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Missing) as caught:
        write_atomically(tmp_path / "f", b"x", durable=True)
    assert "free some space" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_disk_takes_half_of_is_not_there_and_the_old_one_is(tmp_path):
    """A real write that stops half-way: the process may write 4 KiB a file."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    code = (
        "import resource, sys\nfrom pathlib import Path\nfrom orchestrator.errors import Missing\n"
        "from orchestrator.workspace import keep_if_possible, write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "path = Path(sys.argv[1])\nkeep_if_possible(path, bytes(8192))\n"
        "try: write_atomically(path, bytes(8192))\n"
        "except Missing as error: print(error.what, error.remedy)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cannot write {path}: File too large")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_replaced_in_one_step(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        link_atomically(tmp_path / "bin" / "l", f"../{name}")
        assert (tmp_path / "bin" / "l").read_text() == name
    assert str((tmp_path / "bin" / "l").readlink()) == "../b"


def test_the_lock_is_exclusive_and_held_by_commands_too(tmp_path):
    workspace, told = Workspace(tmp_path), []
    with exclusive(workspace, told.append) as lock:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=(lock,))
    entered = threading.Event()

    def enter():
        with exclusive(workspace, told.append):
            entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.2)
    child.kill()
    child.wait()
    thread.join(10)
    assert entered.is_set()
    assert len(told) == 1


def test_the_root_is_found_from_below_and_a_folder_that_a_shell_would_act_on_is_refused(tmp_path):
    bad = tmp_path / "$(touch X)"
    for root in (tmp_path, bad):
        (root / "manifests").mkdir(parents=True)
        (root / "manifests" / "targets.toml").touch()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_root(below) == tmp_path
    with pytest.raises(ConfigurationError, match="shell"):
        find_root(bad)
    with pytest.raises(ConfigurationError, match=r"no manifests/targets\.toml"):
        find_root(tmp_path.parent.parent / "nowhere")
