"""How busy other programs kept the processors while something was timed."""

from __future__ import annotations

import os
import time

import psutil


class Others:
    """Watches from its making on."""

    def __init__(self) -> None:
        self._before = _usage()

    def processors(self) -> float:
        """How many processors others used since, on average; children count as ours once they have ended."""
        seconds, used, mine = (now - before for now, before in zip(_usage(), self._before, strict=True))
        return max(0.0, used - mine) / max(seconds, 1e-3)


def _usage() -> tuple[float, float, float]:
    """In seconds: now, the time that all processors worked, and the share of this process and its children
    that have ended.
    """
    times, mine = psutil.cpu_times(), os.times()
    used = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
    return time.monotonic(), used, mine.user + mine.system + mine.children_user + mine.children_system
