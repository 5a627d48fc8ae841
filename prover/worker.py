"""`groth16 worker`: a resident prover that the orchestrator asks for samples.

JSON lines: requests on standard input, answers on the descriptor FRESHPROOF_FD. The key is loaded once; the
timed region of a sample runs from the witness in host memory to the proof's points, and the check follows it.
A cold sample begins earlier, with the key file: it is read, checked and made resident anew.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import BrokenRun, ConfigurationError, FreshproofError
from orchestrator.protocol import FD_VARIABLE, NONCE_VARIABLE
from prover.formats.wtns import read_wtns
from prover.imported import imported_sources, require_same_sources, versions
from prover.loading import artifact_from_orchestrator, checkout
from prover.memory import shortage
from prover.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prover.formats.wtns import Witness
    from prover.session import Outcome

OTHER_FAULT = 6
"""Exit code for a fault that is no typed error: nothing of the run counts."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to serve proofs of, and how."""

    zkey: Path
    wtns: Path
    backend: str
    gpu_memory: int | None = None
    """Bytes of the GPU to use at most."""
    cold: bool = False
    """Each sample begins with the key file; else the key is loaded once, before the first."""


def serve(make: Callable[[], Job]) -> int:
    """Answer requests until ``close`` or the end of input; returns the exit code.

    ``make`` is called first; what it raises reaches the orchestrator as any other fault.
    """
    answers = _open_answers()
    try:
        _serve(make(), answers)
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


def _serve(job: Job, answers: IO[bytes]) -> None:
    witness = read_wtns(job.wtns)
    session = _open(job, witness)
    # Outside the mapped file: no sample reads the disk, and it can be erased.
    words = np.empty_like(witness.words) if job.cold else session.backend.host_words(session.key.n_vars)
    try:
        words[:] = witness.words
        witness = replace(witness, words=words)
        ready = _ready(session, witness, job)
        _send(answers, ready)
        for line in sys.stdin.buffer:
            request = _parse(line)
            if request["op"] == "close":
                return
            if job.cold:
                session.backend.close()
                session = _open(job, witness)
            outcome = session.prove(witness)
            answer = _sample(session.opening.before(outcome) if job.cold else outcome, request)
            require_same_sources(ready["sources"], imported_sources(checkout()))
            _send(answers, answer)
    finally:
        words.fill(0)
        session.backend.close()


def _open(job: Job, witness: Witness) -> Session:
    return Session.open(job.zkey, job.backend, artifact_from_orchestrator, _say, job.gpu_memory, witness)


def _ready(session: Session, witness: Witness, job: Job) -> dict[str, Any]:
    key, backend = session.key, session.backend
    return {
        "event": "ready",
        "nonce": os.environ.get(NONCE_VARIABLE, ""),
        "loaded": [entry.as_json() for entry in backend.loaded],
        "sources": imported_sources(checkout()),
        "versions": versions(),
        "device": backend.device,
        "work": {
            "circuit": key.file.path.stem,
            "curve": key.curve.name,
            "constraints": key.n_constraints,
            "wires": key.n_vars,
            "public": key.n_public,
            "domain": key.domain_size,
            "entries": len(key.coefs),
            "backend": backend.name,
            "timed from": "key file" if job.cold else "witness",
            **backend.arrangement,
            "key_digest": key.file.digest(),
            "witness_digest": witness.file.digest(),
        },
    }


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        if request["op"] == "close" or (request["op"] == "sample" and type(request["index"]) is int):
            return dict(request)
    except (ValueError, TypeError, KeyError):
        pass
    raise BrokenRun(f"a request that the worker does not know: {line[:200]!r}")


def _sample(outcome: Outcome, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "event": "sample",
        "index": request["index"],
        "t0_ns": outcome.t0_ns,
        "t1_ns": outcome.t1_ns,
        "spans": [asdict(span) for span in outcome.spans],
        "check": outcome.check.as_json(),
    }


def _open_answers() -> IO[bytes]:
    try:
        return os.fdopen(int(os.environ[FD_VARIABLE]), "wb", buffering=0)
    except (KeyError, ValueError, OSError):
        raise ConfigurationError(
            f"{FD_VARIABLE} does not name an open descriptor for answers",
            remedy="`groth16 worker` is started by `freshproof bench`; to prove by hand use `groth16 prove`",
        ) from None


def _send(answers: IO[bytes], message: dict[str, Any]) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[answers.write(data) :]


def _failure(message: str, remedy: str, exit_code: int) -> dict[str, Any]:
    return {"event": "error", "message": message, "remedy": remedy, "exit_code": exit_code}


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
