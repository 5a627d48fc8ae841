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
        self._on_host: list[Span] = []
        self._epoch = Event()
        self._epoch_ns = 0

    def start(self, stream: Stream) -> None:
        """Tie the two clocks: an event on an idle stream, waited for, and the host's time beside it."""
        with self.on_host("tie the clocks"), checked("clock"):
            stream.synchronize()
            self._epoch.record(stream)
            self._epoch.synchronize()
            self._epoch_ns = time.monotonic_ns()

    @contextmanager
    def span(self, name: str, stream: Stream, label: str) -> Iterator[None]:
        """Measure what the body puts on the stream. An exception leaves no span."""
        begin, end = self._event(), self._event()
        begin.record(stream)
        yield
        end.record(stream)
        self._open.append((name, label, begin, end))

    @contextmanager
    def on_host(self, name: str) -> Iterator[None]:
        """Measure the body on the host's clock. An exception leaves no span."""
        start_ns = time.monotonic_ns()
        yield
        self._on_host.append(Span(name, "host", start_ns, time.monotonic_ns()))

    def drain(self) -> list[Span]:
        """The spans that have ended. The others stay; whoever waited for their streams gets them all."""
        spans, self._on_host = self._on_host, []
        still_open = []
        with checked("reading the clock"):
            for entry in self._open:
                name, label, begin, end = entry
                if not end.done:
                    still_open.append(entry)
                    continue
                t0, t1 = self.since_epoch(begin), self.since_epoch(end)
                spans.append(Span(name, "cuda", t0, max(t0, t1), label))
                self._pool += (begin, end)
        self._open = still_open
        return spans

    def since_epoch(self, event: Event) -> int:
        """When an event passed, in ns of the host's clock; it must have, since `start`."""
        milliseconds = elapsed_ms(self._epoch, event)
        return self._epoch_ns + round(milliseconds * 1e6)

    def _event(self) -> Event:
        return self._pool.pop() if self._pool else Event()
