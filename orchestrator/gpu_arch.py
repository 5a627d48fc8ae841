"""The architecture of the GPU that is there, asked of NVML directly: no package, no CUDA context."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

DEFAULT_ARCH = "sm_90"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def find_arch(environ: Mapping[str, str]) -> tuple[str, str]:
    """What ``auto`` stands for on this machine (``sm_NN``), and why."""
    found = architectures(environ)
    if isinstance(found, str):
        return DEFAULT_ARCH, f"the default: {found}"
    if len(set(found)) == 1:
        return found[0], "the GPU that is here"
    return found[0], f"the first GPU of several kinds ({', '.join(found)})"


def architectures(environ: Mapping[str, str]) -> list[str] | str:
    """One ``sm_NN`` for each GPU that CUDA programs started with ``environ`` see, or why there is none."""
    installed = _installed()
    return installed if isinstance(installed, str) else visible(installed, environ.get(VISIBLE))


def visible(archs: list[str], setting: str | None) -> list[str] | str:
    """Those of the GPUs, in NVML's order, that ``CUDA_VISIBLE_DEVICES`` leaves. The list ends at the first
    entry that names no GPU; where one is named by its UUID, all count, since only CUDA tells which it is.
    """
    if setting is None:
        return archs
    chosen: list[str] = []
    for name in map(str.strip, setting.split(",")):
        if name.startswith(("GPU-", "MIG-")):
            return archs
        if not name.isdecimal() or int(name) >= len(archs):
            break
        chosen.append(archs[int(name)])
    return chosen or f"{VISIBLE}={setting} hides every GPU"


def _installed() -> list[str] | str:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "no NVIDIA driver is installed"
    if nvml.nvmlInit_v2() != 0:
        return "the NVIDIA driver does not start"
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0 or count.value == 0:
            return "no GPU is visible"
        return [_architecture(nvml, index) for index in range(count.value)]
    except _NoAnswer as error:
        return str(error)
    finally:
        nvml.nvmlShutdown()


class _NoAnswer(Exception):
    """NVML would not tell."""


def _architecture(nvml: ctypes.CDLL, index: int) -> str:
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != 0:
        raise _NoAnswer(f"NVML does not open GPU {index}")
    if nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) != 0:
        raise _NoAnswer(f"NVML does not tell the architecture of GPU {index}")
    return f"sm_{major.value}{minor.value}"
