"""Is the code that ran the code that was admitted? Observations for the links `loaded` and `drivers`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.freshness import judge
from orchestrator.model import Admitted, Evidence, Link, Observation, Verdict
from orchestrator.protocol import Ready

RUN = "this run"
"""The subject of verdicts about a process, where others are about a target."""


_WORKER_FAULT = "the workload must load what FRESHPROOF_ARTIFACTS names, in a process of its own"


def compare_loaded(root: Path, nonce: str, artifacts: Sequence[Admitted], ready: Ready) -> Verdict:
    """Hold the worker's first message against what the gate admitted and against the sources on the disk."""
    observations = (
        Observation(
            Link.LOADED,
            "nonce-changed",
            "FRESHPROOF_NONCE",
            nonce,
            ready.nonce,
            note="the worker's answer belongs to another run",
            remedy="the workload must echo FRESHPROOF_NONCE",
        ),
        *_loaded(artifacts, ready),
        *_sources(root, ready, "the process runs other source text than the file holds"),
    )
    return judge(Evidence(RUN, frozenset({Link.LOADED, Link.DRIVERS}), observations))


def compare_again(
    root: Path, before: Sequence[Admitted], after: Sequence[Admitted], ready: Ready | None
) -> Verdict:
    """After the run: the same artifacts are admitted, and the sources that ran are still there."""
    now = {artifact.target: artifact.digest for artifact in after}
    artifacts = tuple(
        Observation(
            Link.ARTIFACT,
            "artifact-changed",
            artifact.target,
            artifact.digest,
            now.get(artifact.target),
            note=f"{artifact.target}: another artifact was built during the run"
            if artifact.target in now
            else f"{artifact.target}: no longer admitted",
            remedy="run it again, and leave the targets alone while it runs",
        )
        for artifact in before
    )
    if ready is None:
        return judge(Evidence(RUN, frozenset({Link.ARTIFACT}), artifacts))
    sources = _sources(root, ready, "the file changed during the run")
    return judge(Evidence(RUN, frozenset({Link.ARTIFACT, Link.DRIVERS}), (*artifacts, *sources)))


def compare_sources(root: Path, ready: Ready) -> Verdict:
    """Whether the sources that the process runs are still there, when it did not get to its end."""
    sources = tuple(_sources(root, ready, "the file changed during the run"))
    return judge(Evidence(RUN, frozenset({Link.DRIVERS}), sources))


def _loaded(artifacts: Sequence[Admitted], ready: Ready) -> Iterator[Observation]:
    for artifact in artifacts:
        entries = [entry for entry in ready.loaded if entry.target == artifact.target]
        if not entries:
            note = f"{artifact.target}: the workload did not say that it loaded this artifact"
            yield Observation(
                Link.LOADED, "not-loaded", artifact.target, artifact.digest, None, note, _WORKER_FAULT
            )
        for entry in entries:
            for code, recorded, observed in (
                ("loaded-digest-changed", artifact.digest, entry.digest),
                ("loaded-stamp-changed", artifact.stamp, entry.stamp),
            ):
                note = (
                    f"{entry.target}: the process runs another artifact than the admitted one ({entry.how})"
                )
                yield Observation(Link.LOADED, code, entry.target, recorded, observed, note, _WORKER_FAULT)
    admitted = {artifact.target for artifact in artifacts}
    for entry in ready.loaded:
        if entry.target not in admitted:
            note = f"{entry.target}: the workload loaded it, and it was not admitted for it"
            remedy = "name the target in the workload's `uses`"
            yield Observation(
                Link.LOADED, "loaded-unadmitted", entry.target, None, entry.digest, note, remedy
            )


def _sources(root: Path, ready: Ready, changed: str) -> Iterator[Observation]:
    for source in ready.sources:
        note, digest = f"{source.path}: {changed}", None
        try:
            digest = "sha256:" + hashlib.sha256((root / source.path).read_bytes()).hexdigest()
        except OSError as error:
            note = f"{source.path}: cannot be read: {error.strerror}"
        remedy = "run the benchmark again, and leave the workload's sources alone while it runs"
        yield Observation(Link.DRIVERS, "driver-changed", source.path, source.digest, digest, note, remedy)
