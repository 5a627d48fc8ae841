"""`groth16 worker`: a resident prover that the orchestrator asks for samples.

The key is loaded once; the timed region of a sample runs from the witness in host memory to the proof's
points, and the check follows it. A cold sample begins earlier, with the key file: it is read, checked and
made resident anew.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prover.formats.wtns import read_wtns
from prover.loading import artifact_from_orchestrator
from prover.serving import Facts, Sampled
from prover.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from prover.formats.wtns import Witness


@dataclass(frozen=True, slots=True)
class Job:
    """What to serve proofs of, and how."""

    zkey: Path
    wtns: Path
    backend: str
    gpu_memory: int | None = None
    """Bytes of the GPU to use at most."""
    cold: bool = False
    """Each sample begins with the key file, as `groth16 prove` does; else the key is loaded once, before."""


class Proofs:
    """Proofs of one witness with one key, as a `prover.serving.Service`."""

    def __init__(self, job: Job) -> None:
        """Read both and load the key. Raises what `Session.open` does."""
        self._job = job
        witness = read_wtns(job.wtns)
        self._session = self._open(witness)
        # Outside the mapped file: no sample reads the disk, and it can be erased.
        backend, n_vars = self._session.backend, self._session.key.n_vars
        words = np.empty_like(witness.words) if job.cold else backend.host_words(n_vars)
        words[:] = witness.words
        self._witness = replace(witness, words=words)

    def facts(self) -> Facts:
        """The circuit by its numbers, and both files by digest."""
        key, backend = self._session.key, self._session.backend
        work = {
            "circuit": key.file.path.stem,
            "curve": key.curve.name,
            "constraints": key.n_constraints,
            "wires": key.n_vars,
            "public": key.n_public,
            "domain": key.domain_size,
            "entries": len(key.coefs),
            "backend": backend.name,
            "timed from": "key file" if self._job.cold else "witness",
            **backend.arrangement,
            "key_digest": key.file.digest(),
            "witness_digest": self._witness.file.digest(),
        }
        return Facts(backend.loaded, backend.device, work)

    def sample(self) -> Sampled:
        """One proof, and its check."""
        if self._job.cold:
            self._session.backend.close()
            self._session = self._open(self._witness)
        outcome = self._session.prove(self._witness)
        if self._job.cold:
            outcome = self._session.opening.before(outcome)
        return Sampled(outcome.t0_ns, outcome.t1_ns, outcome.spans, outcome.check)

    def close(self) -> None:
        """Erase the witness, here and on the backend."""
        self._witness.words.fill(0)
        self._session.backend.close()

    def _open(self, witness: Witness) -> Session:
        job = self._job
        find, once = artifact_from_orchestrator, job.cold
        return Session.open(job.zkey, job.backend, find, _say, job.gpu_memory, witness, once=once)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
