"""The CUDA backend: every operation of a proof on the GPU, by kernels from artifacts that the gate admitted.

`CudaBackend.load` reserves all memory and makes all tables; a proof then allocates nothing on the device.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import Missing
from prover.backends import ntt_plan, residence
from prover.backends.cuda_clock import SpanClock
from prover.backends.cuda_device import Buffer, Event, Gpu, Memory, Pinned, Stream, checked, open_gpu
from prover.backends.cuda_graph import Graphs
from prover.backends.cuda_module import LoadedModule
from prover.backends.cuda_ntt import Ntt
from prover.backends.cuda_queries import ResidentQueries, msms_of
from prover.backends.cuda_setup import Setup
from prover.backends.cuda_sparse import SparseProducts
from prover.backends.cuda_staging import Staging
from prover.backends.cuda_streamed import StreamedQueries
from prover.backends.host_combine import HostCombine
from prover.backends.host_setup import HostSetup
from prover.backends.residence import QUERIES, Resident
from prover.backends.sparse_plan import compressed_rows, most_bytes
from prover.params import SCALAR_BYTES
from prover.phases import Phases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from prover.artifact import Artifact, Loaded
    from prover.backends import KeyScalars
    from prover.backends.cuda_msm import Msm
    from prover.backends.cuda_queries import Pending
    from prover.backends.msm_plan import Group
    from prover.formats.r1cs import ConstraintSystem
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve, G1Point, G2Point
    from prover.setup import Trapdoor

__all__ = ["CudaBackend", "open_gpu", "targets"]

HEADROOM = 1 << 30
"""Device memory left alone: the driver's own (0.4 GB seen), and local memory, which it reserves when a kernel
first runs: over Fq2 there are stacks of a kilobyte for each thread that the GPU can hold."""
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
    ready: Event | None = None
    """For scalars of MSMs, which run on other streams: the main stream has made them."""

    def __getitem__(self, which: slice) -> DeviceVector:
        """A stretch of the vector, step 1."""
        start, stop, step = which.indices(self.count)
        if step != 1:
            raise ValueError("a vector on the device is cut, not strided")
        count = max(0, stop - start)
        return DeviceVector(self.buffer.part(SCALAR_BYTES * start, SCALAR_BYTES * count), count, self.ready)


class CudaBackend:
    """Implements `Backend` and `PointGenerator`."""

    name = "cuda"

    def __init__(
        self,
        gpu: Gpu,
        curve: Curve,
        find_artifact: Callable[[str], Artifact],
        memory_limit: int | None = None,
        *,
        once: bool = False,
    ) -> None:
        """Load the modules. Raises `Missing` and `Refused` as `LoadedModule.load` does.

        ``memory_limit``: bytes of the GPU to use at most, the driver's own included. ``once``: a key is
        loaded for one proof, so no tables are made.
        """
        self.curve = curve
        self.phases = Phases()
        self.device: dict[str, Any] | None = gpu.as_json()
        self._gpu, self._tables = gpu, not once
        *cubins, library = targets(curve)
        self._modules = {t: LoadedModule.load(gpu, find_artifact(t)) for t in cubins}
        self._combine = HostCombine(curve, find_artifact(library))
        self.loaded: tuple[Loaded, ...] = (
            *(m.as_loaded() for m in self._modules.values()),
            self._combine.loaded,
        )
        self._memory = Memory(gpu, memory_limit)
        self._clock = SpanClock()
        with checked("a stream"):
            self._stream = Stream(non_blocking=True)
        self._setup = Setup(self._module("setup"), curve, self._memory, self._stream)
        self._multiply = self._module("fr").kernel("fr_multiply")
        self._quotient = self._module("fr").kernel("fr_quotient")
        self._key: _LoadedKey | None = None
        self._host_words: NDArray[np.uint8] | None = None

    def load(self, key: ProvingKey) -> None:
        """Make the key's points and matrices resident. Raises `Missing` when memory does not suffice."""
        self.close()
        groups: dict[Group, list[LoadedModule]] = {
            "g1": [self._module("msm-g1"), self._module("msm-sort")],
            "g2": [self._module("msm-g2"), self._module("msm-sort")],
        }
        msms = msms_of(self._gpu, self.curve, groups)
        try:
            with checked("loading the key"):
                modules = (self._module("fr"), msms)
                self._key = _LoadedKey(key, *modules, self._memory, self._stream, self._combine, self._tables)
                self._key.fill(key, self._stream, self.phases)
        except BaseException:
            self._key = None
            self._memory.release()
            raise

    @property
    def arrangement(self) -> dict[str, Any]:
        """Where the key's points are, and the most memory of the GPU that was seen in use."""
        peak = self._memory.look() / 1e9
        told = {"points": self._loaded.plan.describe(), "peak GPU memory": f"{peak:.2f} GB"}
        return told if self._host_words is None else told | {"witness in": "page-locked memory"}

    def check_points(self) -> tuple[str, int] | None:
        """The first point of the loaded key that is not on its curve."""
        for query, group in QUERIES.items():
            for first, points, count in self._loaded.queries.points(query, self._stream):
                bad = self._setup.first_off_curve(points, count, group)
                if bad is not None:
                    return query, first + bad
        return None

    def host_words(self, n: int) -> NDArray[np.uint8]:
        """Page-locked: the bus reads it at its own speed. Scrubbed by `close`."""
        self._host_words = Pinned(n * SCALAR_BYTES, "a witness on the host").array.reshape(n, SCALAR_BYTES)
        return self._host_words

    def witness(self, words: NDArray[np.uint8]) -> DeviceVector:
        """Upload the witness. The clocks are tied here, before the first work of a proof."""
        key = self._loaded
        self._clock.start(self._stream)
        with self._on_main("upload witness"):
            if words is self._host_words:
                key.witness.upload(words, self._stream)
            else:
                key.staging.upload(words, key.witness, self._stream)
        return self._scalars(DeviceVector(key.witness, len(words), key.witness_ready))

    def sparse_products(self, witness: DeviceVector) -> tuple[DeviceVector, DeviceVector]:
        """A.w and B.w."""
        key = self._loaded
        with self._on_main("sparse products"):
            run = partial(key.sparse.run, witness.buffer, key.vectors, self._stream)
            key.graphs.play("sparse", run, self._stream)
        return key.vector(0), key.vector(1)

    def multiply(self, a: DeviceVector, b: DeviceVector) -> DeviceVector:
        """a[i] * b[i]"""
        out = self._loaded.vector(2)
        with self._on_main("multiply"):
            self._elementwise(self._multiply, out, a, b)
        return out

    def to_coset(self, *vectors: DeviceVector) -> tuple[DeviceVector, ...]:
        """Two transforms of each vector; vectors that lie side by side go through each pass together."""
        key = self._loaded
        if _adjacent(vectors):
            together = Buffer(vectors[0].buffer.ptr, sum(v.buffer.nbytes for v in vectors))
            runs = [(together, len(vectors))]
        else:
            runs = [(v.buffer, 1) for v in vectors]
        with self._on_main("ntt"):
            for data, count in runs:
                run = partial(key.ntt.run, key.passes, data, key.work, count, self._stream)
                key.graphs.play(("ntt", data.ptr, count), run, self._stream)
        return vectors

    def quotient(self, a: DeviceVector, b: DeviceVector, c: DeviceVector) -> DeviceVector:
        """a[i] * b[i] - c[i] in standard form, in place of a."""
        with self._on_main("quotient"):
            self._elementwise(self._quotient, a, a, b, c)
        return self._scalars(replace(a, ready=self._loaded.quotient_ready))

    def msm_g1(self, query: str, scalars: DeviceVector) -> Pending:
        """Begin an MSM over G1."""
        assert scalars.ready is not None
        return self._loaded.queries.start(query, scalars.buffer, scalars.ready, self._clock)

    def msm_g2(self, query: str, scalars: DeviceVector) -> Pending:
        """Begin the MSM over G2."""
        assert scalars.ready is not None
        return self._loaded.queries.start(query, scalars.buffer, scalars.ready, self._clock)

    def fetch(self, pending: Sequence[Pending]) -> list[Any]:
        """Wait for MSMs; the spans of all device work that has ended by then are in `phases`."""
        with self.phases.span("wait for the GPU"):
            points = [self._loaded.queries.finish(p) for p in pending]
        with self.phases.span("read the clocks"):
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
        if self._host_words is not None:
            self._host_words.fill(0)
            self._host_words = None

    def key_scalars(self, system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
        """The polynomials of a circuit at a secret point, by the host library."""
        return HostSetup(self._combine.library, self.curve).key_scalars(system, trapdoor)

    def double_montgomery(self, coefs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """coefficient * R^2 for each."""
        return HostSetup(self._combine.library, self.curve).double_montgomery(coefs)

    def dense_wires(
        self,
        c: NDArray[np.uint8],
        w_i: NDArray[np.uint8],
        w_j: NDArray[np.uint8],
        w_k: NDArray[np.uint8],
        d: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """(c w_i + w_j) (w_k + d), by the host library."""
        return HostSetup(self._combine.library, self.curve).dense_wires(c, w_i, w_j, w_k, d)

    def multiples_g1(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G1 for each scalar."""
        return self._setup.multiples(scalars, "g1")

    def multiples_g2(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G2 for each scalar."""
        return self._setup.multiples(scalars, "g2")

    @property
    def _loaded(self) -> _LoadedKey:
        assert self._key is not None, "no key is loaded"
        return self._key

    def _module(self, unit: str) -> LoadedModule:
        return self._modules[f"cuda-{unit}-{self.curve.name}"]

    @contextmanager
    def _on_main(self, name: str) -> Iterator[None]:
        """Measure what the body puts on the main stream, and the host's time for it."""
        clock = self._clock
        with clock.on_host("launch"), clock.span(name, self._stream, "main"), checked(name):
            yield

    def _scalars(self, vector: DeviceVector) -> DeviceVector:
        """The vector, once the main stream has come this far."""
        assert vector.ready is not None
        with checked("scalars"):
            vector.ready.record(self._stream)
        return vector

    def _elementwise(self, kernel: Any, *vectors: DeviceVector) -> None:
        count = vectors[0].count
        grid = min(-(-count // ELEMENTWISE_BLOCK), ELEMENTWISE_BLOCKS_AN_SM * self._gpu.multiprocessors)
        args = (*(v.buffer for v in vectors), np.uint32(count))
        kernel(grid, ELEMENTWISE_BLOCK, args, self._stream)


def _adjacent(vectors: Sequence[DeviceVector]) -> bool:
    pairs = itertools.pairwise(vectors)
    return all(v.buffer.ptr + v.buffer.nbytes == w.buffer.ptr and v.count == w.count for v, w in pairs)


class _LoadedKey:
    """What one key keeps on the device: matrices, tables, points, and the memory that proofs use."""

    def __init__(
        self,
        key: ProvingKey,
        module: LoadedModule,
        msms: Mapping[Group, Msm],
        memory: Memory,
        stream: Stream,
        combine: HostCombine,
        tables: bool,
    ) -> None:
        """Decide what goes where, or raise `Missing` with need and have; nothing is allocated before."""
        if key.log_domain > ntt_plan.MAX_LOG_N:
            raise Missing(
                f"a domain of 2^{key.log_domain} points; the GPU's transforms end at 2^{ntt_plan.MAX_LOG_N}"
            )
        n = self._n = key.domain_size
        self.passes = ntt_plan.to_coset(key.log_domain)
        vector_bytes = 3 * n * SCALAR_BYTES
        matrix_bytes = most_bytes(len(key.coefs), n)
        field_bytes = 2 * vector_bytes + key.n_vars * SCALAR_BYTES + matrix_bytes + Ntt.need(self.passes)
        memory.require(field_bytes + HEADROOM, f"the matrices and transforms of {key.file.path.name}")
        counts = {query: len(getattr(key, query)) for query in QUERIES}
        room = memory.free_bytes() - field_bytes - HEADROOM
        self.plan = residence.plan(counts, msms, room, tables=tables)
        self._module, self._msms, self._memory, self._combine = module, msms, memory, combine
        self.ntt = Ntt(module, key.curve, key.log_domain, memory, stream)
        self.witness = memory.allocate(key.n_vars * SCALAR_BYTES, "the witness")
        self.vectors = memory.allocate(vector_bytes, "A.w, B.w and their product")
        self.work = memory.allocate(vector_bytes, "transforms")
        self._matrices = memory.allocate(matrix_bytes, "the matrices")
        self.witness_ready, self.quotient_ready = (Event(disable_timing=True) for _ in range(2))
        self.staging = Staging()
        self.graphs = Graphs()

    def fill(self, key: ProvingKey, stream: Stream, phases: Phases) -> None:
        """Copy the key to the GPU and make tables there; the host sorts the matrices meanwhile."""
        memory, staging = self._memory, self.staging
        self.queries: ResidentQueries | StreamedQueries
        with phases.span("points to GPU"):
            if isinstance(self.plan, Resident):
                self.queries = ResidentQueries(key, self.plan, self._msms, memory, staging)
            else:
                self.queries = StreamedQueries(key, self.plan, self._msms, memory, staging, self._combine)
        with phases.span("matrices to GPU"):
            rows = compressed_rows(key.coefs, self._n)
            self.sparse = SparseProducts(self._module, rows, self._n, self._matrices, staging, stream)
            self._combine.keep_g1(key.delta_g1)
            self._combine.keep_g2(key.delta_g2)
        with phases.span("tables"):
            self.ntt.prepare(self.passes)
            self.queries.wait()
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
