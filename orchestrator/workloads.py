"""Which workloads a benchmark runs: those named, else all that suit this machine. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from orchestrator.errors import ConfigurationError, Missing
from orchestrator.model import Kind, Project, Workload

_DEVICE_CODE = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX, Kind.DEVICE_LINK})


def needs_gpu(project: Project, workload: Workload) -> bool:
    """Whether the workload loads device code."""
    kinds = {target.name: target.kind for target in project.targets}
    return any(kinds.get(name) in _DEVICE_CODE for name in workload.uses)


def choose_workloads(
    project: Project, names: Sequence[str], gpu: str | None
) -> tuple[Sequence[Workload], str]:
    """The workloads to run, and a sentence that announces a choice made here (empty when the user chose).

    ``gpu`` names the GPU that is there. Raises `ConfigurationError` for an unknown name or when
    nothing is defined, `Missing` when all need a GPU and there is none.
    """
    if names:
        return [_named(project, name) for name in dict.fromkeys(names)], ""
    device = [w for w in project.workloads if needs_gpu(project, w)]
    host = [w for w in project.workloads if not needs_gpu(project, w)]
    if gpu is not None and device:
        return device, f"GPU found ({gpu}): running the workloads that use it: {_list(device)}"
    if not project.workloads:
        raise ConfigurationError("targets.toml defines no workload", remedy="add a [workload.NAME] table")
    if not host:
        raise Missing(f"no GPU is here, and every workload needs one: {_list(device)}")
    left_out = f"; not run: {_list(device)}" if device else ""
    found = "no GPU found" if gpu is None else f"GPU found ({gpu}), but no workload uses it"
    return host, f"{found}: running on the host: {_list(host)}{left_out}"


def _named(project: Project, name: str) -> Workload:
    known = {workload.name: workload for workload in project.workloads}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"workloads: {', '.join(known) or 'none'}"
    raise ConfigurationError(f"no workload is called `{name}`", remedy=hint)


def _list(workloads: Sequence[Workload]) -> str:
    return ", ".join(workload.name for workload in workloads)
