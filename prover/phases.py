"""Spans: what ran when, on which clock.

A host span is read from CLOCK_MONOTONIC. A CUDA span is measured by events on the stream that did the
work, and laid on the same axis by the backend; the two kinds are never added up, since they overlap.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.protocol import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Phases", "Span"]


class Phases:
    """Collects the spans of one proof."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Measure the body on the host's clock. An exception leaves no span."""
        start = time.monotonic_ns()
        yield
        self._spans.append(Span(name, "host", start, time.monotonic_ns(), None))

    def add(self, span: Span) -> None:
        """Record a span measured elsewhere, such as by CUDA events."""
        self._spans.append(span)

    def drain(self) -> tuple[Span, ...]:
        """The spans since the last call, by start time; afterwards there are none."""
        spans = tuple(sorted(self._spans, key=lambda s: (s.t0_ns, s.t1_ns)))
        self._spans.clear()
        return spans


def since_process_start() -> int:
    """Nanoseconds that this process has lived, to the kernel's tick (10 ms)."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) * 10**9 // os.sysconf("SC_CLK_TCK")  # field 22 of the line, since boot
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started
