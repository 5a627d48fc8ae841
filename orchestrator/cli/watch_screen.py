"""What a watch shows: lines and the present state on a terminal, plain lines elsewhere, or JSON documents.

On a terminal that is to get no codes, the lines are plain too; keys are heard on every terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.safe_text import is_plain, visible
from orchestrator.watch.session import Session
from orchestrator.watch.words import lines_of, watching_text

SCHEMA = "freshproof/watch/1"
_KEYS = "Enter or r: look at everything, q: quit"
_MOST_ROWS = 8


class Screen(Protocol):
    """Where a watch tells its events."""

    def tell(self, event: dict[str, Any]) -> None:
        """Show an event; called in the session's thread only."""

    def bind(self, session: Session) -> None:
        """Take orders from the keyboard to this session, if there is a keyboard."""


@contextmanager
def open_screen(*, as_json: bool, bell: bool) -> Iterator[Screen]:
    """The screen that suits: JSON if asked for, live on a terminal, else plain lines."""
    if as_json:
        yield _Json()
    elif sys.stdout.isatty() and os.environ.get("TERM") and not is_plain():
        with _LiveScreen(bell).shown() as screen:
            yield screen
    elif sys.stdout.isatty():
        with _keys_at_once(), _Keys() as keys:
            yield _Plain(bell, keys)
    else:
        yield _Plain(bell)


class _Json:
    """One document an event, one a line, at once."""

    def tell(self, event: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(event["at"], UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"schema": SCHEMA, **event, "at": at}), flush=True)

    def bind(self, session: Session) -> None:
        """A program has signals."""


class _Plain:
    """Lines without colours, at once; on a terminal with ``keys``."""

    def __init__(self, bell: bool, keys: _Keys | None = None) -> None:
        self._bell = bell
        self._keys = keys
        if keys is not None:
            click.echo(_KEYS)

    def tell(self, event: dict[str, Any]) -> None:
        for _style, text in lines_of(event):
            click.echo(visible(text))
        if event["event"] == "watching":
            click.echo(watching_text(event))
        if event["event"] == "round" and self._bell:
            click.echo("\a", nl=False)
        sys.stdout.flush()

    def bind(self, session: Session) -> None:
        """Lines alone are for reading."""
        if self._keys is not None:
            self._keys.bind(session)


class _Keys:
    """Takes the keyboard's orders to a session, for as long as this terminal listens to this process."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def __enter__(self) -> _Keys:
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()

    def bind(self, session: Session) -> None:
        """Begin, if standard input is a terminal."""
        if sys.stdin.isatty():
            threading.Thread(target=self._read, args=(session,), daemon=True).start()

    def _read(self, session: Session) -> None:
        while not self._ended.is_set():
            if not _in_foreground():
                time.sleep(0.5)
                continue
            if not select.select([0], [], [], 0.5)[0]:
                continue
            key = os.read(0, 1)
            if not key:
                return
            if key in (b"\n", b"\r", b"r"):
                session.inbox.put(session.look_at_everything)
            elif key == b"q":
                session.inbox.put(session.stop)


class _LiveScreen:
    """Lines that stay, and below them what is going on now."""

    def __init__(self, bell: bool) -> None:
        self._bell = bell
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._building: dict[str, tuple[float, str]] = {}
        self._step: tuple[str, float] | None = None
        self._line = ""
        """The last that the step said of its progress."""
        self._state = Text("starting")
        self._session: Session | None = None
        self._keys = _Keys()
        self._busy = threading.Event()
        self._ended = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[_LiveScreen]:
        """Show it; the terminal is left as it was found."""
        with _keys_at_once(), self._keys, self._live:
            ticks = threading.Thread(target=self._tick, daemon=True)
            ticks.start()
            before = signal.signal(signal.SIGWINCH, self._resized)
            try:
                yield self
            finally:
                signal.signal(signal.SIGWINCH, before)
                self._ended.set()
                self._busy.set()
                ticks.join()

    def bind(self, session: Session) -> None:
        self._session = session
        self._keys.bind(session)

    def tell(self, event: dict[str, Any]) -> None:
        for style, text in lines_of(event):
            self._console.print(Text(visible(text), style=style), soft_wrap=True)
        self._follow(event)
        if event["event"] == "round" and self._bell:
            self._console.bell()
        self._draw()

    def _follow(self, event: Mapping[str, Any]) -> None:
        """Keep up the picture of what is going on."""
        kind = event["event"]
        if kind == "building":
            self._building[event["target"]] = time.monotonic(), event["reason"]
        elif kind == "built":
            self._building.pop(event["target"], None)
        elif kind == "step":
            self._step = event["step"], time.monotonic()
            self._line = ""
        elif kind == "said" and event["step"] != "command":
            self._line = event["line"]
        elif kind in ("verified", "benched", "command", "cut"):
            self._step = None
        if kind in ("round", "cut", "error"):
            self._building.clear()
        if kind == "round":
            self._step = None
            self._state.style = "green" if event["good"] else "red"
        elif kind == "watching":
            self._state = Text(watching_text(event), style=self._state.style)
        if self._building or self._step:
            self._busy.set()
        else:
            self._busy.clear()

    def _draw(self) -> None:
        now = time.monotonic()
        rows = [
            Text(f"  building {target} {now - since:.0f} s  {visible(reason)}", "cyan", no_wrap=True)
            for target, (since, reason) in list(self._building.items())[:_MOST_ROWS]
        ]
        if self._step:
            name, since = self._step
            line = visible(f"  {name} {now - since:.0f} s  {self._line}")
            rows.append(Text(line, "cyan", no_wrap=True, overflow="ellipsis"))
        rows.append(Text.assemble(self._state, (f"  {_KEYS}", "dim"), no_wrap=True, overflow="ellipsis"))
        self._live.update(Group(*rows), refresh=True)

    def _tick(self) -> None:
        """Let the seconds go on while something is at work; the session's thread draws."""
        while not self._ended.is_set():
            self._busy.wait()
            time.sleep(0.5)
            if self._session is not None and not self._ended.is_set():
                self._session.inbox.put(self._draw)

    def _resized(self, _number: int, _frame: object) -> None:
        if self._session is not None:
            self._session.inbox.put(self._draw)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Keys are read as they are pressed and not shown; Ctrl-C and Ctrl-Z keep their meaning."""
    if not sys.stdin.isatty() or not _in_foreground():
        yield
        return
    before = termios.tcgetattr(0)

    def set_again(_number: int, _frame: object) -> None:
        if _in_foreground():
            tty.setcbreak(0, termios.TCSADRAIN)

    tty.setcbreak(0, termios.TCSADRAIN)
    handler = signal.signal(signal.SIGCONT, set_again)  # the shell sets the terminal back meanwhile
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, handler)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, before)
