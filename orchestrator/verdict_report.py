"""A verdict as a person or a program reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.model import Finding, Link, Verdict

_SIDES = {
    Link.CONTENTS: ("expected", "found"),
    Link.DEVICE_LINK: ("expected", "found"),
    Link.COPIES: ("artifact", "copy"),
    Link.LOADED: ("admitted", "loaded"),
}
"""What is held against something else than its own earlier state."""


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "target": verdict.target,
        "state": verdict.state,
        "findings": [asdict(finding) for finding in verdict.findings],
        "matches": dict(verdict.matches),
    }


def verdict_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Every finding of every target, or what makes it fresh. What several have in common is told once, with
    the names of all.
    """
    verdicts = tuple(verdicts)
    owners: dict[Finding, dict[str, None]] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            owners.setdefault(finding, {})[verdict.target] = None
    lines = []
    told: dict[Finding, str] = {}
    for verdict in verdicts:
        lines.append(f"{verdict.target}: {verdict.state}")
        before = [told[finding] for finding in verdict.findings if finding in told]
        if before:
            count = "1 finding" if len(before) == 1 else f"{len(before)} findings"
            lines.append(f"  {count} told above, of {', '.join(dict.fromkeys(before))}")
        for finding in verdict.findings:
            if finding not in told:
                told[finding] = verdict.target
                lines += _finding_lines(finding, tuple(owners[finding]))
        if not verdict.findings:
            lines.append("  " + _matched(dict(verdict.matches)))
    return lines


def _finding_lines(finding: Finding, owners: Sequence[str]) -> Iterator[str]:
    yield f"  {finding.link}: {finding.message}"
    if finding.recorded is not None or finding.observed is not None:
        before, now = _SIDES.get(finding.link, ("recorded", "now"))
        yield f"    {before:<8} {finding.recorded or 'nothing'}"
        yield f"    {now:<8} {finding.observed or 'unknown'}"
    if len(owners) > 1:
        yield f"    of       {', '.join(owners)}"
    yield f"    -> {finding.remedy}"


def _matched(matches: Mapping[Any, int]) -> str:
    return "as recorded: " + ", ".join(str(link) for link, count in matches.items() if count)
