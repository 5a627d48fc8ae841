"""Host memory: what can still be had, asked before work that would need more.

Without asking, the work ends hours later and without a word: where a limit is exceeded by a traceback, where
the machine itself is full by the kernel's killing of some process.
"""

from __future__ import annotations

import errno
import re
import resource
from pathlib import Path

from orchestrator.errors import Missing

REMEDY = "free memory, raise the limit, use a machine with more, or take a smaller circuit"
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def require_memory(need: int, what: str) -> None:
    """Raise `Missing` with need and have unless ``need`` more bytes can be had.

    ``need`` should be a lower bound: what is refused here could not have been done.
    """
    have, where = available()
    if need > have:
        raise Missing(
            f"{_gb(need)} of memory are needed at least for {what}; {_gb(have)} can be had {where}",
            remedy=REMEDY,
        )


def available() -> tuple[int, str]:
    """Bytes that this process can still get, and what bounds them."""
    bounds = [bound for bound in (_machine(), _limit(), *_groups()) if bound is not None]
    return min(bounds, default=(1 << 63, "here"))


def shortage(error: Exception) -> Missing | None:
    """`Missing` where an error says that memory ran out."""
    if not isinstance(error, MemoryError) and getattr(error, "errno", None) != errno.ENOMEM:
        return None
    have, where = available()
    what = f"{error}: " if str(error) else ""
    return Missing(f"out of memory: {what}{_gb(have)} can be had {where}", remedy=REMEDY)


def _machine() -> tuple[int, str] | None:
    """What the kernel could free without swapping, and the swap space."""
    fields = _numbers(PROC / "meminfo", r"^(\w+):\s+(\d+) kB")
    if "MemAvailable" not in fields:
        return None
    return (fields["MemAvailable"] + fields.get("SwapFree", 0)) << 10, "on this machine"


def _limit() -> tuple[int, str] | None:
    """Addresses that ``ulimit -v`` leaves."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    used = _numbers(PROC / "self" / "status", r"^(VmSize):\s+(\d+) kB").get("VmSize", 0) << 10
    return max(0, limit - used), f"under the limit of {_gb(limit)} (ulimit -v)"


def _groups() -> list[tuple[int, str]]:
    """What each control group (version 2) around this process leaves; its caches can be dropped."""
    try:
        (name,) = re.findall(r"^0::/(.*)$", (PROC / "self" / "cgroup").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return []
    folder, bounds = CGROUPS / name, []
    while True:
        try:
            limit, used = ((folder / f"memory.{kind}").read_text().strip() for kind in ("max", "current"))
            cached = _numbers(folder / "memory.stat", r"^(\w+_file) (\d+)$")
            if limit != "max":
                free = int(limit) - int(used) + cached.get("active_file", 0) + cached.get("inactive_file", 0)
                bounds.append((max(0, free), f"under the limit of {_gb(int(limit))} (of a control group)"))
        except (OSError, ValueError):
            pass  # the topmost group has no limit
        if folder in (CGROUPS, folder.parent):
            return bounds
        folder = folder.parent


def _numbers(path: Path, pattern: str) -> dict[str, int]:
    try:
        text = path.read_text()
    except OSError:
        return {}
    return {name: int(number) for name, number in re.findall(pattern, text, re.MULTILINE)}


def _gb(nbytes: int) -> str:
    return f"{nbytes / 1e9:.2f} GB"
