"""Work that was put on the GPU's streams, kept so that the same work can be put there again.

The kernels of a proof and their arguments are the same for every witness of a key. Working them out takes
Python longer than the driver takes to accept them, and longer than small kernels run: so that is done once.
A CUDA graph would do the same with one launch; but its phases could not be timed, since CuPy records no event
that a graph leaves behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_recording: list[list[tuple[Callable[..., object], tuple[Any, ...], object]]] = []
"""The tape that is being recorded, if one is."""


def put(function: Callable[..., object], *arguments: Any, keep: object = None) -> None:
    """Call what puts work on a stream. ``keep``: what arguments point to; a tape keeps it alive."""
    function(*arguments)
    if _recording:
        _recording[-1].append((function, arguments, keep))


class Tapes:
    """Tapes by name: each is recorded at its first use."""

    def __init__(self) -> None:
        self._tapes: dict[Hashable, list[tuple[Callable[..., object], tuple[Any, ...], object]]] = {}

    def play(self, name: Hashable, work: Callable[[], None]) -> None:
        """Do the work, and the next time repeat what it `put`. All it puts must be the same each time.

        Work that fails leaves no tape.
        """
        tape = self._tapes.get(name)
        if tape is not None:
            for function, arguments, _ in tape:
                function(*arguments)
            return
        tape = []
        _recording.append(tape)
        try:
            work()
        finally:
            _recording.pop()
        self._tapes[name] = tape
