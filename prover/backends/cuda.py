"""The CUDA backend: every operation of a proof on the GPU, by kernels from artifacts that the gate admitted.

`CudaBackend.load` reserves all memory and makes all tables; a proof then allocates nothing on the device.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import Missing
from prover.backends import ntt_plan
from prover.backends.cuda_clock import SpanClock
from prover.backends.cuda_device import Buffer, Gpu, Memory, Stream, checked, open_gpu
from prover.backends.cuda_module import LoadedModule
from prover.backends.cuda_ntt import Ntt
from prover.backends.cuda_queries import QUERIES, Queries
from prover.backends.cuda_setup import Setup
from prover.backends.cuda_sparse import SparseProducts
from prover.backends.cuda_staging import Staging
from prover.backends.host_combine import HostCombine
from prover.backends.host_setup import HostSetup
from prover.backends.sparse_plan import compressed_rows
from prover.params import SCALAR_BYTES
from prover.phases import Phases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from prover.artifact import Artifact, Loaded
    from prover.backends import KeyScalars
    from prover.backends.cuda_queries import Pending
    from prover.formats.r1cs import ConstraintSystem
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve, G1Point, G2Point
    from prover.setup import Trapdoor

__all__ = ["CudaBackend", "open_gpu", "targets"]

HEADROOM = 512 << 20
"""Device memory left alone: the driver's own, and local memory of kernels."""
ELEMENTWISE_BLOCK = 128
ELEMENTWISE_BLOCKS_AN_SM = 16


def targets(curve: Curve) -> tuple[str, ...]:
    """What the backend loads: cubins by field, key work and MSM, and the host library for single points."""
    units = ("cuda-fr", "cuda-setup", "cuda-msm-sort", "cuda-msm-g1", "cuda-msm-g2", "host")
    return tuple(f"{unit}-{curve.name}" for unit in units)


@dataclass(frozen=True, slots=True)
class DeviceVector:
    """Field elements on the device, 32 bytes each."""

    buffer: Buffer
    count: int

    def __getitem__(self, which: slice) -> DeviceVector:
        """A stretch of the vector, step 1."""
        start, stop, step = which.indices(self.count)
        if step != 1:
            raise ValueError("a vector on the device is cut, not strided")
        count = max(0, stop - start)
        return DeviceVector(self.buffer.part(SCALAR_BYTES * start, SCALAR_BYTES * count), count)


class CudaBackend:
    """Implements `Backend` and `PointGenerator`."""

    name = "cuda"

    def __init__(self, gpu: Gpu, curve: Curve, find_artifact: Callable[[str], Artifact]) -> None:
        """Load the modules. Raises `Missing` and `Refused` as `LoadedModule.load` does."""
        self.curve = curve
        self.phases = Phases()
        self.device: dict[str, Any] | None = gpu.as_json()
        self._gpu = gpu
        *cubins, library = targets(curve)
        self._modules = {t: LoadedModule.load(gpu, find_artifact(t)) for t in cubins}
        self._combine = HostCombine(curve, find_artifact(library))
        self.loaded: tuple[Loaded, ...] = (
            *(m.as_loaded() for m in self._modules.values()),
            self._combine.loaded,
        )
        self._memory = Memory(gpu)
        self._clock = SpanClock()
        self._stream = Stream(non_blocking=True)
        self._setup = Setup(self._module("setup"), curve, self._memory, self._stream)
        self._multiply = self._module("fr").kernel("fr_multiply")
        self._quotient = self._module("fr").kernel("fr_quotient")
        self._key: _ResidentKey | None = None

    def load(self, key: ProvingKey) -> None:
        """Make the key's points and matrices resident. Raises `Missing` when memory does not suffice."""
        self.close()
        groups = {g: [self._module(f"msm-{g}"), self._module("msm-sort")] for g in ("g1", "g2")}
        queries = Queries(self._gpu, self.curve, groups, self._memory)  # type: ignore[arg-type]
        try:
            self._key = _ResidentKey(key, self._module("fr"), queries, self._memory, self._stream)
        except BaseException:
            self._memory.release()
            raise

    def check_points(self) -> tuple[str, int] | None:
        """The first point of the loaded key that is not on its curve."""
        for query, group in QUERIES.items():
            points = self._resident.queries.points(query)
            if points is not None:
                bad = self._setup.first_off_curve(*points, group)
                if bad is not None:
                    return query, bad
        return None

    def witness(self, words: NDArray[np.uint8]) -> DeviceVector:
        """Upload the witness. The clocks are tied here, before the first work of a proof."""
        key = self._resident
        self._clock.start(self._stream)
        with self._clock.span("upload witness", self._stream, "main"):
            key.staging.upload(words, key.witness, self._stream)
        return DeviceVector(key.witness, len(words))

    def sparse_products(self, witness: DeviceVector) -> tuple[DeviceVector, DeviceVector]:
        """A.w and B.w."""
        key = self._resident
        with self._clock.span("sparse products", self._stream, "main"):
            key.sparse.run(witness.buffer, key.vectors, self._stream)
        return key.vector(0), key.vector(1)

    def multiply(self, a: DeviceVector, b: DeviceVector) -> DeviceVector:
        """a[i] * b[i]"""
        out = self._resident.vector(2)
        with self._clock.span("multiply", self._stream, "main"):
            self._elementwise(self._multiply, out, a, b)
        return out

    def to_coset(self, *vectors: DeviceVector) -> tuple[DeviceVector, ...]:
        """Two transforms of each vector; vectors that lie side by side go through each pass together."""
        key = self._resident
        with self._clock.span("ntt", self._stream, "main"):
            if _adjacent(vectors):
                together = Buffer(vectors[0].buffer.ptr, sum(v.buffer.nbytes for v in vectors))
                key.ntt.run(key.passes, together, key.work, len(vectors), self._stream)
            else:
                for v in vectors:
                    key.ntt.run(key.passes, v.buffer, key.work, 1, self._stream)
        return vectors

    def quotient(self, a: DeviceVector, b: DeviceVector, c: DeviceVector) -> DeviceVector:
        """a[i] * b[i] - c[i] in standard form, in place of a."""
        with self._clock.span("quotient", self._stream, "main"):
            self._elementwise(self._quotient, a, a, b, c)
        return a

    def msm_g1(self, query: str, scalars: DeviceVector) -> Pending:
        """Begin an MSM over G1, after what the main stream has been given so far."""
        return self._resident.queries.start(query, scalars.buffer, self._stream, self._clock)

    def msm_g2(self, query: str, scalars: DeviceVector) -> Pending:
        """Begin the MSM over G2."""
        return self._resident.queries.start(query, scalars.buffer, self._stream, self._clock)

    def fetch(self, pending: Sequence[Pending]) -> list[Any]:
        """Wait for MSMs; afterwards the spans of the proof's device work are in `phases`."""
        points = [self._resident.queries.finish(p) for p in pending]
        for span in self._clock.drain():
            self.phases.add(span)
        return points

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """On the CPU: a GPU's one thread is slower, and the blinding goes on while the GPU works."""
        return self._combine.combine_g1(scalars, points)

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """On the CPU, as `combine_g1`."""
        return self._combine.combine_g2(scalars, points)

    def close(self) -> None:
        """Scrub what held the witness, and release the key's memory."""
        if self._key is not None:
            key, self._key = self._key, None
            key.scrub(self._stream)
            self._memory.release()

    def key_scalars(self, system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
        """The polynomials of a circuit at a secret point, by the host library."""
        return HostSetup(self._combine.library, self.curve).key_scalars(system, trapdoor)

    def double_montgomery(self, coefs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """coefficient * R^2 for each."""
        return HostSetup(self._combine.library, self.curve).double_montgomery(coefs)

    def multiples_g1(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G1 for each scalar."""
        return self._setup.multiples(scalars, "g1")

    def multiples_g2(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G2 for each scalar."""
        return self._setup.multiples(scalars, "g2")

    @property
    def _resident(self) -> _ResidentKey:
        assert self._key is not None, "no key is loaded"
        return self._key

    def _module(self, unit: str) -> LoadedModule:
        return self._modules[f"cuda-{unit}-{self.curve.name}"]

    def _elementwise(self, kernel: Any, *vectors: DeviceVector) -> None:
        count = vectors[0].count
        grid = min(-(-count // ELEMENTWISE_BLOCK), ELEMENTWISE_BLOCKS_AN_SM * self._gpu.multiprocessors)
        args = (*(v.buffer for v in vectors), np.uint32(count))
        kernel(grid, ELEMENTWISE_BLOCK, args, self._stream)


def _adjacent(vectors: Sequence[DeviceVector]) -> bool:
    pairs = itertools.pairwise(vectors)
    return all(v.buffer.ptr + v.buffer.nbytes == w.buffer.ptr and v.count == w.count for v, w in pairs)


class _ResidentKey:
    """What one key keeps on the device: matrices, tables, points, and the memory that proofs use."""

    def __init__(
        self, key: ProvingKey, module: LoadedModule, queries: Queries, memory: Memory, stream: Stream
    ) -> None:
        n = key.domain_size
        if key.log_domain > ntt_plan.MAX_LOG_N:
            raise Missing(
                f"a domain of 2^{key.log_domain} points; the GPU's transforms end at 2^{ntt_plan.MAX_LOG_N}"
            )
        self._n = n
        self.passes = ntt_plan.to_coset(key.log_domain)
        rows = compressed_rows(key.coefs, n)
        vector_bytes = 3 * n * SCALAR_BYTES
        field_bytes = 2 * vector_bytes + key.n_vars * SCALAR_BYTES + rows.nbytes + Ntt.need(self.passes)
        memory.require(field_bytes + HEADROOM, f"the matrices and transforms of {key.file.path.name}")
        self.shapes = queries.affordable_shapes(key, memory.free_bytes() - field_bytes - HEADROOM)
        self.staging = Staging()
        self.queries = queries
        self.witness = memory.allocate(key.n_vars * SCALAR_BYTES, "the witness")
        self.vectors = memory.allocate(vector_bytes, "A.w, B.w and their product")
        self.work = memory.allocate(vector_bytes, "transforms")
        self.sparse = SparseProducts(module, rows, n, memory, self.staging, stream)
        self.ntt = Ntt(module, key.curve, key.log_domain, memory, stream)
        self.ntt.prepare(self.passes)
        queries.prepare(key, self.shapes, self.staging)
        with checked("loading the key"):
            stream.synchronize()

    def vector(self, which: int) -> DeviceVector:
        """a, b or c: 0, 1 or 2."""
        size = self._n * SCALAR_BYTES
        return DeviceVector(self.vectors.part(which * size, size), self._n)

    def scrub(self, stream: Stream) -> None:
        """Overwrite everything that a witness went through."""
        for buffer in (self.witness, self.vectors, self.work):
            buffer.fill(0, stream)
        self.sparse.scrub(stream)
        with checked("scrubbing"):
            stream.synchronize()
        self.queries.scrub()
        self.staging.scrub()
        self.staging.close()
