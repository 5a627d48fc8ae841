"""A verdict as a person or a program reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from orchestrator.model import Link, Verdict

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
    """Every finding of every target, or what makes it fresh."""
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.target}: {verdict.state}")
        for finding in verdict.findings:
            lines.append(f"  {finding.link}: {finding.message}")
            if finding.recorded is not None or finding.observed is not None:
                before, now = _SIDES.get(finding.link, ("recorded", "now"))
                lines.append(f"    {before:<8} {finding.recorded or 'nothing'}")
                lines.append(f"    {now:<8} {finding.observed or 'unknown'}")
            lines.append(f"    -> {finding.remedy}")
        if not verdict.findings:
            lines.append("  " + _matched(dict(verdict.matches)))
    return lines


def _matched(matches: Mapping[Any, int]) -> str:
    return "as recorded: " + ", ".join(str(link) for link, count in matches.items() if count)
