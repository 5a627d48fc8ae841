"""A verdict as a person or a program reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
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
    return [line for lines in lines_of_each(verdicts) for line in lines]


def lines_of_each(verdicts: Iterable[Verdict]) -> list[list[str]]:
    """The lines of each verdict, its state first; what was told of one before is not told again."""
    verdicts = tuple(verdicts)
    owners: dict[Finding, dict[str, None]] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            owners.setdefault(finding, {})[verdict.target] = None
    told: dict[Finding, str] = {}
    found = []
    for verdict in verdicts:
        lines = [f"{verdict.target}: {verdict.state}"]
        before = [told[finding] for finding in verdict.findings if finding in told]
        if before:
            count = "1 finding" if len(before) == 1 else f"{len(before)} findings"
            lines.append(f"  {count} told above, of {', '.join(dict.fromkeys(before))}")
        new = tuple(finding for finding in verdict.findings if finding not in told)
        told.update(dict.fromkeys(new, verdict.target))
        lines += _findings_lines(new, owners)
        if not verdict.findings:
            lines.append("  " + _matched(dict(verdict.matches)))
        found.append(lines)
    return found


def _findings_lines(
    findings: Sequence[Finding], owners: Mapping[Finding, Mapping[str, None]]
) -> Iterator[str]:
    """Findings that one remedy helps, one after the other, have it once, after the last of them."""
    for finding, following in zip_longest(findings, findings[1:]):
        yield f"  {finding.link}: {finding.message}"
        if finding.recorded is not None or finding.observed is not None:
            before, now = _SIDES.get(finding.link, ("recorded", "now"))
            yield f"    {before:<8} {finding.recorded or 'nothing'}"
            yield f"    {now:<8} {finding.observed or 'unknown'}"
        if len(owners[finding]) > 1:
            yield f"    of       {', '.join(owners[finding])}"
        if following is None or following.remedy != finding.remedy:
            yield f"    -> {finding.remedy}"


def _matched(matches: Mapping[Any, int]) -> str:
    return "as recorded: " + ", ".join(str(link) for link, count in matches.items() if count)
