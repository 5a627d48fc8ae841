"""The decision: `judge` turns evidence into a verdict. Build, explain, watch and the gate all ask it.

Pure. **Fresh only if every required link has a positive match and nothing differs or is unknown.** An empty
list of reasons is no reason to call something fresh.
"""

from __future__ import annotations

from collections import Counter

from orchestrator.model import Evidence, Finding, Link, Observation, State, Verdict


def judge(evidence: Evidence) -> Verdict:
    """Fresh, stale (something differs) or unproven (something could not be established)."""
    findings = [f for f in map(_finding, evidence.observations) if f is not None]
    matches = Counter(o.link for o in evidence.observations if _matches(o))
    unsettled = {f.link for f in findings}
    for link in sorted(evidence.required):
        if not matches[link] and link not in unsettled:
            findings.append(_unestablished(evidence.target, link))
    if not evidence.required:
        findings.append(_unestablished(evidence.target, Link.PLAN))
    states = {f.state for f in findings}
    doubt = State.UNPROVEN if states else State.FRESH
    state = State.STALE if State.STALE in states else doubt
    return Verdict(evidence.target, state, tuple(findings), tuple(sorted(matches.items())))


def combine(verdict: Verdict, more: Evidence) -> Verdict:
    """A verdict and what was looked at besides: the worse state, all findings, all matches."""
    other = judge(more)
    states = (verdict.state, other.state)
    worst = next((state for state in (State.STALE, State.UNPROVEN) if state in states), State.FRESH)
    matches = Counter(dict(verdict.matches)) + Counter(dict(other.matches))
    return Verdict(
        verdict.target, worst, (*verdict.findings, *other.findings), tuple(sorted(matches.items()))
    )


def _matches(observation: Observation) -> bool:
    return observation.recorded is not None and observation.recorded == observation.observed


def _finding(o: Observation) -> Finding | None:
    if _matches(o):
        return None
    known = o.recorded is not None and o.observed is not None
    if known:
        plain = f"expected {o.recorded}, found {o.observed}" if o.link is Link.CONTENTS else "not as recorded"
        message = o.note or f"{o.subject}: {plain}"
    else:
        message = o.note or f"{o.subject}: could not be established"
    return Finding(
        state=State.STALE if known else State.UNPROVEN,
        link=o.link,
        code=o.code,
        subject=o.subject,
        recorded=o.recorded,
        observed=o.observed,
        message=message,
        remedy=o.remedy or "freshproof build",
    )


def _unestablished(target: str, link: Link) -> Finding:
    return Finding(
        state=State.UNPROVEN,
        link=link,
        code=f"{link}-unproven",
        subject=target,
        recorded=None,
        observed=None,
        message=f"{target}: nothing was found that shows its {link} to be as recorded",
        remedy="freshproof build",
    )
