"""The machine a benchmark ran on, as the record keeps it. Unknown values are null; ``missing`` says why."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from orchestrator.gpus import load_nvml, read_gpus

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_RECORDED_PREFIXES = ("CUDA_", "LD_", "MALLOC_", "NVIDIA_", "OMP_", "OPENBLAS_", "PYTHON")


def capture(variables: Mapping[str, str]) -> dict[str, Any]:
    """Describe this machine. ``variables`` is the environment that the workload gets."""
    missing: dict[str, str] = {}
    nvml = load_nvml()
    gpu = read_gpus(nvml) if isinstance(nvml, ModuleType) else None
    if isinstance(nvml, str):
        missing["gpu"] = nvml
    fields: dict[str, Any] = {
        "cpu": {
            "model": _cpu_model(missing),
            "cores": psutil.cpu_count(logical=False),
            "threads": psutil.cpu_count(),
            "usable_threads": len(os.sched_getaffinity(0)),
            "governor": _read(_GOVERNOR, "cpu.governor", missing),
        },
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": list(os.getloadavg()),
        "huge_pages": _read(Path("/sys/kernel/mm/transparent_hugepage/enabled"), "huge_pages", missing),
        "kernel": platform.release(),
        "system": platform.system(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "gpu": gpu,
        "variables": {k: v for k, v in sorted(variables.items()) if k.startswith(_RECORDED_PREFIXES)},
    }
    return {"machine_key": machine_key(fields), **fields, "missing": missing}


def disturbances(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """What in a machine's description makes times longer than they need be, in words."""
    found = []
    if fields["variables"].get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        found.append("CUDA_LAUNCH_BLOCKING=1: every launch is waited for, and nothing runs side by side")
    load, threads = fields["load_average"][0], fields["cpu"]["usable_threads"]
    if load > threads:
        found.append(f"the load was {load:.1f} on {threads} processors when the run began")
    for index, device in enumerate((fields["gpu"] or {}).get("devices", ())):
        others = device["processes"]
        if others:
            found.append(
                f"other processes used GPU {index} when the run began: {', '.join(map(str, others))}"
            )
    return tuple(found)


def machine_key(fields: Mapping[str, Any]) -> str:
    """Digest of what must be equal for two times to be comparable: GPUs, driver, CPU, memory, kernel line."""
    gpu = fields["gpu"]
    parts = {
        "gpus": None if gpu is None else [device["uuid"] for device in gpu["devices"]],
        "driver": None if gpu is None else gpu["driver"],
        "cpu": fields["cpu"]["model"],
        "threads": fields["cpu"]["usable_threads"],
        "memory_gib": round(fields["memory_bytes"] / (1 << 30)),
        "kernel": ".".join(fields["kernel"].split(".")[:2]),
    }
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def describe_commit(root: Path) -> dict[str, Any]:
    """The checkout's commit and a digest of its uncommitted changes; nulls and a reason without git."""
    try:
        commit = _git(root, "rev-parse", "HEAD").decode().strip()
        changes = _git(root, "status", "--porcelain=v1", "-z") + _git(root, "diff", "HEAD", "--no-ext-diff")
    except FileNotFoundError:
        return {"commit": None, "dirty": None, "missing": "git is not installed"}
    except subprocess.CalledProcessError as error:
        return {"commit": None, "dirty": None, "missing": error.stderr.decode("utf-8", "replace").strip()}
    dirty = "sha256:" + hashlib.sha256(changes).hexdigest() if changes else None
    return {"commit": commit, "dirty": dirty}


def _git(root: Path, *arguments: str) -> bytes:
    command: Sequence[str] = ("git", "-C", str(root), *arguments)
    return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout


def _cpu_model(missing: dict[str, str]) -> str | None:
    text = _read(Path("/proc/cpuinfo"), "cpu.model", missing)
    for line in (text or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    missing.setdefault("cpu.model", "/proc/cpuinfo names no model")
    return platform.processor() or None


def _read(path: Path, field: str, missing: dict[str, str]) -> str | None:
    try:
        return path.read_text().strip()
    except OSError as error:
        missing[field] = f"{path}: {error.strerror}"
        return None
