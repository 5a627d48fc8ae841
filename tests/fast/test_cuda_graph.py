"""Graphs: plain the first time, recorded the second, one launch from then on; failed work leaves none."""

from __future__ import annotations

import pytest

from prover.backends.cuda_graph import Graphs


class Graph:
    def __init__(self, calls: list) -> None:
        self.calls = calls

    def launch(self, stream: Stream) -> None:
        stream.done += self.calls


class Stream:
    """Does what it is given at once, or records it."""

    def __init__(self) -> None:
        self.done: list = []
        self.recording: list | None = None

    def put(self, what: object) -> None:
        (self.done if self.recording is None else self.recording).append(what)

    def begin_capture(self) -> None:
        assert self.recording is None
        self.recording = []

    def end_capture(self) -> Graph:
        recorded, self.recording = self.recording, None
        assert recorded is not None
        return Graph(recorded)


def test_the_third_time_works_nothing_out():
    stream, graphs, worked_out = Stream(), Graphs(), []

    def work() -> None:
        worked_out.append(1)
        stream.put("a")
        stream.put("b")

    for times in range(1, 6):
        graphs.play("name", work, stream)
        assert stream.done == ["a", "b"] * times
    assert worked_out == [1, 1]


def test_graphs_are_told_apart_by_name():
    stream, graphs = Stream(), Graphs()
    names = [("msm", 1), ("msm", 2), ("msm", 1)] * 3
    for name in names:
        graphs.play(name, lambda name=name: stream.put(name), stream)
    assert stream.done == names


@pytest.mark.parametrize("fails", [0, 1])
def test_work_that_fails_leaves_no_graph_and_no_recording(fails):
    stream, graphs, faults = Stream(), Graphs(), [at == fails for at in range(4)]

    def work() -> None:
        stream.put(1)
        if faults.pop(0):
            raise ValueError("refused")

    for at in range(4):
        if at == fails:
            with pytest.raises(ValueError, match="refused"):
                graphs.play("name", work, stream)
            stream.put("free")
        else:
            graphs.play("name", work, stream)
    assert stream.done == ([1, "free", 1, 1, 1] if fails == 0 else [1, "free", 1, 1])


def test_a_broken_recording_does_not_hide_why_it_broke():
    class Broken(Stream):
        def end_capture(self) -> Graph:
            super().end_capture()
            raise RuntimeError("the recording is invalid")

    stream, graphs, faults = Broken(), Graphs(), [False, True]

    def work() -> None:
        if faults.pop(0):
            raise ValueError("refused")

    graphs.play("name", work, stream)
    with pytest.raises(ValueError, match="refused"):
        graphs.play("name", work, stream)
