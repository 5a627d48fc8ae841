"""What lies in the place of a file and is none: said at once, never waited for."""

import os
import socket
from pathlib import Path

import pytest

from orchestrator.digests import Unreadable, read_digest
from orchestrator.regular_file import NotRegular, read_file, special


def put(path: Path, kind: str) -> None:
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's name may not be long
    return Path("place")


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a folder"])
def test_what_is_no_file_is_said(place, kind):
    put(place, kind)
    assert special(place) == ("" if kind == "a folder" else kind)
    with pytest.raises(Unreadable, match=f"place: is {kind}, not a regular file"):
        read_digest(str(place))
    with pytest.raises(OSError, match=r"."):
        read_file(place)


def test_a_pipe_is_not_waited_for_and_told_from_other_faults(place):
    os.mkfifo(place)
    with pytest.raises(NotRegular) as caught:
        read_file(place)
    assert caught.value.strerror == "is a named pipe, not a regular file"


def test_files_are_read_whole_or_their_beginning(place):
    place.write_bytes(b"abc")
    assert (read_file(place), read_file(place, 2), special(place)) == (b"abc", b"ab", "")
    with pytest.raises(FileNotFoundError):
        read_file("nowhere")
    assert special("nowhere") == ""


def test_no_descriptor_is_left_open(place):
    os.mkfifo(place)
    before = list(Path("/proc/self/fd").iterdir())
    for _ in range(5):
        for name in (place, Path()):
            with pytest.raises(OSError, match=r"."):
                read_file(name)
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)
