"""What a build says: one line a target that cannot scroll away, then one line with the counts.

Pure: values in, lines or a JSON document out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.build import Built, Outcome, Result
from orchestrator.situation import Situation
from orchestrator.verdict_report import verdict_fields


def opening_lines(situation: Situation) -> list[str]:
    """Which nvcc, which architecture, and why."""
    lines = []
    for toolchain in dict.fromkeys(situation.toolchains.values()):
        compiler = next((full for role, full in toolchain.components if role.startswith("host/0/")), "")
        beside = f", host compiler {compiler}" if compiler else ""
        lines.append(f"nvcc {toolchain.version}: {toolchain.nvcc} ({toolchain.reason}){beside}")
    archs = sorted({a.arch for a in situation.actions if a.arch and a.target.arch in ("auto", "native")})
    if archs:
        lines.append(f"arch {', '.join(archs)}: {situation.arch_reason}")
    lines += [f"note: {note}" for note in situation.notes]
    return lines


def outcome_line(outcome: Outcome, width: int) -> str:
    """A target's line: what was done, how long it took, why, and where the record lies."""
    seconds = f"{outcome.seconds:7.2f} s" if outcome.seconds else " " * 9
    words = [f"  {outcome.result:<8} {outcome.target:<{width}} {seconds}  {outcome.reason}".rstrip()]
    if outcome.same_code:
        words.append("(machine code unchanged)")
    elif outcome.same_device_code:
        words.append("(device code unchanged)")
    if outcome.result is Result.BUILT:
        words.append(f"-> {outcome.manifest}")
    return " ".join(words)


_NAMED = 20
"""How many files that no target reads are named."""


def trouble_lines(outcome: Outcome) -> list[str]:
    """A target that failed or is unproven: the tool's own message, whole, and what to do."""
    how = "failed" if outcome.result is Result.FAILED else "is unproven, and the gate will not admit it"
    lines = [f"--- {outcome.target} {how}", *outcome.message.splitlines()]
    if outcome.remedy:
        lines.append(f"  -> {outcome.remedy}")
    return lines


def closing_lines(
    built: Built, seconds: float, lock_lines: Sequence[str], unused: Sequence[str]
) -> list[str]:
    """Files that no target reads, how the build compares with the lock, and the counts, last."""
    lines = []
    if unused:
        more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
        lines.append(f"no target reads: {', '.join(unused[:_NAMED])}{more}")
    lines += lock_lines
    counts = [
        f"{built.count(result)} {result}"
        for result in Result
        if built.count(result) or result in (Result.BUILT, Result.FRESH, Result.FAILED)
    ]
    lines.append(f"{', '.join(counts)} in {seconds:.2f} s")
    return lines


def command_lines(situation: Situation) -> list[str]:
    """For ``--plan``: the commands as they would run, with all of their environment, each on one line."""
    lines = []
    for action in situation.actions:
        variables = [f"{name}={value}" for name, value in action.environment]
        words = map(_quoted, ("env", "-i", *variables, *action.argv))
        lines += [f"# {action.target.name}", " ".join(words), ""]
    return lines[:-1]


def _quoted(word: str) -> str:
    """A word for a shell; what cannot be shown as it is, as bash and zsh spell it."""
    import shlex

    if word.isprintable():
        return shlex.quote(word)
    data = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in data) + "'"


def built_fields(
    built: Built, seconds: float, lock_lines: Sequence[str], unused: Sequence[str]
) -> dict[str, Any]:
    """For ``--json``."""
    return {
        "schema": "freshproof/build/1",
        "toolchain": toolchain_fields(built.situation),
        "targets": [
            {
                "target": outcome.target,
                "result": outcome.result,
                "reason": outcome.reason,
                "seconds": outcome.seconds,
                "manifest": outcome.manifest,
                "artifact": outcome.artifact,
                "same_code": outcome.same_code,
                "same_device_code": outcome.same_device_code,
                "message": outcome.message,
                "remedy": outcome.remedy,
                "before": verdict_fields(outcome.verdict),
            }
            for outcome in built.outcomes
        ],
        "lock": list(lock_lines),
        "unused": list(unused),
        "seconds": seconds,
    }


def toolchain_fields(situation: Situation) -> list[dict[str, Any]]:
    return [
        {"nvcc": t.nvcc, "version": t.version, "reason": t.reason}
        for t in dict.fromkeys(situation.toolchains.values())
    ]
