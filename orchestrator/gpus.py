"""The GPUs of this machine, through NVML. A call that fails leaves null and its reason."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load_nvml() -> ModuleType | str:
    """The started NVML module, or the reason why there is none."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return "the package nvidia-ml-py is not installed"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return f"NVML does not start: {error}"
    return nvml


def read_gpus(nvml: Any) -> dict[str, Any]:
    """Driver and devices as JSON fields; ``missing`` maps each null field to its reason."""
    missing: dict[str, str] = {}

    def ask(field: str, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            value = call(*arguments)
        except (nvml.NVMLError, AttributeError) as error:
            missing[field] = str(error)
            return None
        return value.decode() if isinstance(value, bytes) else value

    count = ask("devices", lambda: nvml.nvmlDeviceGetCount()) or 0
    devices = []
    for index in range(count):
        handle = ask(f"devices[{index}]", lambda i=index: nvml.nvmlDeviceGetHandleByIndex(i))
        if handle is not None:
            devices.append(_device(nvml, handle, index, ask))
    return {
        "driver": ask("driver", lambda: nvml.nvmlSystemGetDriverVersion()),
        "cuda_driver": ask("cuda_driver", lambda: nvml.nvmlSystemGetCudaDriverVersion_v2()),
        "devices": devices,
        "missing": missing,
    }


def _device(nvml: Any, handle: Any, index: int, ask: Callable[..., Any]) -> dict[str, Any]:
    """One device; the lambdas keep a name that this NVML lacks inside `ask`."""
    calls: dict[str, Callable[[], Any]] = {
        "name": lambda: nvml.nvmlDeviceGetName(handle),
        "uuid": lambda: nvml.nvmlDeviceGetUUID(handle),
        "compute_capability": lambda: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total,
        "processes": lambda: [p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)],
        "vbios": lambda: nvml.nvmlDeviceGetVbiosVersion(handle),
        "persistence_mode": lambda: nvml.nvmlDeviceGetPersistenceMode(handle),
        "compute_mode": lambda: nvml.nvmlDeviceGetComputeMode(handle),
        "ecc_mode": lambda: nvml.nvmlDeviceGetEccMode(handle)[0],
        "mig_mode": lambda: nvml.nvmlDeviceGetMigMode(handle)[0],
        "power_limit_mw": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle),
        "max_sm_clock_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
        "max_memory_clock_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "pcie_generation": lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_width": lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
    }
    return {name: ask(f"devices[{index}].{name}", call) for name, call in calls.items()}
