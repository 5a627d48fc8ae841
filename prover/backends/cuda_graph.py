"""Work that was put on one of the GPU's streams, kept so that the same work can be put there again at once.

The kernels of a proof and their arguments are the same for every witness of a key. Launched one by one they
take the host longer than small ones run. So the second time the driver records them as a graph, which takes
one launch from then on. Events that time a phase go around a graph, not into it: CuPy offers none that
outlive it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Recorder(Protocol):
    """A stream (`cupy.cuda.Stream`)."""

    def begin_capture(self) -> None: ...

    def end_capture(self) -> Any: ...


class Graphs:
    """Graphs by name: each is recorded at its second use. The first loads kernels, which no graph can."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def play(self, name: Hashable, work: Callable[[], None], stream: Recorder) -> None:
        """Do work that uses ``stream`` alone, and puts the same there each time; it may not wait for it.

        Work that fails leaves no graph.
        """
        if name not in self._known:
            work()
            self._known[name] = None
            return
        if self._known[name] is None:
            self._known[name] = _recorded(work, stream)
        self._known[name].launch(stream)


def _recorded(work: Callable[[], None], stream: Recorder) -> Any:
    """The work as a graph; it is not done."""
    stream.begin_capture()
    try:
        work()
    except BaseException:
        with suppress(Exception):  # that a recording is broken says nothing of why
            stream.end_capture()  # else the stream would go on recording
        raise
    return stream.end_capture()
