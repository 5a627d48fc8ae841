"""Events of a watch in words: lines, each with a style. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

Line = tuple[str, str]
"""Style (of rich; empty for none) and text."""

_MOST_NAMES = 6
_RESULT_STYLES = {"built": "green", "failed": "red", "unproven": "yellow", "fresh": "green"}


def lines_of(event: Mapping[str, Any]) -> list[Line]:
    """What is to be said of an event; nothing of those that only a display of the present state needs."""
    say = _SAY.get(event["event"])
    return say(event) if say else []


def watching_text(event: Mapping[str, Any]) -> str:
    """What is watched, from the event that tells it."""
    by = "" if not event["polled"] else f", {_count(event['polled'], 'folder')} by looking"
    return (
        f"watching {_count(event['targets'], 'target')}: {event['places']:,} names in "
        f"{_count(event['folders'], 'folder')}{by}"
    )


def _changed(event: Mapping[str, Any]) -> list[Line]:
    files = [f"{one['path']} {one['how']}" for one in event["files"]]
    line = f"{_clock(event)} {_listed(files)} -> {_listed(event['targets']) or 'no target'}"
    return [("bold", line)]


def _touched(event: Mapping[str, Any]) -> list[Line]:
    return [("dim", f"{_clock(event)} {_listed(event['files'])}: saved, content unchanged; nothing to build")]


def _built(event: Mapping[str, Any]) -> list[Line]:
    seconds = f"{event['seconds']:.2f} s" if event["seconds"] else ""
    words = [f"  {event['result']:<8} {event['target']}", seconds, event["reason"]]
    if event["result"] == "fresh":
        words[-1] = "again"
    lines = [(_RESULT_STYLES.get(event["result"], ""), "  ".join(filter(None, words)))]
    if event["message"]:
        lines += [("", f"    {line}") for line in event["message"].splitlines()]
    if event["message"] and event["remedy"]:
        lines.append(("", f"    -> {event['remedy']}"))
    return lines


def _code(event: Mapping[str, Any]) -> list[Line]:
    whose = "" if event["alone"] else f"{event['target']}: "
    return [("cyan", f"    {whose}{line}") for line in event["lines"]]


def _verified(event: Mapping[str, Any]) -> list[Line]:
    if event["admitted"]:
        return [("green", f"  verified {_listed([one['target'] for one in event['targets']])}")]
    lines: list[Line] = [("red", f"  not verified{': ' + event['error'] if event['error'] else ''}")]
    for one in event["targets"]:
        for finding in one["findings"]:
            lines.append(("", f"    {one['target']}: {finding['link']}: {finding['message']}"))
            if finding["recorded"] is not None or finding["observed"] is not None:
                lines.append(("", f"      recorded {finding['recorded'] or 'nothing'}"))
                lines.append(("", f"      now      {finding['observed'] or 'unknown'}"))
    return lines


def _benched(event: Mapping[str, Any]) -> list[Line]:
    if event["state"] != "fresh":
        return [("red", f"  {event['workload']}: not timed: {event['why']}")]
    scale, unit = (1e9, "s") if event["median"] >= 10e9 else (1e6, "ms")
    lines: list[Line] = [
        (
            "green",
            f"  {event['workload']}: median {event['median'] / scale:.3f} {unit} of "
            f"{_count(event['n'], 'sample')}, MAD {event['mad'] / scale:.3f} {unit}",
        )
    ]
    if event["disturbed"]:
        lines.append(("yellow", f"    {event['disturbed']}"))
    for one in event["against"]:
        styles = {"faster": "green", "slower": "red"}
        then = f"{one['median'] / scale:.3f} {unit}"
        text = f"    beside the {one['which']} ({one['at']}, {then}): {one['text']}"
        lines.append((styles.get(one["answer"], ""), text))
    return lines


def _command(event: Mapping[str, Any]) -> list[Line]:
    code = event["code"]
    how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
    return [("green" if code == 0 else "red", f"  the command {how}")]


def _error(event: Mapping[str, Any]) -> list[Line]:
    lines: list[Line] = [("red", f"error: {event['error']}")]
    return [*lines, ("", f"  -> {event['remedy']}")] if event["remedy"] else lines


def _round(event: Mapping[str, Any]) -> list[Line]:
    failing = f"; failing: {_listed(event['failing'])}" if event["failing"] else ""
    nothing = "nothing built" if event["failing"] else "nothing to build"
    built = f"{event['built']} built" if event["built"] else nothing
    built += "" if event["good"] or event["failing"] else ", and what follows a build failed"
    style = "green" if event["good"] else "red"
    how = "done" if event["good"] else "not done"
    return [(style, f"{_clock(event)} {how} in {event['seconds']:.2f} s: {built}{failing}")]


def _clock(event: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(event["at"]).strftime("%H:%M:%S")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_SAY: Mapping[str, Callable[[Mapping[str, Any]], list[Line]]] = {
    "plan": lambda event: [("dim", line) for line in event["lines"]],
    "note": lambda event: [("yellow", f"note: {event['text']}")],
    "changed": _changed,
    "touched": _touched,
    "built": _built,
    "code": _code,
    "cut": lambda event: [("dim", f"  {event['what']} cut off")],
    "error": _error,
    "said": lambda event: [("", f"  | {event['line']}")] if event["step"] == "command" else [],
    "verified": _verified,
    "benched": _benched,
    "command": _command,
    "round": _round,
}
