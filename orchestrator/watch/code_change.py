"""What a rebuild did to the machine code, in lines for an engineer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.objects.compare import Change, Difference, KernelChange
from orchestrator.objects.demangle import demangle
from orchestrator.objects.function import Function

IDENTICAL = "machine code identical"
_MOST_LINES = 12
_MOST_CALLEES = 3


def change_lines(difference: Difference) -> list[str]:
    """One line a kernel that changed, and what stayed as it was; `IDENTICAL` if all did."""
    if difference.same or difference.only_stamps:
        return [IDENTICAL]
    kernels = _counted(difference.kernels)
    changed = [one for one in kernels if one.change is not Change.SAME]
    archs = len({one.arch for one in kernels}) > 1
    lines = [_kernel_line(one, archs) for one in changed[:_MOST_LINES]]
    if len(changed) > _MOST_LINES:
        lines.append(f"and {len(changed) - _MOST_LINES} more kernels changed")
    if kernels and not changed:
        lines.append(f"device code identical ({_kernels(len(kernels))})")
    elif lines and len(kernels) > len(changed):
        lines[-1] += f"; {_kernels(len(kernels) - len(changed))} unchanged"
    if difference.host:
        lines.append(f"host code changed: {_listed([name for name, _change in difference.host])}")
    if difference.sealed:
        lines.append(f"{len(difference.sealed)} parts that cannot be read changed")
    if not lines:
        lines.append(f"changed beside the code: {_listed([name for name, _change in difference.other])}")
    return lines


def _counted(changes: tuple[KernelChange, ...]) -> list[KernelChange]:
    """Machine code speaks for the file where there is any, so that PTX of the same kernels is not counted
    again; and of machine code that which runs, not the parts that the device link took in. Device functions
    with code of their own count only where they changed.
    """
    machine = [
        one for one in changes if one.function and (one.function.kernel or one.change is not Change.SAME)
    ]
    linked = [one for one in machine if not one.arch.endswith(" rdc")]
    return linked or machine or [one for one in changes if one.function is None]


def _kernel_line(one: KernelChange, archs: bool) -> str:
    name = demangle(one.name) + (f" ({one.arch})" if archs else "")
    before = one.before.function if one.before else None
    after = one.after.function if one.after else None
    if one.change is Change.ADDED:
        return f"{name}: new{_registers(after)}"
    if one.change is Change.REMOVED:
        return f"{name}: gone"
    told = list(_measures(before, after)) if before and after else []
    callees = [reason.removeprefix("callee ") for reason in one.reasons if reason.startswith("callee ")]
    if "data it refers to" in one.reasons:
        told.append("data that it refers to")
    if callees and not told:
        told.append(f"callees {_listed(list(map(demangle, callees)))}")
    if not told:
        other = ", ".join(one.reasons) or "changed"
        told.append("code, with the same size and resources" if "code" in one.reasons else other)
    return f"{name}: {', '.join(told)}"


def _measures(before: Function, after: Function) -> Iterator[str]:
    """Each measure that is not what it was."""
    pairs = (
        ("registers", before.registers, after.registers, ""),
        ("spills", _spills(before), _spills(after), " B"),
        ("stack", before.stack, after.stack, " B"),
        ("shared", before.shared, after.shared, " B"),
        ("constant", before.constant, after.constant, " B"),
        ("code", before.code_bytes, after.code_bytes, " B"),
        ("register limit", before.max_registers, after.max_registers, ""),
    )
    for name, old, new, unit in pairs:
        if old != new:
            yield f"{name} {_number(old)} -> {_number(new)}{unit}"


def _spills(function: Function) -> int | None:
    if function.spill_stores is None or function.spill_loads is None:
        return None
    return function.spill_stores + function.spill_loads


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _registers(function: Function | None) -> str:
    return f", {_number(function.registers)} registers" if function else ""


def _kernels(count: int) -> str:
    return f"{count} kernel{'' if count == 1 else 's'}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_CALLEES} more" if len(names) > _MOST_CALLEES else ""
    return ", ".join(names[:_MOST_CALLEES]) + more
