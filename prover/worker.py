"""`groth16 worker`: a resident prover that the orchestrator asks for samples.

JSON lines: requests on standard input, answers on the descriptor FRESHPROOF_FD. The key is loaded once; the
timed region of a sample runs from the witness in host memory to the proof's points, and the check follows it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import BrokenRun, ConfigurationError, FreshproofError
from orchestrator.protocol import FD_VARIABLE, NONCE_VARIABLE
from prover.formats.wtns import read_wtns, require_match
from prover.imported import imported_sources, require_same_sources, versions
from prover.loading import artifact_from_orchestrator, checkout
from prover.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from prover.formats.wtns import Witness

OTHER_FAULT = 6
"""Exit code for a fault that is no typed error: nothing of the run counts."""


def serve(zkey: Path, wtns: Path, backend_name: str) -> int:
    """Answer requests until ``close`` or the end of input; returns the exit code."""
    answers = _open_answers()
    try:
        _serve(zkey, wtns, backend_name, answers)
    except FreshproofError as error:
        _send(answers, _failure(error.what, error.remedy, error.exit_code))
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        _send(answers, _failure(f"{type(error).__name__}: {error}", "see the worker's log", OTHER_FAULT))
        return OTHER_FAULT
    return 0


def _serve(zkey: Path, wtns: Path, backend_name: str, answers: IO[bytes]) -> None:
    witness = _in_memory(read_wtns(wtns))
    try:
        _serve_with(witness, zkey, backend_name, answers)
    finally:
        witness.words.fill(0)


def _serve_with(witness: Witness, zkey: Path, backend_name: str, answers: IO[bytes]) -> None:
    with Session.open(zkey, backend_name, artifact_from_orchestrator, _say) as session:
        require_match(witness, session.key.curve, session.key.n_vars, zkey)
        ready = _ready(session, witness)
        _send(answers, ready)
        for line in sys.stdin.buffer:
            request = _parse(line)
            if request["op"] == "close":
                return
            answer = _sample(session, witness, request)
            require_same_sources(ready["sources"], imported_sources(checkout()))
            _send(answers, answer)


def _in_memory(witness: Witness) -> Witness:
    """A copy outside the mapped file: no sample reads the disk, and it can be erased."""
    return replace(witness, words=np.array(witness.words))


def _ready(session: Session, witness: Witness) -> dict[str, Any]:
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


def _sample(session: Session, witness: Witness, request: dict[str, Any]) -> dict[str, Any]:
    outcome = session.prove(witness)
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
