"""The record of a run: JSON lines, append-only, one fsync a line, each line bound to the one before.

Every line holds ``prev``, the digest of the previous line's bytes (``null`` on the first), so that a lost,
edited or reordered line is noticed. Kinds of lines and their fields: manifests/README.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from orchestrator.canonical import parse_json
from orchestrator.errors import BrokenRun, ConfigurationError
from orchestrator.regular_file import read_file
from orchestrator.workspace import explained

SCHEMA = "freshproof/record/1"
KINDS = ("run", "env", "artifact", "drivers", "sample", "comparison", "verdict")

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_BITS, _RANDOM_BITS = 48, 80
_CUT_OFF = "the run was cut off; run it again"


def new_run_id(unix_ms: int) -> str:
    """A ULID: 48 bits of time and 80 random bits, 26 characters, whose order as text is order in time."""
    number = (unix_ms & ((1 << _TIME_BITS) - 1)) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


class RecordWriter:
    """Appends to one new record file; a line is on the disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises `Missing` when it cannot be made, as where one is already."""
        self.path = path
        self._prev: str | None = None
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, flags, 0o644)
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line and wait until it is on the disk. Raises `Missing` when the disk refuses."""
        text = json.dumps({"kind": kind, **fields, "prev": self._prev}, separators=(",", ":"))
        line = text.encode() + b"\n"
        view = memoryview(line)
        with explained(self.path):
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        self._prev = _line_digest(line)

    def close(self) -> None:
        """Close the file; harmless when done twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_record(path: Path) -> list[dict[str, Any]]:
    """All lines of a record, the chain checked. Raises `BrokenRun` with the line, or `ConfigurationError`."""
    try:
        data = read_file(path)
    except OSError as error:
        raise ConfigurationError(f"cannot read the record {path}: {error.strerror}") from error
    return parse_record(data, str(path))


def parse_record(data: bytes, name: str) -> list[dict[str, Any]]:
    """The lines of a record held in memory; ``name`` is for messages. Raises `BrokenRun`."""
    if not data:
        raise BrokenRun(f"{name} is empty")
    lines: list[dict[str, Any]] = []
    prev: str | None = None
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        where = f"{name}, line {number}"
        if not line.endswith(b"\n"):
            what = f"{where} is torn after {len(line)} bytes"
            raise BrokenRun(what, remedy=_CUT_OFF)
        fields = _fields(line, where)
        if fields.get("prev") != prev:
            raise BrokenRun(
                f"{where}: prev is {fields.get('prev')}, but the line before has {prev}",
                remedy="lines were lost, edited or reordered; this record cannot count",
            )
        prev = _line_digest(line)
        lines.append(fields)
    _check_order(lines, name)
    if lines[-1]["kind"] != "verdict":
        raise BrokenRun(f"{name} has no verdict as its last line", remedy=_CUT_OFF)
    return lines


def _fields(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except ValueError as error:
        raise BrokenRun(f"{where} is no JSON: {error}") from None
    if not isinstance(value, dict) or value.get("kind") not in KINDS:
        raise BrokenRun(f"{where} is of no known kind")
    return value


def _check_order(lines: list[dict[str, Any]], name: str) -> None:
    if lines[0]["kind"] != "run" or any(line["kind"] == "run" for line in lines[1:]):
        raise BrokenRun(f"{name} must hold one run line, and begin with it")
    if lines[0].get("schema") != SCHEMA:
        raise BrokenRun(
            f"{name} has schema {lines[0].get('schema')!r}, not {SCHEMA!r}",
            remedy="it was written by another version of freshproof",
        )


def _line_digest(line: bytes) -> str:
    return "sha256:" + hashlib.sha256(line).hexdigest()
