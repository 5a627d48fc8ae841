"""One run as its record tells it: its code, its machine, what was loaded, every sample, the end."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator import __version__, environment
from orchestrator.errors import FreshproofError, Missing
from orchestrator.model import Admission, Verdict
from orchestrator.protocol import Ready
from orchestrator.records import SCHEMA, RecordWriter, new_run_id
from orchestrator.sampling import Taken
from orchestrator.verdict_report import verdict_fields


class RunRecord:
    """The record of a run in progress. Use as a context manager; the file is made on entry."""

    def __init__(self, root: Path, purpose: str) -> None:
        self._root, self._purpose = root, purpose
        self.nonce = secrets.token_hex(16)
        """What the run's processes must echo."""
        self.run_id = new_run_id(time.time_ns() // 1_000_000)
        path = root / "build" / "records" / f"{self.run_id}.jsonl"
        self.shown_path = str(path.relative_to(root))
        self.log = path.with_suffix(".log")
        """Takes what the run's processes write."""
        self._path = path
        self.disturbances: tuple[str, ...] = ()
        """What made times longer than they need be, in words; known once the run began."""

    def __enter__(self) -> RunRecord:
        self._writer = RecordWriter(self._path)
        return self

    def __exit__(self, *_error: object) -> None:
        self._writer.close()

    def begin(self, fields: Mapping[str, Any], env: Mapping[str, str], admission: Admission) -> None:
        """Write what is run, the machine, and what was admitted; ``env`` is what the processes get."""
        head = {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "nonce": self.nonce,
            "tool": f"freshproof {__version__}",
            "python": sys.version.split()[0],
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "purpose": self._purpose,
            **fields,
            "source": environment.describe_commit(self._root),
        }
        self._writer.write("run", head)
        machine = environment.capture(env)
        self.disturbances = environment.disturbances(machine)
        self._writer.write("env", machine)
        states = {verdict.target: verdict for verdict in admission.verdicts}
        for artifact in admission.artifacts:
            fields = asdict(artifact)
            fields["artifact_kind"] = fields.pop("kind")  # every line's own kind has that name
            fields["matches"] = dict(states[artifact.target].matches)
            self._writer.write("artifact", fields)

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line."""
        self._writer.write(kind, fields)

    def drivers(self, ready: Ready, **of: Any) -> None:
        """What a worker said of itself."""
        fields = {
            "loaded": [asdict(entry) for entry in ready.loaded],
            "sources": [asdict(source) for source in ready.sources],
            "versions": dict(ready.versions),
            "device": ready.device,
            "work": dict(ready.work),
        }
        self._writer.write("drivers", {**of, **fields})

    def sample(self, taken: Taken, **of: Any) -> None:
        """One sample, warm-ups included."""
        sample, division = taken.sample, taken.sample.breakdown
        fields = {
            "index": sample.index,
            "phase": "warmup" if sample.warmup else "measured",
            **of,
            "outer_ns": sample.outer_ns,
            "t0_ns": taken.t0_ns,
            "t1_ns": taken.t1_ns,
            "spans": [asdict(span) for span in taken.spans],
            "overlap_ns": division.overlap_ns,
            "unaccounted_ns": division.unaccounted_ns,
            "check": None if sample.check is None else asdict(sample.check),
            "usage": None if sample.usage is None else asdict(sample.usage),
        }
        self._writer.write("sample", fields)

    def verdict(self, state: str, verdicts: Sequence[Verdict], fields: Mapping[str, Any]) -> None:
        """The last line."""
        listed = [verdict_fields(verdict) for verdict in verdicts]
        self._writer.write("verdict", {"state": state, **fields, "verdicts": listed})

    @contextmanager
    def broken_is_told(self) -> Iterator[None]:
        """An error or an interruption becomes the record's verdict, and goes on."""
        try:
            yield
        except FreshproofError as error:
            with suppress(Missing):  # a record that cannot be written has no verdict, and so cannot count
                self.verdict("broken", (), {"error": error.what, "exit_code": error.exit_code})
            raise
        except KeyboardInterrupt:
            with suppress(Missing):
                self.verdict("interrupted", (), {})
            raise
