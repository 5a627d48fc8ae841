"""What a bench said in a watch: its times, beside those of the first and the last bench. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.canonical import parse_json
from orchestrator.compare.rank_sum import Delta, compare_times, delta_text
from orchestrator.stats import disturbs, summarize


@dataclass(frozen=True, slots=True)
class Timed:
    """One bench that counts."""

    at: str
    """Time of day, for people."""
    times_ns: tuple[int, ...]
    """Totals of the samples, without warm-ups."""
    record: str
    """Path, relative to the project's root."""
    others: float = 0.0
    """How many processors other programs used meanwhile."""
    processors: int = 1

    @property
    def disturbed(self) -> str:
        """Why its times cannot be compared with others; empty if they can."""
        if not disturbs(self.others, self.processors):
            return ""
        return f"other programs used {self.others:.1f} of {self.processors} processors at {self.at}"


def parse_bench(said: str) -> tuple[str, str]:
    """From the document of ``bench --json``: the record's path if the run counts, else empty and why not."""
    try:
        document = parse_json(said.encode("utf-8", "replace"))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return "", "it gave no result"
    if "error" in document:
        return "", str(document["error"])
    run = (document.get("runs") or [{}])[0]
    if run.get("state") == "fresh":
        return str(run["record"]), ""
    findings = [f["message"] for verdict in run.get("verdicts", ()) for f in verdict["findings"]]
    why = run.get("error") or "; ".join(findings) or "nothing more is known"
    return "", f"{run.get('state', 'broken')}: {why}"


def timed_fields(now: Timed, first: Timed | None, last: Timed | None) -> dict[str, Any]:
    """A bench as an event; ``first`` and ``last`` are the earlier ones of this watch."""
    summary = summarize(now.times_ns)
    compared = [("last", last), ("first", first if first is not last else None)]
    return {
        "record": now.record,
        "others": now.others,
        "disturbed": now.disturbed,
        **asdict(summary),
        "against": [_against(name, then, now) for name, then in compared if then is not None],
    }


def _against(name: str, then: Timed, now: Timed) -> dict[str, Any]:
    delta: Delta = compare_times(then.times_ns, now.times_ns, now.disturbed or then.disturbed)
    return {
        "which": name,
        "at": then.at,
        "record": then.record,
        "median": summarize(then.times_ns).median,
        **asdict(delta),
        "text": delta_text(delta),
    }
