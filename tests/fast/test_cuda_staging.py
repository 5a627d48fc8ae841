"""The ring of page-locked slots, with transfers as late as a GPU may make them."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types

import numpy as np
import pytest


class Transfers:
    """A stream whose copies happen only when somebody waits for an event recorded after them."""

    def __init__(self) -> None:
        self.queued = []

    def run(self, count: int) -> None:
        for copy in self.queued[:count]:
            copy()
        self.queued[:count] = [lambda: None] * count


class Event:
    def __init__(self, **_options) -> None:
        self.stream, self.count = None, 0

    def record(self, stream) -> None:
        self.stream, self.count = stream, len(stream.queued)

    def synchronize(self) -> None:
        if self.stream is not None:
            self.stream.run(self.count)


class Buffer:
    def __init__(self, memory) -> None:
        self.memory = memory

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    def part(self, offset: int, nbytes: int) -> Buffer:
        return Buffer(self.memory[offset : offset + nbytes])

    def upload(self, array, stream) -> None:
        assert array.nbytes == self.nbytes
        stream.queued.append(lambda: np.copyto(self.memory, array))


class Pinned:
    def __init__(self, nbytes: int, _what: str) -> None:
        self.array = np.zeros(nbytes, np.uint8)


@pytest.fixture
def staging(monkeypatch):
    fake = types.ModuleType("prover.backends.cuda_device")
    fake.Buffer, fake.Event, fake.Pinned, fake.Stream = Buffer, Event, Pinned, Transfers
    fake.checked = lambda _what: contextlib.nullcontext()
    monkeypatch.setitem(sys.modules, "prover.backends.cuda_device", fake)
    monkeypatch.delitem(sys.modules, "prover.backends.cuda_staging", raising=False)
    module = importlib.import_module("prover.backends.cuda_staging")
    monkeypatch.setattr(module, "SLOT_BYTES", 64)
    monkeypatch.setattr(module, "SLOTS", 3)
    monkeypatch.setattr(module, "LEAST_PIECE", 16)
    made = module.Staging()
    yield made
    made.close()
    sys.modules.pop("prover.backends.cuda_staging", None)


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 192, 193, 1000, 64 * 50])
def test_every_byte_arrives_once_the_stream_has(staging, nbytes):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    source = data.copy()
    target, stream = Buffer(np.zeros(nbytes, np.uint8)), Transfers()
    staging.upload(data, target, stream)
    data.fill(0)  # the array is free when upload returns
    stream.run(len(stream.queued))
    assert np.array_equal(target.memory, source)


@pytest.mark.parametrize("nbytes", [0, 64, 65, 192, 193, 1000])
def test_what_is_made_piece_by_piece_arrives_whole(staging, nbytes):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)

    class Made:
        def __init__(self) -> None:
            self.nbytes, self.starts = nbytes, []

        def fill(self, start, out):
            self.starts.append(start)
            out[:] = data[start : start + len(out)]

    target, stream, made = Buffer(np.zeros(nbytes, np.uint8)), Transfers(), Made()
    staging.upload_made(made, target, stream)
    stream.run(len(stream.queued))
    assert np.array_equal(target.memory, data)
    assert made.starts == list(range(0, nbytes, 64))


def test_uploads_one_after_the_other_do_not_mix(staging):
    stream = Transfers()
    arrays = [np.full(150, value, np.uint8) for value in (1, 2, 3)]
    targets = [Buffer(np.zeros(150, np.uint8)) for _ in arrays]
    for array, target in zip(arrays, targets, strict=True):
        staging.upload(array, target, stream)
    stream.run(len(stream.queued))
    assert [set(t.memory.tolist()) for t in targets] == [{1}, {2}, {3}]


def test_rows_of_a_table_go_as_bytes(staging):
    words = np.arange(40, dtype=np.uint32).reshape(10, 4)
    target, stream = Buffer(np.zeros(160, np.uint8)), Transfers()
    staging.upload(words, target, stream)
    stream.run(len(stream.queued))
    assert np.array_equal(target.memory.view(np.uint32).reshape(10, 4), words)


def test_too_much_is_refused(staging):
    too_much, room = np.zeros(151, np.uint8), Buffer(np.zeros(150, np.uint8))
    for upload in (staging.upload, staging.upload_made):
        with pytest.raises(ValueError, match="151 bytes"):
            upload(too_much, room, Transfers())


def test_scrubbing_leaves_nothing(staging):
    staging.upload(np.full(500, 7, np.uint8), Buffer(np.zeros(500, np.uint8)), Transfers())
    staging.scrub()
    assert not any(slot.any() for slot in staging._slots)
