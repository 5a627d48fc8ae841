"""A key made resident on a backend, and proofs made and checked with it: what `prove` and `worker` share."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prover import groth16
from prover.check import Check, Checker
from prover.formats.wtns import require_match
from prover.formats.zkey import ProvingKey, read_zkey
from prover.loading import open_backend
from prover.phases import Phases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.protocol import Span
    from prover.backends import Backend
    from prover.formats.wtns import Witness
    from prover.groth16 import Proof
    from prover.loading import FindArtifact


@dataclass(frozen=True, slots=True)
class Outcome:
    """One proof with its times (ns of CLOCK_MONOTONIC) and what the check said of it."""

    proof: Proof
    public: list[int]
    t0_ns: int
    """The witness is in host memory, the key resident."""
    t1_ns: int
    """The proof's points are Python integers. The check is not in between."""
    spans: tuple[Span, ...]
    check: Check
    deterministic: bool
    """Made with given r and s: not zero-knowledge."""
    arrangement: Mapping[str, str]
    """`Backend.arrangement` as the proof was made; later the key may be gone from the backend."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a key file became ready for proofs."""

    t0_ns: int
    """The file is about to be read."""
    spans: tuple[Span, ...]

    def before(self, first: Outcome) -> Outcome:
        """The first proof, timed from the key file on."""
        return replace(first, t0_ns=self.t0_ns, spans=(*self.spans, *first.spans))


class Session:
    """One key on one backend. Use as a context manager: leaving it scrubs what held a witness."""

    def __init__(self, key: ProvingKey, backend: Backend, checker: Checker, opening: Opening) -> None:
        self.key = key
        self.backend = backend
        self.opening = opening
        self._checker = checker

    @classmethod
    def open(
        cls,
        zkey: Path,
        backend_name: str,
        find_artifact: FindArtifact,
        say: Callable[[str], None],
        gpu_memory: int | None = None,
        witness: Witness | None = None,
        *,
        once: bool = False,
    ) -> Session:
        """Read a key, check every point of it, and make it resident.

        A ``witness`` that is meant for it is held against it first: the rest takes time. ``once``: as
        `open_backend` has it.
        Raises `MalformedFile` for anything wrong with the key, and what `open_backend` raises.
        """
        phases, t0_ns = Phases(), time.monotonic_ns()
        with phases.span("key read"):
            key = read_zkey(zkey)
        if witness is not None:
            require_match(witness, key.curve, key.n_vars, zkey)
        say(f"{zkey.name}: {key.curve.name}, {key.n_constraints} constraints, domain 2^{key.log_domain}")
        with phases.span("verification key"):
            checker = Checker.of_key(key)
        with phases.span("code loaded"):
            backend = open_backend(backend_name, key.curve, find_artifact, gpu_memory, once=once)
        for entry in backend.loaded:
            say(f"{entry.target}: loaded, {entry.how}, {entry.digest}")
        backend.phases = phases
        backend.load(key)
        say("".join(f"{name}: {value}; " for name, value in backend.arrangement.items()) + "key loaded")
        with phases.span("points checked"):
            _require_points(key, backend)
        return cls(key, backend, checker, Opening(t0_ns, phases.drain()))

    def prove(self, witness: Witness, blinders: tuple[int, int] | None = None) -> Outcome:
        """Make a proof and check it; r and s come from the operating system unless given (tests only).

        Raises `MalformedFile` for a witness of another circuit. A failed check is part of the outcome.
        """
        require_match(witness, self.key.curve, self.key.n_vars, self.key.file.path)
        t0_ns = time.monotonic_ns()
        r, s = blinders or groth16.blinders(self.key.curve)
        proof = groth16.prove(self.key, witness.words, r, s, self.backend)
        t1_ns = time.monotonic_ns()
        public = witness.public_signals(self.key.n_public)
        check = self._checker.check(proof, public)
        spans = self.backend.phases.drain()
        arrangement = self.backend.arrangement
        return Outcome(proof, public, t0_ns, t1_ns, spans, check, blinders is not None, arrangement)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.backend.close()


def _require_points(key: ProvingKey, backend: Backend) -> None:
    bad = backend.check_points()
    if bad is not None:
        query, index = bad
        width = getattr(key, query).shape[1]
        raise key.query_section(query).fault(index * width, f"point {index} is not on the curve")
