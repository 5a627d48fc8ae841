"""One MSM on the GPU, with everything resident: points whose logarithms are known, tables, random scalars."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.known_points import KnownPoints, making_bytes
from benchmarks.speeds import ALL_TABLES, msm_bytes, msm_multiplies
from prover.backends import msm_plan
from prover.backends.cuda_device import Event, Memory, Stream, elapsed_ms, runtime
from prover.backends.cuda_queries import msms_of
from prover.check import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from prover.backends.cuda_device import Gpu
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.cuda_msm import Bases
    from prover.backends.msm_plan import Group, Shape, Tuning
    from prover.params import Curve

    Phases = list[tuple[str, Callable[[], None]]]

SPARE_BYTES = 1 << 20
"""For results and the alignment of all buffers."""


def units(group: Group) -> tuple[str, str]:
    """The compiled units of a group's MSM, as their targets and sources are called."""
    return f"msm-{group}", "msm-sort"


def random_scalars(curve: Curve, n: int, kind: str) -> NDArray[np.uint8]:
    """(n * 4) words of scalars below r; ``kind``: one of `speeds.SCALARS`."""
    rng = np.random.default_rng()
    if kind == "ones":
        powers = b"".join(((1 << k) - 1).to_bytes(32, "little") for k in range(curve.r.bit_length()))
        table = np.frombuffer(powers, np.uint64).reshape(-1, 4)
        return np.ascontiguousarray(table[rng.integers(0, len(table), n)]).view(np.uint8)
    words = rng.integers(0, 1 << 64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(curve.r >> 192)
    if kind in ("binary", "sparse"):
        small = rng.random(n) < 0.9
        words[small] = 0
        if kind == "binary":
            words[small, 0] = rng.integers(0, 2, int(small.sum()), np.uint64)
    elif kind == "equal":
        words[:] = words[0]
    elif kind == "few":
        words[:] = words[rng.integers(0, 4, n) % n]
    return words.view(np.uint8)


class MsmWork:
    """2^log_n points of one group, their tables, and scalars to sum them with."""

    name = "msm"

    def __init__(
        self,
        gpu: Gpu,
        curve: Curve,
        group: Group,
        modules: Sequence[LoadedModule],
        log_n: int,
        *,
        tables: int = ALL_TABLES,
        scalars: str = "dense",
        tuning: Tuning | None = None,
    ) -> None:
        """Make all of it. Raises `Missing` with need and have before anything is allocated.

        ``tables``: at most so many, 1 for the points alone; ``tuning``: another than the prover's own.
        """
        self.curve, self.group, self._kind = curve, group, scalars
        self.stream = Stream(non_blocking=True)
        self._memory = Memory(gpu)
        self._msm = msms_of(gpu, curve, {group: modules})[group]
        self.shape = self._shape(1 << log_n, tables, tuning)
        self._require_room(log_n)
        self._known = KnownPoints(self._msm, log_n, self._memory, self.stream)
        self._bases, self.tables_ms = self._make_bases()
        words = random_scalars(curve, 1 << log_n, scalars)
        self._expected = self._known.expected(words)
        self._scalars = self._memory.allocate(words.nbytes, "scalars")
        self._scalars.upload(words, self.stream)
        self._workspace = self._memory.allocate(self._msm.workspace_bytes(self.shape), "workspace")
        self._workspace.fill(0xA5, self.stream)
        self._out = self._memory.allocate(self._msm.point_bytes, "result")

    def facts(self) -> dict[str, Any]:
        """The MSM by its numbers. Costs are those of dense scalars, so others have none."""
        shape, msm = self.shape, self._msm
        facts: dict[str, Any] = {
            "curve": self.curve.name,
            "group": self.group,
            "points": shape.n,
            "scalars": self._kind,
            "window bits": shape.bits,
            "pairing passes": shape.passes,
            "tables": shape.tables,
            "table MiB": msm.table_bytes(shape) >> 20,
            "tables made in ms": round(self.tables_ms, 3) if shape.tables > 1 else 0.0,
            "workspace MiB": self._workspace.nbytes >> 20,
        }
        if self._kind == "dense":
            facts["multiply-adds"] = msm_multiplies(self.curve.name, self.group, shape)
            facts["bytes"] = msm_bytes(shape, msm.point_bytes)
        return facts

    def prepare(self) -> None:
        """Overwrite the last result."""
        self._out.fill(0xA5, self.stream)

    def phases(self) -> Phases:
        """One MSM."""
        return self._msm.phases(self._bases, self._scalars, self._workspace, self._out, self.stream)

    def check(self) -> Check:
        """The result against the sum of the products of scalars and logarithms."""
        start = time.perf_counter()
        right = self._known.decode(self._out, self.stream) == self._expected
        reason = "" if right else f"wrong result: {self.curve.name} {self.group} {self._kind} {self.shape}"
        return Check(right, reason, "known discrete logarithms", time.perf_counter() - start)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def _shape(self, n: int, tables: int, tuning: Tuning | None) -> Shape:
        if tuning is None:
            return self._msm.shape(n, max_tables=tables)
        return msm_plan.shape(self.curve, n, tuning, tables)

    def _require_room(self, log_n: int) -> None:
        msm, shape = self._msm, self.shape
        points, table = msm.point_bytes << log_n, msm.table_bytes(shape)
        running = 32 * shape.n + msm.workspace_bytes(shape)
        need = max(points + making_bytes(msm, log_n), points + table, table + running)
        self._memory.require(
            max(need, table + msm.table_scratch_bytes(shape)) + SPARE_BYTES,
            f"an MSM of 2^{log_n} points with {shape.tables} tables",
        )

    def _make_bases(self) -> tuple[Bases, float]:
        """The points with their tables, and how long these took, in ms."""
        msm, shape, stream = self._msm, self.shape, self.stream
        table = self._memory.allocate(msm.table_bytes(shape), "tables")
        points, nbytes = self._known.points, msm.point_bytes * shape.n
        runtime.memcpyAsync(table.ptr, points.ptr, nbytes, runtime.memcpyDeviceToDevice, stream.ptr)
        stream.synchronize()
        self._known.release(self._memory)
        scratch = self._memory.allocate(msm.table_scratch_bytes(shape), "making tables")
        start, end = Event(), Event()
        start.record(stream)
        bases = msm.build(shape, table, scratch, stream)
        end.record(stream)
        end.synchronize()
        self._memory.free(scratch)
        return bases, elapsed_ms(start, end)
