"""What ``freshproof bench`` times where it times kernels: the same launches again, checked each time."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from prover.backends.cuda_clock import SpanClock
from prover.backends.cuda_device import checked
from prover.backends.cuda_graph import Graphs
from prover.serving import Facts, Sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prover.artifact import Loaded
    from prover.backends.cuda_device import Gpu, Stream
    from prover.check import Check

MAIN = "main"
"""The stream, as spans name it."""


class Work(Protocol):
    """What is timed: the same launches each time, on one stream."""

    name: str
    stream: Stream

    def facts(self) -> dict[str, Any]: ...
    def prepare(self) -> None: ...
    def phases(self) -> list[tuple[str, Callable[[], None]]]: ...
    def check(self) -> Check: ...
    def close(self) -> None: ...


class Kernels:
    """Samples of one `Work`, as a `prover.serving.Service`."""

    def __init__(self, gpu: Gpu, work: Work, loaded: Sequence[Loaded]) -> None:
        self._gpu, self._work, self._loaded = gpu, work, loaded
        self._clock, self._graphs = SpanClock(), Graphs()
        self._phases = work.phases()

    def facts(self) -> Facts:
        """What the work says of itself."""
        return Facts(self._loaded, self._gpu.as_json(), self._work.facts())

    def sample(self) -> Sampled:
        """Run the work once, and check what came of it."""
        work, clock = self._work, self._clock
        t0_ns = time.monotonic_ns()
        clock.start(work.stream)
        with checked(work.name):
            with clock.on_host("launch"):
                work.prepare()  # beside it the first launch reaches the GPU: that way is no part of the span
                with clock.span(work.name, work.stream, MAIN):
                    self._launch()
            with clock.on_host("wait for the GPU"):
                work.stream.synchronize()
        t1_ns = time.monotonic_ns()
        return Sampled(t0_ns, t1_ns, clock.drain(), work.check())

    def close(self) -> None:
        """Give the memory back."""
        self._work.close()

    def _launch(self) -> None:
        """Put all phases on the stream; where there are several, each with a span of its own."""
        stream = self._work.stream
        for name, put in self._phases:
            with self._clock.span(name, stream, MAIN) if name else nullcontext():
                self._graphs.play(name, put, stream)
