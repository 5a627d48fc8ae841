"""A record is a chain: torn, edited, lost and reordered lines are noticed."""

import errno
import json

import pytest

from orchestrator.errors import BrokenRun, Missing
from orchestrator.records import SCHEMA, RecordWriter, new_run_id, parse_record, read_record


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "records" / "run.jsonl"
    with RecordWriter(path) as writer:
        writer.write("run", {"schema": SCHEMA, "name": "Zoë"})
        writer.write("sample", {"index": 0})
        writer.write("sample", {"index": 1})
        writer.write("verdict", {"state": "fresh"})
    return path


def test_what_was_written_is_read(record):
    lines = read_record(record)
    assert [line["kind"] for line in lines] == ["run", "sample", "sample", "verdict"]
    assert lines[0]["prev"] is None
    assert lines[0]["name"] == "Zoë"


def test_every_line_is_on_the_disk_when_write_returns(tmp_path):
    with RecordWriter(tmp_path / "r.jsonl") as writer:
        writer.write("run", {"schema": SCHEMA})
        assert json.loads((tmp_path / "r.jsonl").read_bytes())["kind"] == "run"


def test_a_record_is_never_written_over(record):
    with pytest.raises(Missing, match=r"cannot write .*File exists"):
        RecordWriter(record)


def test_a_full_disk_is_a_message_with_a_remedy(record, monkeypatch):
    def full(_fd, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with RecordWriter(record.with_name("other.jsonl")) as writer:
        monkeypatch.setattr("orchestrator.records.os.write", full)
        with pytest.raises(Missing, match="No space left") as raised:
            writer.write("run", {"schema": SCHEMA})
    assert "free some space" in raised.value.remedy


def test_a_torn_tail_is_noticed_at_every_length(record):
    data = record.read_bytes()
    last = data.rindex(b"\n", 0, -1) + 1
    for cut in range(last + 1, len(data)):
        with pytest.raises(BrokenRun, match="line 4 is torn"):
            parse_record(data[:cut], "r")


def test_a_record_that_just_stops_has_no_verdict(record):
    data = record.read_bytes()
    with pytest.raises(BrokenRun, match="no verdict"):
        parse_record(data[: data.rindex(b"\n", 0, -1) + 1], "r")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        lambda lines: [lines[0], lines[1].replace(b"0", b"7", 1), *lines[2:]],
        lambda lines: [*lines[:2], *lines[1:]],
    ],
    ids=["lost", "reordered", "edited", "repeated"],
)
def test_a_changed_chain_is_noticed(record, spoil):
    lines = record.read_bytes().splitlines(keepends=True)
    with pytest.raises(BrokenRun, match="prev is"):
        parse_record(b"".join(spoil(lines)), "r")


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"[]\n", b"nonsense\n", b'{"kind":"run","prev":null}\n', b"\xff\n"]
)
def test_what_is_no_record_is_refused(data):
    with pytest.raises(BrokenRun):
        parse_record(data, "r")


def test_run_ids_sort_by_time():
    ids = [new_run_id(ms) for ms in (0, 1, 1_796_000_000_000, 2**48 - 1)]
    assert ids == sorted(ids)
    assert all(len(run_id) == 26 for run_id in ids)
    assert len({new_run_id(5) for _ in range(100)}) == 100
