"""Cubins in the GPU: loaded from bytes that were checked, and asked for the stamp they carry."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import Missing, Refused
from orchestrator.loaded import check_module
from prover.artifact import Artifact, Loaded
from prover.backends.cuda_device import Buffer, Gpu, Module, Stream, checked, driver, fault_of, runtime
from prover.backends.sealed import sealed_cubin

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory a block may use before the kernel must ask for more."""


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
        packed = _pack(args)
        place = (*_triple(grid), *_triple(block), shared, stream.ptr)
        with checked(f"launch of {self.name}"):
            driver.launchKernel(self._function.ptr, *place, ctypes.addressof(packed[0]), 0)

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
    sizes = size if isinstance(size, tuple) else (size,)
    return (*sizes, *(1,) * (3 - len(sizes)))


def _pack(args: Sequence[object]) -> tuple[ctypes.Array[Any], ctypes.Array[Any]]:
    """Pointers to the arguments, as cuLaunchKernel reads them, and the arguments: 8 bytes each."""
    words = [a.ptr if isinstance(a, Buffer) else int(a) for a in args]  # type: ignore[call-overload]
    values = (ctypes.c_uint64 * len(args))(*words)
    first = ctypes.addressof(values)
    return (ctypes.c_void_p * len(args))(*range(first, first + 8 * len(args), 8)), values


class LoadedModule:
    """A cubin in the GPU, proven to be the admitted one by the bytes loaded and the stamp read back."""

    def __init__(self, module: Module, artifact: Artifact) -> None:
        self._module = module
        self.artifact = artifact
        self._kernels: dict[str, Kernel] = {}

    @classmethod
    def load(cls, gpu: Gpu, artifact: Artifact) -> LoadedModule:
        """Read the file once, check those bytes, load those bytes, read the stamp back from the device.

        Raises `Refused` for another stamp than the artifact's, and what `sealed_cubin` raises.
        """
        data = sealed_cubin(artifact, gpu.arch, gpu.name)
        module = Module()
        try:
            module.load(data)
        except driver.CUDADriverError as error:
            raise fault_of(error, f"loading {artifact.target}") or Missing(
                f"{artifact.path}: the driver refused it for {gpu.name} ({gpu.arch}): {error}",
                remedy=f"freshproof build {artifact.target}",
            ) from None
        loaded = cls(module, artifact)
        check_module(artifact, loaded.read_symbol)
        return loaded

    def as_loaded(self) -> Loaded:
        """What was proven about this module when it was loaded."""
        return Loaded(self.artifact.target, self.artifact.digest, self.artifact.stamp, "module-readback")

    def kernel(self, name: str) -> Kernel:
        """A kernel by its name. Raises `Refused` when the module has none such."""
        kernel = self.find(name)
        if kernel is None:
            raise Refused(
                f"{self.artifact.target} has no kernel {name}",
                remedy=f"freshproof build {self.artifact.target}",
            )
        return kernel

    def find(self, name: str) -> Kernel | None:
        """A kernel by its name, if the module has it: the same object each time.

        The driver keeps a kernel's limit of shared memory, and `Kernel` remembers what it set: two objects
        for one kernel would lower each other's limit, and a launch of the larger would be refused.
        """
        if name not in self._kernels:
            try:
                self._kernels[name] = Kernel(self._module.get_function(name), name)
            except driver.CUDADriverError:
                return None
        return self._kernels[name]

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


def _address(variable: Any) -> int:
    return int(getattr(variable, "ptr", variable))
