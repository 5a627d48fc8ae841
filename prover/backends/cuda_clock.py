"""Spans of device work, measured by events on the streams that do it, and of the host that puts it there."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prover.backends.cuda_device import Event, Stream, checked, elapsed_ms
from prover.phases import Span

if TYPE_CHECKING:
    from collections.abc import Iterator


class SpanClock:
    """Spans of device work, by events on the streams that do it, laid on the host's monotonic clock.

    Events come from a pool: after the first proof no event is created.
    """

    def __init__(self) -> None:
        self._pool: list[Event] = []
        self._open: list[tuple[str, str, Event, Event]] = []
        self._launches: list[Span] = []
        self._epoch = Event()
        self._epoch_ns = 0

    def start(self, stream: Stream) -> None:
        """Tie the two clocks: an event on an idle stream, waited for, and the host's time beside it."""
        start_ns = time.monotonic_ns()
        with checked("clock"):
            stream.synchronize()
            self._epoch.record(stream)
            self._epoch.synchronize()
            self._epoch_ns = time.monotonic_ns()
        self._launches.append(Span("tie the clocks", "host", start_ns, self._epoch_ns))

    @contextmanager
    def span(self, name: str, stream: Stream, label: str) -> Iterator[None]:
        """Measure what the body puts on the stream, and the host's time for it. An exception leaves none."""
        start_ns = time.monotonic_ns()
        begin, end = self._event(), self._event()
        begin.record(stream)
        yield
        end.record(stream)
        self._open.append((name, label, begin, end))
        self._launches.append(Span("launch", "host", start_ns, time.monotonic_ns()))

    def drain(self) -> list[Span]:
        """The spans that have ended. The others stay; whoever waited for their streams gets them all."""
        spans, self._launches = self._launches, []
        still_open = []
        with checked("reading the clock"):
            for entry in self._open:
                name, label, begin, end = entry
                if not end.done:
                    still_open.append(entry)
                    continue
                t0, t1 = self._since_epoch(begin), self._since_epoch(end)
                spans.append(Span(name, "cuda", t0, max(t0, t1), label))
                self._pool += (begin, end)
        self._open = still_open
        return spans

    def _since_epoch(self, event: Event) -> int:
        milliseconds = elapsed_ms(self._epoch, event)
        return self._epoch_ns + round(milliseconds * 1e6)

    def _event(self) -> Event:
        return self._pool.pop() if self._pool else Event()
