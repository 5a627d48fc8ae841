"""The GPU as the prover sees it: modules from sealed bytes, memory with a budget, launches, spans by events.

CuPy does four things here: modules, memory, streams and events. None of them compiles anything at run time,
so every instruction that runs came out of an artifact whose digest was checked on the bytes that are loaded.
"""

from __future__ import annotations

import hashlib
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import BrokenRun, Missing, Refused
from prover.artifact import Artifact, Loaded
from prover.phases import Span

try:
    import cupy
    from cupy.cuda import Event, Stream, driver, runtime
    from cupy.cuda.function import Module
except ImportError as error:
    raise Missing(f"the CUDA backend needs CuPy: {error}", remedy="pip install 'freshproof[gpu]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

ALIGNMENT = 256
"""Every buffer starts at a multiple of this: whole sectors, and the alignment of every vector load."""

STAMP_PREFIX = b"freshproof:"
STAMP_BYTES = len(STAMP_PREFIX) + 64 + 1
DEFAULT_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory a block may use before the kernel must ask for more."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The device in use."""

    ordinal: int
    name: str
    arch: str
    """``sm_NN``: the architecture that an artifact must hold machine code for."""
    uuid: str
    driver_version: int

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the device now."""
        free, total = runtime.memGetInfo()
        return int(free), int(total)


def open_gpu(ordinal: int = 0) -> Gpu:
    """Make a GPU current. Raises `Missing` when there is none, or no driver for it."""
    try:
        device = cupy.cuda.Device(ordinal)
        device.use()
        properties = runtime.getDeviceProperties(ordinal)
        version = int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError as error:
        raise Missing(f"no usable CUDA GPU {ordinal}: {error}", remedy="run `nvidia-smi`") from None
    name = properties["name"]
    uuid = properties.get("uuid", b"")
    return Gpu(
        ordinal=ordinal,
        name=name.decode() if isinstance(name, bytes) else str(name),
        arch=f"sm_{properties['major']}{properties['minor']}",
        uuid=bytes(uuid).hex(),
        driver_version=version,
    )


@contextmanager
def checked(what: str) -> Iterator[None]:
    """Turn an error of the CUDA runtime or driver into `BrokenRun`: nothing computed after it can count."""
    try:
        yield
    except (runtime.CUDARuntimeError, driver.CUDADriverError) as error:
        raise BrokenRun(f"{what}: {error}", remedy="rerun under compute-sanitizer") from None


class Kernel:
    """One kernel of a loaded module."""

    def __init__(self, function: Any, name: str) -> None:
        self._function = function
        self.name = name
        self._shared_limit = DEFAULT_SHARED_LIMIT

    def __call__(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        args: Sequence[object],
        stream: Stream,
        *,
        shared: int = 0,
    ) -> None:
        """Launch. An ``int`` or `Buffer` argument is passed as a 64-bit pointer, a NumPy scalar as itself.

        Raises `BrokenRun` when the launch is refused; a fault inside the kernel shows at the next wait.
        """
        if shared > self._shared_limit:
            self._allow_shared(shared)
        values = tuple(_argument(a) for a in args)
        with checked(f"launch of {self.name}"):
            self._function(_triple(grid), _triple(block), values, shared, stream)

    def attribute(self, which: int) -> int:
        """A CU_FUNC_ATTRIBUTE of the kernel, such as its register count."""
        return int(driver.funcGetAttribute(which, self._function.ptr))

    def _allow_shared(self, nbytes: int) -> None:
        with checked(f"{nbytes} bytes of shared memory for {self.name}"):
            driver.funcSetAttribute(
                self._function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
            )
        self._shared_limit = nbytes


def _triple(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


def _argument(value: object) -> object:
    if isinstance(value, Buffer):
        return np.uint64(value.ptr)
    return np.uint64(value) if type(value) is int else value


class LoadedModule:
    """A cubin in the GPU, proven to be the admitted one by the bytes loaded and the stamp read back."""

    def __init__(self, module: Module, artifact: Artifact) -> None:
        self._module = module
        self.artifact = artifact

    @classmethod
    def load(cls, gpu: Gpu, artifact: Artifact) -> LoadedModule:
        """Read the file once, check those bytes, load those bytes, read the stamp back from the device.

        Raises `Missing` (no file, or no code for this GPU) and `Refused` (other bytes, another stamp).
        """
        if artifact.arch != gpu.arch:
            raise Missing(
                f"{artifact.target} holds code for {artifact.arch}, but {gpu.name} is {gpu.arch}",
                remedy=f"freshproof build --arch {gpu.arch} {artifact.target}",
            )
        data = _sealed_bytes(artifact)
        module = Module()
        try:
            module.load(data)
        except driver.CUDADriverError as error:
            raise Missing(
                f"{artifact.path}: the driver refused it for {gpu.name} ({gpu.arch}): {error}",
                remedy=f"freshproof build --arch {gpu.arch} {artifact.target}",
            ) from None
        loaded = cls(module, artifact)
        loaded._check_stamp()
        return loaded

    def as_loaded(self) -> Loaded:
        """What was proven about this module when it was loaded."""
        return Loaded(self.artifact.target, self.artifact.digest, self.artifact.stamp, "module-readback")

    def kernel(self, name: str) -> Kernel:
        """A kernel by its name. Raises `Refused` when the module has none such."""
        try:
            return Kernel(self._module.get_function(name), name)
        except driver.CUDADriverError:
            raise Refused(
                f"{self.artifact.target} has no kernel {name}",
                remedy=f"freshproof build {self.artifact.target}",
            ) from None

    def read_symbol(self, name: str, nbytes: int) -> bytes:
        """The first bytes of a device variable, copied back from the GPU."""
        out = np.empty(nbytes, dtype=np.uint8)
        try:
            address = _address(self._module.get_global_var(name))
        except driver.CUDADriverError:
            raise Refused(
                f"{self.artifact.target} carries no symbol {name}",
                remedy=f"freshproof build {self.artifact.target}",
            ) from None
        with checked(f"reading {name} back from the GPU"):
            runtime.memcpy(out.ctypes.data, address, nbytes, runtime.memcpyDeviceToHost)
        return out.tobytes()

    def _check_stamp(self) -> None:
        expected = STAMP_PREFIX + self.artifact.stamp.removeprefix("sha256:").encode() + b"\0"
        found = self.read_symbol(stamp_symbol(self.artifact.target), STAMP_BYTES)
        if found != expected:
            raise Refused(
                f"{self.artifact.target}: the loaded module carries the stamp {found!r}, "
                f"the manifest says {expected!r}",
                remedy=f"freshproof build {self.artifact.target}",
            )


def stamp_symbol(target: str) -> str:
    """The device variable that carries a target's stamp: its name, made an identifier."""
    return "freshproof_stamp_" + re.sub(r"[^0-9A-Za-z]", "_", target)


def _address(variable: Any) -> int:
    return int(getattr(variable, "ptr", variable))


def _sealed_bytes(artifact: Artifact) -> bytes:
    try:
        data = artifact.path.read_bytes()
    except OSError as error:
        raise Missing(
            f"{artifact.path}: {error.strerror}", remedy=f"freshproof build {artifact.target}"
        ) from None
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if digest != artifact.digest:
        raise Refused(
            f"{artifact.path}: its bytes are {digest}, the gate admitted {artifact.digest}",
            remedy=f"freshproof explain {artifact.target}",
        )
    return data


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

    def fill(self, byte: int, stream: Stream) -> None:
        """Set every byte, ordered on the stream."""
        if self.nbytes:
            with checked("memset"):
                runtime.memsetAsync(self.ptr, byte, self.nbytes, stream.ptr)


class Memory:
    """Allocations of one backend. All of them happen before work starts; none in a timed region."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._allocations: list[Any] = []
        self.used = 0

    def require(self, need: int, what: str) -> None:
        """Raise `Missing` with need and have unless that many bytes are free now."""
        free, total = self._gpu.memory()
        if need > free:
            raise Missing(
                f"{what} needs {_gib(need)} of GPU memory; {self._gpu.name} has {_gib(free)} free "
                f"of {_gib(total)}",
                remedy="free the GPU, or prove a smaller circuit",
            )

    def allocate(self, nbytes: int, what: str) -> Buffer:
        """Device memory, uninitialised. Raises `Missing` with need and have."""
        size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        self.require(size, what)
        try:
            allocation = cupy.cuda.Memory(size)
        except runtime.CUDARuntimeError as error:
            raise Missing(f"{what} needs {_gib(size)} of GPU memory: {error}") from None
        self._allocations.append(allocation)
        self.used += size
        return Buffer(int(allocation.ptr), nbytes, allocation)

    def release(self) -> None:
        """Drop every allocation; buffers that others still hold keep theirs alive."""
        self._allocations.clear()
        self.used = 0


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**28 else f"{nbytes / 2**20:.2f} MiB"


class Pinned:
    """Page-locked host memory: copies from it run at the bus's speed and beside kernels."""

    def __init__(self, nbytes: int, what: str) -> None:
        try:
            memory = cupy.cuda.PinnedMemory(max(nbytes, 1))
        except runtime.CUDARuntimeError as error:
            raise Missing(f"{what} needs {_gib(nbytes)} of page-locked memory: {error}") from None
        pointer = cupy.cuda.PinnedMemoryPointer(memory, 0)
        self.array: NDArray[np.uint8] = np.frombuffer(pointer, dtype=np.uint8, count=nbytes)


class SpanClock:
    """Spans of device work, by events on the streams that do it, laid on the host's monotonic clock.

    Events come from a pool: after the first proof no event is created.
    """

    def __init__(self) -> None:
        self._pool: list[Event] = []
        self._open: list[tuple[str, str, Event, Event]] = []
        self._epoch = Event()
        self._epoch_ns = 0

    def start(self, stream: Stream) -> None:
        """Tie the two clocks: an event on an idle stream, waited for, and the host's time beside it."""
        with checked("clock"):
            stream.synchronize()
            self._epoch.record(stream)
            self._epoch.synchronize()
            self._epoch_ns = time.monotonic_ns()

    @contextmanager
    def span(self, name: str, stream: Stream, label: str) -> Iterator[None]:
        """Measure what the body puts on the stream. An exception leaves no span."""
        begin, end = self._event(), self._event()
        begin.record(stream)
        yield
        end.record(stream)
        self._open.append((name, label, begin, end))

    def drain(self) -> list[Span]:
        """Wait for the open spans and return them."""
        spans = []
        with checked("waiting for the GPU"):
            for name, label, begin, end in self._open:
                end.synchronize()
                t0, t1 = self._since_epoch(begin), self._since_epoch(end)
                spans.append(Span(name, "cuda", t0, max(t0, t1), label))
                self._pool += (begin, end)
        self._open.clear()
        return spans

    def _since_epoch(self, event: Event) -> int:
        milliseconds = float(cupy.cuda.get_elapsed_time(self._epoch, event))
        return self._epoch_ns + round(milliseconds * 1e6)

    def _event(self) -> Event:
        return self._pool.pop() if self._pool else Event()
