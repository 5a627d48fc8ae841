"""The GPU and its memory, with a budget. All of CuPy that the prover uses comes in through here.

CuPy does four things here: modules, memory, streams and events. None of them compiles anything at run time,
so every instruction that runs came out of an artifact whose digest was checked on the bytes that are loaded.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import BrokenRun, Missing
from prover.backends.gpu_faults import FREE_IT, OUT_OF_MEMORY, gib, out_of_memory, unusable

try:
    import cupy
    from cupy.cuda import Event, Stream, driver, runtime
    from cupy.cuda.function import Module
except ImportError as error:
    remedy = "in a checkout: pip install -e '.[gpu]'; elsewhere: pip install cupy-cuda13x"
    raise Missing(f"the CUDA backend needs CuPy: {error}", remedy=remedy) from None

__all__ = [
    "Buffer",
    "Event",
    "Gpu",
    "Memory",
    "Module",
    "Pinned",
    "Stream",
    "checked",
    "driver",
    "elapsed_ms",
    "fault_of",
    "open_gpu",
    "runtime",
]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ALIGNMENT = 256
"""Every buffer starts at a multiple of this: whole sectors, and the alignment of every vector load."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The device in use."""

    ordinal: int
    name: str
    arch: str
    """``sm_NN``: the architecture that an artifact must hold machine code for."""
    uuid: str
    driver_version: int
    multiprocessors: int

    def as_json(self) -> dict[str, Any]:
        """What a record says of the device."""
        return {"name": self.name, "arch": self.arch, "uuid": self.uuid, "cuda_driver": self.driver_version}

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the device now."""
        free, total = runtime.memGetInfo()
        return int(free), int(total)


def open_gpu(ordinal: int = 0) -> Gpu:
    """Make a GPU current. Raises `Missing` when there is none, no driver for it, or no room on it."""
    try:
        device = cupy.cuda.Device(ordinal)
        device.use()
        properties = runtime.getDeviceProperties(ordinal)
        version = int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError as error:
        memory = _memory_by_nvml(ordinal) if error.status == OUT_OF_MEMORY else None
        raise unusable(ordinal, error.status, str(error), os.environ, memory) from None
    name = properties["name"]
    uuid = properties.get("uuid", b"")
    return Gpu(
        ordinal=ordinal,
        name=name.decode() if isinstance(name, bytes) else str(name),
        arch=f"sm_{properties['major']}{properties['minor']}",
        uuid=bytes(uuid).hex(),
        driver_version=version,
        multiprocessors=int(properties["multiProcessorCount"]),
    )


def _memory_by_nvml(ordinal: int) -> tuple[int, int] | None:
    """Free and total bytes of a GPU that has no room for a context; ``None`` if nobody tells."""
    try:
        import pynvml as nvml
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        place = runtime.deviceGetPCIBusId(ordinal)  # CUDA's ordinal may be another one than NVML's
        found = nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByPciBusId(place))
    except (runtime.CUDARuntimeError, nvml.NVMLError):
        return None
    return int(found.free), int(found.total)


@contextmanager
def checked(what: str) -> Iterator[None]:
    """Turn an error of the CUDA runtime or driver into `BrokenRun`: nothing computed after it can count.

    Memory that ran out is `Missing`: that is no fault of the program.
    """
    try:
        yield
    except (runtime.CUDARuntimeError, driver.CUDADriverError) as error:
        raise fault_of(error, what) or BrokenRun(
            f"{what}: {error}", remedy="rerun under compute-sanitizer"
        ) from None


def fault_of(error: Any, what: str) -> Missing | None:
    """`Missing` where an error of the CUDA runtime or driver says that memory ran out."""
    if getattr(error, "status", None) != OUT_OF_MEMORY:
        return None
    try:
        free, total = runtime.memGetInfo()
    except runtime.CUDARuntimeError:
        return out_of_memory(what, None)
    return out_of_memory(what, (int(free), int(total)))


@dataclass(frozen=True, slots=True)
class Buffer:
    """A stretch of device memory. ``owner`` keeps the allocation alive."""

    ptr: int
    nbytes: int
    owner: Any = None

    def part(self, offset: int, nbytes: int) -> Buffer:
        """A stretch of this one. Raises `ValueError` past its end."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes from {offset} are not inside a buffer of {self.nbytes}")
        return Buffer(self.ptr + offset, nbytes, self.owner)

    def upload(self, array: NDArray[Any], stream: Stream) -> None:
        """Copy a C-contiguous host array to the buffer's start, ordered on the stream.

        From pageable memory the copy has left the array when this returns; from pinned memory it may not.
        """
        if not array.flags.c_contiguous or array.nbytes > self.nbytes:
            raise ValueError(f"cannot upload {array.nbytes} bytes into a buffer of {self.nbytes}")
        if array.nbytes:
            with checked("upload"):
                runtime.memcpyAsync(
                    self.ptr, array.ctypes.data, array.nbytes, runtime.memcpyHostToDevice, stream.ptr
                )

    def download(self, stream: Stream) -> NDArray[np.uint8]:
        """The bytes of the buffer; waits for the stream."""
        out = np.empty(self.nbytes, dtype=np.uint8)
        with checked("download"):
            if self.nbytes:
                runtime.memcpyAsync(
                    out.ctypes.data, self.ptr, self.nbytes, runtime.memcpyDeviceToHost, stream.ptr
                )
            stream.synchronize()
        return out

    def copy_to(self, pinned: NDArray[np.uint8], stream: Stream) -> None:
        """Copy the whole buffer to page-locked memory, ordered on the stream; returns at once."""
        if self.nbytes != pinned.nbytes:
            raise ValueError(f"cannot copy {self.nbytes} bytes to {pinned.nbytes}")
        with checked("copy to the host"):
            kind = runtime.memcpyDeviceToHost
            runtime.memcpyAsync(pinned.ctypes.data, self.ptr, self.nbytes, kind, stream.ptr)

    def fill(self, byte: int, stream: Stream) -> None:
        """Set every byte, ordered on the stream."""
        if self.nbytes:
            with checked("fill"):
                runtime.memsetAsync(self.ptr, byte, self.nbytes, stream.ptr)


class Memory:
    """Allocations of one backend. All of them happen before work starts; none in a timed region."""

    def __init__(self, gpu: Gpu, limit: int | None = None) -> None:
        """``limit``: bytes to use at most, whatever else is free."""
        self._gpu = gpu
        self._limit = limit
        self._allocations: dict[int, Any] = {}
        self.used = 0
        self._peak = 0

    def look(self) -> int:
        """Bytes of the device in use when most were seen, those of the driver and of others included."""
        free, total = self._gpu.memory()
        self._peak = max(self._peak, total - free)
        return self._peak

    def free_bytes(self) -> int:
        """Bytes that may be allocated now."""
        free, _ = self._gpu.memory()
        return free if self._limit is None else min(free, self._limit - self.used)

    def require(self, need: int, what: str) -> None:
        """Raise `Missing` with need and have unless that many bytes may be allocated now."""
        if need <= self.free_bytes():
            return
        free, total = self._gpu.memory()
        have = f"{self._gpu.name} has {gib(free)} free of {gib(total)}"
        if self._limit is not None:
            have = f"{gib(self.used)} of the {gib(self._limit)} allowed are in use, and {have}"
        raise Missing(
            f"{gib(need)} of GPU memory are needed for {what}; {have}",
            remedy="free the GPU, allow more with --gpu-memory, or prove a smaller circuit",
        )

    def allocate(self, nbytes: int, what: str) -> Buffer:
        """Device memory, uninitialised. Raises `Missing` with need and have."""
        size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        self.require(size, what)
        try:
            allocation = cupy.cuda.Memory(size)
        except runtime.CUDARuntimeError as error:
            raise Missing(
                f"{gib(size)} of GPU memory are needed for {what}: {error}", remedy=FREE_IT
            ) from None
        self._allocations[int(allocation.ptr)] = allocation
        self.used += size
        self.look()
        return Buffer(int(allocation.ptr), nbytes, allocation)

    def free(self, buffer: Buffer) -> None:
        """Give back one allocation, whole; nothing on the device may use it any more."""
        allocation = self._allocations.pop(buffer.ptr)
        self.used -= int(allocation.size)

    def release(self) -> None:
        """Drop every allocation; buffers that others still hold keep theirs alive."""
        self._allocations.clear()
        self.used = 0


class Pinned:
    """Page-locked host memory: copies from it run at the bus's speed and beside kernels."""

    def __init__(self, nbytes: int, what: str) -> None:
        try:
            memory = cupy.cuda.PinnedMemory(max(nbytes, 1))
        except runtime.CUDARuntimeError as error:
            raise Missing(
                f"{gib(nbytes)} of page-locked memory are needed for {what}: {error}",
                remedy="free memory of this machine, or prove a smaller circuit",
            ) from None
        pointer = cupy.cuda.PinnedMemoryPointer(memory, 0)
        self.array: NDArray[np.uint8] = np.frombuffer(pointer, dtype=np.uint8, count=nbytes)


def elapsed_ms(start: Event, end: Event) -> float:
    """Milliseconds between two events that have passed."""
    return float(cupy.cuda.get_elapsed_time(start, end))
