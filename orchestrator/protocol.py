"""What a worker says to the orchestrator: JSON lines, read with no trust in them.

The orchestrator starts a workload's command once. It asks for samples on the worker's standard input,
one JSON object a line (``request_sample``, ``REQUEST_CLOSE``); the worker answers on the descriptor named
by ``FRESHPROOF_FD``: first `Ready`, then one `Answer` a request, or a `Failure` at any time. Its standard
output and error stay free. The names of all fields are in manifests/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.canonical import parse_json
from orchestrator.errors import BrokenRun
from orchestrator.model import Admitted, Substitute

NONCE_VARIABLE = "FRESHPROOF_NONCE"
FD_VARIABLE = "FRESHPROOF_FD"
ARTIFACTS_VARIABLE = "FRESHPROOF_ARTIFACTS"

REQUEST_CLOSE = b'{"op":"close"}\n'

Clock = Literal["host", "cuda"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """An artifact as the worker found it inside its own process."""

    target: str
    digest: str
    stamp: str
    how: str
    """``mapped-file`` or ``module-readback``."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source file that the worker runs, by content."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker's first message: who it is, what it loaded, what it works on."""

    nonce: str
    loaded: tuple[Loaded, ...]
    sources: tuple[Source, ...]
    versions: Mapping[str, str]
    device: Mapping[str, Any] | None
    work: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """One phase, in ns of CLOCK_MONOTONIC; ``stream`` names the CUDA stream that did the work."""

    name: str
    clock: Clock
    t0_ns: int
    t1_ns: int
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What an independent library said of the result, outside the timed region."""

    passed: bool
    by: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One sample as the worker measured it: the timed region, its phases, the check of its result."""

    index: int
    t0_ns: int
    t1_ns: int
    spans: tuple[Span, ...]
    check: Check


@dataclass(frozen=True, slots=True)
class Failure:
    """The worker's own word on why it stops."""

    message: str
    remedy: str
    exit_code: int


Message = Ready | Answer | Failure


def request_sample(index: int, *, warmup: bool) -> bytes:
    """The line that asks for one sample."""
    return json.dumps({"op": "sample", "index": index, "warmup": warmup}).encode() + b"\n"


def artifacts_json(artifacts: Sequence[Admitted]) -> str:
    """The value of FRESHPROOF_ARTIFACTS: what the gate admitted, by target."""
    fields = {
        a.target: {"path": a.path, "digest": a.digest, "stamp": a.stamp, "arch": a.arch}
        | ({"built_as": a.built_as} if isinstance(a, Substitute) else {})
        for a in artifacts
    }
    return json.dumps(fields, sort_keys=True)


def parse_message(line: bytes) -> Message:
    """Read one line. Raises `BrokenRun` that quotes what is wrong: torn, no JSON, a field amiss."""
    if not line.endswith(b"\n"):
        raise BrokenRun(f"the worker's answer is torn after {len(line)} bytes: {_excerpt(line)}")
    try:
        value = parse_json(line)
    except ValueError as error:
        raise BrokenRun(f"the worker's answer is no JSON ({error}): {_excerpt(line)}") from None
    if not isinstance(value, dict):
        raise BrokenRun(f"the worker's answer is no JSON object: {_excerpt(line)}")
    event = value.get("event")
    readers: dict[str, Callable[[dict[str, Any]], Message]] = {
        "ready": _ready,
        "sample": _answer,
        "error": _failure,
    }
    if not isinstance(event, str) or event not in readers:
        raise BrokenRun(f"the worker's answer has an unknown event {event!r}: {_excerpt(line)}")
    try:
        return readers[event](value)
    except _Malformed as error:
        raise BrokenRun(f"the worker's {event} message is malformed: {error}: {_excerpt(line)}") from None


def check_answer(answer: Answer, index: int, sent_ns: int, received_ns: int) -> None:
    """Hold an answer against what the orchestrator saw. Raises `BrokenRun`.

    The timed region must lie between request and reply on the common clock, and every host phase inside
    the region. CUDA spans carry the events' own error, so only their order is checked.
    """
    if answer.index != index:
        raise BrokenRun(f"asked for sample {index}, the worker answered sample {answer.index}")
    if not sent_ns <= answer.t0_ns <= answer.t1_ns <= received_ns:
        raise BrokenRun(
            f"sample {index}: the timed region [{answer.t0_ns}, {answer.t1_ns}] ns does not lie between "
            f"request and reply [{sent_ns}, {received_ns}] ns",
            remedy="the worker must read CLOCK_MONOTONIC, after the request and before the reply",
        )
    for span in answer.spans:
        inside = span.clock == "cuda" or (answer.t0_ns <= span.t0_ns and span.t1_ns <= answer.t1_ns)
        if span.t1_ns < span.t0_ns or not inside:
            raise BrokenRun(
                f"sample {index}: phase {span.name!r} [{span.t0_ns}, {span.t1_ns}] ns does not lie in the "
                f"timed region [{answer.t0_ns}, {answer.t1_ns}] ns"
            )
    if not answer.check.passed:
        raise BrokenRun(
            f"sample {index}: the result failed its check by {answer.check.by}",
            remedy="no time of this run counts; find the fault before you measure",
        )


class _Malformed(Exception):
    """A field is missing or of the wrong type."""


def _ready(value: dict[str, Any]) -> Ready:
    loaded = tuple(
        Loaded(_text(e, "target"), _text(e, "digest"), _text(e, "stamp"), _text(e, "how"))
        for e in _objects(value, "loaded")
    )
    sources = tuple(Source(_text(e, "path"), _text(e, "digest")) for e in _objects(value, "sources"))
    versions = _object(value, "versions")
    device = None if value.get("device") is None else _object(value, "device")
    return Ready(
        nonce=_text(value, "nonce"),
        loaded=loaded,
        sources=sources,
        versions={name: _text(versions, name) for name in versions},
        device=device,
        work=_object(value, "work"),
    )


def _answer(value: dict[str, Any]) -> Answer:
    check = _object(value, "check")
    result = _text(check, "result")
    if result not in ("pass", "fail"):
        raise _Malformed(f"check.result is {result!r}, not pass or fail")
    return Answer(
        index=_integer(value, "index"),
        t0_ns=_integer(value, "t0_ns"),
        t1_ns=_integer(value, "t1_ns"),
        spans=tuple(_span(entry) for entry in _objects(value, "spans")),
        check=Check(passed=result == "pass", by=_text(check, "by"), seconds=_seconds(check, "seconds")),
    )


def _span(entry: dict[str, Any]) -> Span:
    clock = _text(entry, "clock")
    stream = None if entry.get("stream") is None else _text(entry, "stream")
    t0_ns, t1_ns = _integer(entry, "t0_ns"), _integer(entry, "t1_ns")
    if clock == "host":
        return Span(_text(entry, "name"), "host", t0_ns, t1_ns, stream)
    if clock == "cuda":
        return Span(_text(entry, "name"), "cuda", t0_ns, t1_ns, stream)
    raise _Malformed(f"clock is {clock!r}, not host or cuda")


def _failure(value: dict[str, Any]) -> Failure:
    code = _integer(value, "exit_code")
    if not 1 <= code <= 255:
        raise _Malformed(f"exit_code is {code}, not 1 to 255")
    return Failure(_text(value, "message"), _text(value, "remedy"), code)


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise _Malformed(f"{key} is no text")
    return found


def _integer(value: Mapping[str, Any], key: str) -> int:
    found = value.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _Malformed(f"{key} is no integer")
    return found


def _seconds(value: Mapping[str, Any], key: str) -> float:
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < float("inf"):
        raise _Malformed(f"{key} is no duration")
    return float(found)


def _object(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    if not isinstance(found, dict):
        raise _Malformed(f"{key} is no object")
    return found


def _objects(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = value.get(key)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise _Malformed(f"{key} is no list of objects")
    return found


def _excerpt(line: bytes) -> str:
    text = line[:120].decode("utf-8", "backslashreplace").rstrip("\n")
    return repr(text + ("..." if len(line) > 120 else ""))
