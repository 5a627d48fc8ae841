"""Finds the records of earlier runs that a comparison names."""

from __future__ import annotations

from pathlib import Path

from orchestrator.compare.records import Stored, stored_run
from orchestrator.errors import BrokenRun, ConfigurationError
from orchestrator.records import read_record

_LEAST_LETTERS = 4


def find_run(root: Path, word: str) -> Stored:
    """The run of a record's path, or of a run's id or how it begins or ends.

    Raises `ConfigurationError` if there is none or more than one, `BrokenRun` if its times do not count.
    """
    path = Path(word)
    if not path.is_file():
        path = _by_id(root, word)
    return stored_run(read_record(path), str(path))


def last_two(root: Path, workload: str) -> tuple[Stored, Stored]:
    """The last two runs of a workload that count, the earlier first. Raises `ConfigurationError`."""
    found: list[Stored] = []
    for path in sorted(_records(root).glob("*.jsonl"), reverse=True):
        try:
            run = stored_run(read_record(path), str(path))
        except (BrokenRun, ConfigurationError):
            continue  # does not count, for whatever reason
        if run.workload == workload:
            found.append(run)
        if len(found) == 2:
            return found[1], found[0]
    raise ConfigurationError(
        f"of {workload} there {'is one record' if found else 'is no record'} that counts; two are compared",
        remedy=f"freshproof bench {workload}",
    )


def _by_id(root: Path, word: str) -> Path:
    known = sorted(_records(root).glob("*.jsonl"))
    if len(word) >= _LEAST_LETTERS:
        ids = [path for path in known if path.stem.startswith(word) or path.stem.endswith(word)]
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise ConfigurationError(
                f"`{word}` stands for {len(ids)} runs", remedy=", ".join(path.stem for path in ids[:5])
            )
    raise ConfigurationError(
        f"`{word}` is no workload, no record and no run in {_records(root)}",
        remedy="name two workloads, two records, or two runs",
    )


def _records(root: Path) -> Path:
    return root / "build" / "records"
