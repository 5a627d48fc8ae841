"""How second builds compare, in lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.objects.compare import Change, Difference

if TYPE_CHECKING:
    from orchestrator.rebuild import Rebuilt


def rebuilt_lines(rebuilt: Sequence[Rebuilt]) -> list[str]:
    """One line a target, more where a second build is not what was promised; the counts last."""
    if not rebuilt:
        return []
    lines = ["second builds:"]
    width = max(len(one.target) for one in rebuilt)
    for one in rebuilt:
        lines.append(f"  {one.target:<{width}}  {_in_words(one)}")
        if one.difference is not None and not one.kept:
            lines += [
                f"    {level} digest {a or 'none'} -> {b or 'none'}" for level, a, b in one.digests if a != b
            ]
            lines += [f"    {part}" for part in _parts(one.difference)]
    kept = sum(one.kept for one in rebuilt)
    return [*lines, f"{kept} of {len(rebuilt)} as promised"]


def rebuilt_fields(rebuilt: Sequence[Rebuilt]) -> list[dict[str, Any]]:
    """For ``--json``."""
    return [
        {
            "target": one.target,
            "promised": one.promised,
            "kept": one.kept,
            "identical": one.difference.identical if one.difference else None,
            "same": one.difference.same if one.difference else None,
            "digests": {level: [recorded, second] for level, recorded, second in one.digests},
            "parts": _parts(one.difference) if one.difference else [],
            "note": one.note,
        }
        for one in rebuilt
    ]


def _in_words(one: Rebuilt) -> str:
    if one.difference is None:
        return f"no second build: {one.note}"
    if one.difference.identical:
        found = "the same bytes"
    elif one.difference.same:
        found = "the same up to noise (temporary names, string tables, build ids), device code the same"
    else:
        found = "DIFFERENT"
    return f"{found}; {one.note}" if one.note else found


def _parts(difference: Difference) -> list[str]:
    """What differs, part by part."""
    kernels = [f"kernel {k.name} {k.arch}: {k.change}" for k in difference.kernels if k.change != Change.SAME]
    host = [f"host section {name}: {change}" for name, change in difference.host]
    sealed = [f"{name}: {change}" for name, change in difference.sealed]
    stamps = [f"stamp {symbol}: {before} -> {after}" for symbol, before, after in difference.stamps]
    other = [f"device {name}: {change}" for name, change in difference.other]
    return [*kernels, *other, *host, *sealed, *stamps]
