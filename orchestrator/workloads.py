"""Which workloads a benchmark runs: those named, else all that suit this machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import names as naming
from orchestrator.errors import ConfigurationError, Missing
from orchestrator.model import Kind, Project, Workload

_DEVICE_CODE = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX, Kind.DEVICE_LINK})


def needs_gpu(project: Project, workload: Workload) -> bool:
    """Whether the workload's worker loads device code; what another command does with it is not known."""
    return workload.worker and _uses_device_code(project, workload)


def _uses_device_code(project: Project, workload: Workload) -> bool:
    kinds = {target.name: target.kind for target in project.targets}
    return any(kinds.get(name) in _DEVICE_CODE for name in workload.uses)


def choose_workloads(
    project: Project, names: Sequence[str], gpus: Sequence[str] | str, *, every: bool = False
) -> tuple[Sequence[Workload], str]:
    """The workloads to run, and a sentence that announces a choice made here (empty when the user chose).

    ``gpus``: the architectures that are there, or why there is none; ``every`` adds those that are not run by
    default. Raises `ConfigurationError` for an unknown name or when nothing is defined, `Missing` when all
    need a GPU and there is none.
    """
    if names:
        known = {workload.name: workload for workload in project.workloads}
        return [known[name] for name in naming.chosen(names, tuple(known), "workload")], ""
    if not project.workloads:
        raise ConfigurationError("targets.toml defines no workload", remedy="add a [workload.NAME] table")
    device = [w for w in project.workloads if _uses_device_code(project, w)]
    host = [w for w in project.workloads if not needs_gpu(project, w)]
    there = not isinstance(gpus, str)
    if there and device:
        return _suiting(device, every, f"GPU found ({gpus[0]}): running the workloads that use it")
    if not host:
        raise Missing(
            f"no GPU can be used ({gpus}), and every workload needs one: {_list(device)}",
            remedy="run it where a GPU is, or write a workload that uses host code alone",
        )
    found = f"GPU found ({gpus[0]}), but no workload uses it" if there else f"no GPU found ({gpus})"
    without = len(project.workloads) - len(host)
    left_out = f" ({without} need a GPU and are not run)" if without else ""
    return _suiting(host, every, f"{found}: running on the host{left_out}")


def _suiting(workloads: Sequence[Workload], every: bool, why: str) -> tuple[Sequence[Workload], str]:
    """Those that run unasked, or all where none does; and what is said about it."""
    chosen = [w for w in workloads if w.default or every] or workloads
    more = len(workloads) - len(chosen)
    rest = f"; {more} more by name, or with --all" if more else ""
    return chosen, f"{why}: {_list(chosen)}{rest}"


def _list(workloads: Sequence[Workload]) -> str:
    return ", ".join(workload.name for workload in workloads)
