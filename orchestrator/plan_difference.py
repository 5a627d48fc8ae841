"""The recorded action beside the one planned now: what differs, with both sides. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.canonical import digest_bytes
from orchestrator.model import Action, Link, Manifest, Observation


def compare_plans(manifest: Manifest, action: Action) -> list[Observation]:
    """One observation for each difference, or one match for the whole plan."""
    name = action.target.name
    generated = {g.path: digest_bytes(g.text.encode()) for g in action.generated}
    command = _difference(manifest.argv[1:], action.argv[1:])
    differences = [
        *_changed("kind-changed", name, manifest.kind, action.target.kind),
        *_changed("arch-changed", name, manifest.arch or "none", action.arch or "none"),
        *_changed("nvcc-changed", "nvcc", manifest.argv[0], action.argv[0]),
        *_changed("flags-changed", f"command of {name}", *command),
        *_changed_values("environment-changed", dict(manifest.environment), dict(action.environment)),
        *_changed_values("generated-changed", dict(manifest.generated), generated),
    ]
    if differences:
        return differences
    planned = f"{len(action.argv)} words, {len(action.environment)} variables"
    return [Observation(Link.PLAN, "plan", name, planned, planned)]


def _changed(code: str, subject: str, recorded: str, observed: str) -> list[Observation]:
    if recorded == observed:
        return []
    return [Observation(Link.PLAN, code, subject, str(recorded), str(observed))]


def _changed_values(code: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[Observation]:
    if before == now:
        return []
    names = sorted(before.keys() | now.keys())
    return [o for n in names for o in _changed(code, n, before.get(n, "unset"), now.get(n, "unset"))]


def _difference(recorded: Sequence[str], now: Sequence[str]) -> tuple[str, str]:
    """The parts of two commands that differ, unless they are equal."""
    if tuple(recorded) == tuple(now):
        return "", ""
    start = 0
    while start < min(len(recorded), len(now)) and recorded[start] == now[start]:
        start += 1
    end = 0
    while end < min(len(recorded), len(now)) - start and recorded[-1 - end] == now[-1 - end]:
        end += 1
    return _words(recorded[start : len(recorded) - end]), _words(now[start : len(now) - end])


def _words(words: Sequence[str]) -> str:
    """Command words so that two different sequences never read alike."""
    plain = [w if w.isascii() and w.isprintable() and w and " " not in w else repr(w) for w in words]
    return " ".join(plain) or "nothing"
