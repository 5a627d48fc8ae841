"""An attribution as a person or a program reads it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestrator.compare.factorial import Attribution, Class, Effect

if TYPE_CHECKING:
    from orchestrator.compare.attribute import Attributed

_HEADER = ("flag", "alone", "last", "share", "95 % interval", "of none", "it", "most of it in")


def cells(result: Attributed) -> list[list[str]]:
    """Header, a row a flag, what is unexplained, and as the last row the whole."""
    found = result.found
    scale, unit = scale_of(found)
    phases = any(result.phases)
    width = len(_HEADER) if phases else len(_HEADER) - 1
    rows = [[*_HEADER]]
    rows[0][1:4] = [f"{name} {unit}" for name in _HEADER[1:4]]
    for flag, effect, phase in zip(result.flags, found.flags, result.phases, strict=True):
        shares = [_interval(effect.share, scale), _percent(effect.share, found)]
        alone, last, share = (_number(e.value, scale) for e in (effect.alone, effect.last, effect.share))
        rows.append([flag.name, alone, last, share, *shares, str(effect.kind), phase])
    left = found.unexplained
    if not found.exact:
        rows.append(
            ["unexplained", "", "", _number(left.value, scale), _interval(left, scale), _percent(left, found)]
        )
    whole = found.whole
    rows.append(
        [
            "all beside none",
            "",
            "",
            _number(whole.value, scale),
            _interval(whole, scale),
            _percent(whole, found),
        ]
    )
    return [[*row, *[""] * (width - len(row))][:width] for row in rows]


def opening_line(result: Attributed) -> str:
    """What was timed, and from where to where the time goes."""
    found = result.found
    scale, unit = scale_of(found)
    return (
        f"{result.workload.name}: {found.none / scale:.3f} {unit} with no flag on, "
        f"{found.all / scale:.3f} {unit} with all on"
    )


def closing_lines(result: Attributed) -> list[str]:
    """What must be said beside the numbers."""
    found = result.found
    lines = [
        f"{result.blocks} blocks of {result.launches} launches, in an order by lot; {result.level}",
        "alone: beside none; last: beside all without it, so what reverting it would give back",
        "share: the mean over all orders of switching on; it splits the whole, and names no cause"
        if len(result.flags) <= 6
        else "share: the mean of alone and last",
    ]
    if not found.exact and not found.unexplained.interval[0] <= 0 <= found.unexplained.interval[1]:
        lines.append(
            f"UNEXPLAINED: {_percent(found.unexplained, found)} of the time with none is no flag's share: "
            "flags act on each other beyond this design; attribute those that matter by themselves"
        )
    if any(flag.kind is Class.UNKNOWN for flag in found.flags):
        lines.append("unknown: beside so many flags these samples do not settle it; more --blocks may")
    total = result.blocks * result.launches
    if result.disturbed:
        lines.append(f"warning: other programs were busy beside {result.disturbed} of {total} launches")
    lines += [f"warning: {text}" for text in result.disturbances]
    return [*lines, f"record {result.record}"]


def attributed_fields(result: Attributed) -> dict[str, Any]:
    """For ``--json``; times in ns."""
    found = result.found
    return {
        "state": "fresh",
        "workload": result.workload.name,
        "level": result.level,
        "none": found.none,
        "all": found.all,
        "whole": asdict(found.whole),
        "flags": [
            {"flag": flag.name, **asdict(effect), "phase": phase}
            for flag, effect, phase in zip(result.flags, found.flags, result.phases, strict=True)
        ],
        "unexplained": asdict(found.unexplained),
        "exact": found.exact,
        "blocks": result.blocks,
        "launches": result.launches,
        "disturbed": result.disturbed,
        "disturbances": list(result.disturbances),
        "run_id": result.run_id,
        "record": result.record,
    }


def scale_of(found: Attribution) -> tuple[float, str]:
    """The unit that suits, and how many ns it has."""
    return (1e9, "s") if max(found.none, found.all) >= 10e9 else (1e6, "ms")


def _number(value: float, scale: float) -> str:
    return f"{value / scale:+.3f}"


def _interval(effect: Effect, scale: float) -> str:
    return " to ".join(_number(end, scale) for end in effect.interval)


def _percent(effect: Effect, found: Attribution) -> str:
    return f"{effect.value / found.none * 100:+.1f} %"


def no_op_lines(names: Sequence[str]) -> list[str]:
    """Flags that were left out."""
    return [f"note: {name} makes the same code with and without the others: left out" for name in names]
