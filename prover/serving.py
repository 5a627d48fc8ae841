"""A workload's side of the worker protocol: JSON lines, and a sample for each request.

Requests come on standard input; answers go to the descriptor FRESHPROOF_FD. What is served is a `Service`.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from orchestrator.errors import BrokenRun, ConfigurationError, FreshproofError
from orchestrator.protocol import FD_VARIABLE, NONCE_VARIABLE
from prover.imported import imported_sources, require_same_sources, versions
from prover.loading import checkout
from prover.memory import shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.protocol import Span
    from prover.artifact import Loaded
    from prover.check import Check

OTHER_FAULT = 6
"""Exit code for a fault that is no typed error: nothing of the run counts."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a service says before the first sample."""

    loaded: Sequence[Loaded]
    device: Mapping[str, Any] | None
    work: Mapping[str, Any]
    """What a sample does, by name."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample: the timed region in ns of CLOCK_MONOTONIC, its spans, and the check after it."""

    t0_ns: int
    t1_ns: int
    spans: Sequence[Span]
    check: Check


class Service(Protocol):
    """Work that is ready to be timed again and again."""

    def facts(self) -> Facts:
        """Asked once, before the first sample."""

    def sample(self) -> Sampled:
        """Do the work once, and check what came of it."""

    def close(self) -> None:
        """Give everything back; asked whatever happened."""


def serve(begin: Callable[[], Service], packages: Sequence[str] = ()) -> int:
    """Answer requests until ``close`` or the end of input; returns the exit code.

    ``begin`` is called first; what it raises reaches the orchestrator as any other fault. ``packages``: whose
    sources run here beside the product's own.
    """
    answers = _open_answers()
    try:
        _serve(begin(), packages, answers)
    except FreshproofError as error:
        _send(answers, _failure(error.what, error.remedy, error.exit_code))
        return error.exit_code
    except Exception as error:
        lacking = shortage(error)
        if lacking is not None:
            _send(answers, _failure(lacking.what, lacking.remedy, lacking.exit_code))
            return lacking.exit_code
        traceback.print_exc()
        _send(answers, _failure(f"{type(error).__name__}: {error}", "see the worker's log", OTHER_FAULT))
        return OTHER_FAULT
    return 0


def report_failure(message: str, remedy: str, exit_code: int) -> None:
    """Tell an orchestrator, if one waits, why no worker begins."""
    try:
        waits = stat.S_ISFIFO(os.fstat(int(os.environ[FD_VARIABLE])).st_mode)
    except (KeyError, ValueError, OSError):
        return
    if waits:  # else the variable is from further up, and the number that of another file here
        with _open_answers() as answers, suppress(OSError):
            _send(answers, _failure(message, remedy, exit_code))


def _serve(service: Service, packages: Sequence[str], answers: IO[bytes]) -> None:
    try:
        facts, sources = service.facts(), imported_sources(checkout(), packages)
        _send(answers, _ready(facts, sources))
        for line in sys.stdin.buffer:
            request = _parse(line)
            if request["op"] == "close":
                return
            answer = _answer(service.sample(), request)
            require_same_sources(sources, imported_sources(checkout(), packages))
            _send(answers, answer)
    finally:
        service.close()


def _ready(facts: Facts, sources: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "event": "ready",
        "nonce": os.environ.get(NONCE_VARIABLE, ""),
        "loaded": [entry.as_json() for entry in facts.loaded],
        "sources": sources,
        "versions": versions(),
        "device": facts.device,
        "work": dict(facts.work),
    }


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        if request["op"] == "close" or (request["op"] == "sample" and type(request["index"]) is int):
            return dict(request)
    except (ValueError, TypeError, KeyError):
        pass
    raise BrokenRun(f"a request that the worker does not know: {line[:200]!r}")


def _answer(sampled: Sampled, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "event": "sample",
        "index": request["index"],
        "t0_ns": sampled.t0_ns,
        "t1_ns": sampled.t1_ns,
        "spans": [asdict(span) for span in sampled.spans],
        "check": sampled.check.as_json(),
    }


def _open_answers() -> IO[bytes]:
    try:
        return os.fdopen(int(os.environ[FD_VARIABLE]), "wb", buffering=0)
    except (KeyError, ValueError, OSError):
        raise ConfigurationError(
            f"{FD_VARIABLE} does not name an open descriptor for answers",
            remedy="a worker is started by `freshproof bench`; to prove by hand use `groth16 prove`",
        ) from None


def _send(answers: IO[bytes], message: dict[str, Any]) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[answers.write(data) :]


def _failure(message: str, remedy: str, exit_code: int) -> dict[str, Any]:
    return {"event": "error", "message": message, "remedy": remedy, "exit_code": exit_code}
