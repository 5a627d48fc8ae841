"""One transform over Fr on the GPU, of random data that is resident."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.speeds import ntt_bytes, ntt_multiplies
from orchestrator.errors import BrokenRun
from prover.backends import ntt_plan
from prover.backends.cuda_device import Memory, Stream, runtime
from prover.backends.cuda_ntt import Ntt
from prover.check import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from prover.backends.cuda_device import Gpu
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.host_library import HostLibrary
    from prover.params import Curve

    Phases = list[tuple[str, Callable[[], None]]]

FORWARD, ALL_THREADS = 0, 0
"""As `cuda_src/host/abi.cuh` has them."""
LOG_SUMS = 4
"""2^4 outputs are also summed by the definition."""
SPARE_BYTES = 1 << 20
VECTOR_ALIGNMENT = 16


def random_elements(n: int) -> NDArray[np.uint8]:
    """(n, 32): elements of Fr below 2^253, at an address that the host library takes."""
    out = _vector(n)
    words = out.view(np.uint64)
    step = 1 << 20
    rng = np.random.default_rng()
    for start in range(0, n, step):  # no second copy of all
        part = words[start : start + step]
        part[:] = rng.integers(0, 1 << 64, part.shape, np.uint64)
    words[:, 3] &= np.uint64((1 << 61) - 1)
    return out


class NttWork:
    """The forward transform of 2^log_n elements, natural order in and out."""

    name = "ntt"

    def __init__(
        self,
        gpu: Gpu,
        curve: Curve,
        module: LoadedModule,
        library: HostLibrary,
        log_n: int,
        bits: Sequence[int] | None = None,
    ) -> None:
        """Make the data and what it must become. ``bits``: other passes than the prover's own.

        Raises `Missing` with need and have before anything is allocated.
        """
        self.curve, self.log_n = curve, log_n
        self.passes = ntt_plan.forward(log_n, bits)
        self.stream = Stream(non_blocking=True)
        memory = self._memory = Memory(gpu)
        nbytes = 32 << log_n
        memory.require(3 * nbytes + Ntt.need(self.passes) + SPARE_BYTES, f"a transform of 2^{log_n} elements")
        self._source, self._data, self._work = (
            memory.allocate(nbytes, what) for what in ("source", "data", "work")
        )
        self._ntt = Ntt(module, curve, log_n, memory, self.stream)
        self._ntt.prepare(self.passes)
        values = random_elements(1 << log_n)
        self._source.upload(values, self.stream)
        self.stream.synchronize()
        sums = direct_sums(curve, values, LOG_SUMS)
        self._expected = transform_on_host(library, values, log_n)
        if outputs(self._expected, LOG_SUMS) != sums:
            raise BrokenRun(f"the host library's transform of 2^{log_n} elements is wrong")

    def facts(self) -> dict[str, Any]:
        """The transform by its numbers."""
        return {
            "curve": self.curve.name,
            "elements": 1 << self.log_n,
            "passes": ".".join(str(step.bits) for step in self.passes),
            "multiply-adds": ntt_multiplies(self.curve.name, self.passes, self.log_n),
            "bytes": ntt_bytes(self.passes, self.log_n),
        }

    def prepare(self) -> None:
        """The same data again."""
        source, data = self._source, self._data
        copy = runtime.memcpyDeviceToDevice
        runtime.memcpyAsync(data.ptr, source.ptr, source.nbytes, copy, self.stream.ptr)
        self._work.fill(0xEE, self.stream)

    def phases(self) -> Phases:
        """One transform, in one piece."""
        return [("", partial(self._ntt.run, self.passes, self._data, self._work, 1, self.stream))]

    def check(self) -> Check:
        """Every output against the host library's, which was held against sums by the definition."""
        start = time.perf_counter()
        got = self._data.download(self.stream)
        right = bool(np.array_equal(got, self._expected.reshape(-1)))
        reason = "" if right else f"wrong output: {self.curve.name} 2^{self.log_n}, passes {self.passes}"
        return Check(right, reason, "the host library and direct sums", time.perf_counter() - start)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()


def transform_on_host(library: HostLibrary, values: NDArray[np.uint8], log_n: int) -> NDArray[np.uint8]:
    """In place."""
    tables = _vector(2 << log_n)
    library.call("domain", tables, log_n, ALL_THREADS)
    library.call("ntt", values, log_n, tables, FORWARD, ALL_THREADS)
    return values


def direct_sums(curve: Curve, values: NDArray[np.uint8], log_sums: int) -> list[int]:
    """By the definition, in Python integers: outputs k n / m for k < m = 2^log_sums.

    The powers of the root there repeat with period m, so inputs are summed first, by their index modulo m.
    """
    m, r, w = 1 << log_sums, curve.r, curve.root_of_unity(log_sums)
    limbs = values.view("<u2").reshape(-1, m, 16).sum(axis=0, dtype=np.uint64)
    classes = [sum(int(limb) << 16 * i for i, limb in enumerate(row)) for row in limbs]
    return [sum(s * pow(w, k * c, r) for c, s in enumerate(classes)) % r for k in range(m)]


def outputs(values: NDArray[np.uint8], log_sums: int) -> list[int]:
    """The elements that `direct_sums` gives."""
    step = len(values) >> log_sums
    return [int.from_bytes(row.tobytes(), "little") for row in values[::step]]


def _vector(n: int) -> NDArray[np.uint8]:
    room = np.empty(32 * n + VECTOR_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % VECTOR_ALIGNMENT
    return room[start : start + 32 * n].reshape(n, 32)
