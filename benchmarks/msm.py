"""Times MSMs on the GPU, each checked against known discrete logarithms before it is timed.

    python -m benchmarks.msm [--curve bls12_381] [--group g1] [--sizes 16,18,20,22,24]
    python -m benchmarks.msm --sizes 20:17.3,20:18.3     windows of 17 and 18 bits, 3 pairing passes
    python -m benchmarks.msm --tables 1                  no tables
    python -m benchmarks.msm --scalars binary            nine tenths of the scalars are 0 or 1
    python -m benchmarks.msm --cubins FOLDER             builds apart from the targets, not gated: for trials

Points, tables and scalars are resident; times are CUDA events around whole MSMs, medians of the repeats after
warm-up. The floor is the time of the multiplications alone at the measured rate of the multiply pipe.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.known_points import KnownPoints
from prover.artifact import Artifact
from prover.backends import msm_plan
from prover.backends.cuda_device import (
    Buffer,
    Event,
    Gpu,
    Memory,
    Module,
    Stream,
    elapsed_ms,
    open_gpu,
    runtime,
)
from prover.backends.cuda_module import LoadedModule
from prover.backends.cuda_msm import Bases, Msm
from prover.loading import artifact_from_gate
from prover.params import BLS12_381, CURVES, Curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from prover.backends.msm_plan import Group, Shape, Tuning

MULTIPLY_RATE = 16.4e12
"""32-bit multiply-adds a second that chains reach on an H200 (a wide one counts two): measured."""
COST: dict[tuple[str, Group], tuple[int, int, int]] = {
    ("bn254", "g1"): (1547, 2432, 3500),
    ("bls12_381", "g1"): (3445, 5408, 7796),
    ("bn254", "g2"): (4050, 6700, 9500),
    ("bls12_381", "g2"): (8850, 14640, 20750),
}
"""Multiply-adds of a pairing, of a mixed and of a full XYZZ addition, counted in the machine code."""
REPEATS = 10
WARMUPS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    log_n: int
    bits: int
    passes: int
    tables: int
    table_mib: int
    table_ms: float
    workspace_mib: int
    median_ms: float
    spread_ms: float
    phases_ms: dict[str, float]
    floor_ms: float


def floor_ms(curve: Curve, group: Group, shape: Shape) -> float:
    """The multiplications of a dense MSM, all else free."""
    pairing, mixed, full = COST[curve.name, group]
    paired = shape.entries - shape.accumulated
    work = paired * pairing + shape.accumulated * mixed + 2 * shape.buckets * full
    return work / MULTIPLY_RATE * 1e3


def random_scalars(curve: Curve, n: int, kind: str) -> NDArray[np.uint8]:
    """n scalars below r: ``dense``, ``binary`` (nine tenths 0 or 1), or all ``equal``."""
    rng = np.random.default_rng()
    words = rng.integers(0, 1 << 64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(curve.r >> 192)
    if kind == "binary":
        small = rng.random(n) < 0.9
        words[small] = 0
        words[small, 0] = rng.integers(0, 2, int(small.sum()), np.uint64)
    elif kind == "equal":
        words[:] = words[0]
    return words.view(np.uint8)


class Bench:
    """One group's kernels, and points for the largest length."""

    def __init__(self, gpu: Gpu, curve: Curve, group: Group, modules: list[LoadedModule], log_n: int) -> None:
        self.curve, self.group = curve, group
        self.memory, self.stream = Memory(gpu), Stream(non_blocking=True)
        self.msm = Msm(curve, group, _finder(modules), gpu.multiprocessors)
        self.known = KnownPoints(self.msm, log_n, self.memory, self.stream)

    def bases(self, shape: Shape) -> tuple[Bases, float]:
        """The first n points with their tables, and how long those took."""
        table = self.memory.allocate(self.msm.table_bytes(shape), "tables")
        scratch = self.memory.allocate(self.msm.table_scratch_bytes(shape), "making tables")
        runtime.memcpyAsync(
            table.ptr,
            self.known.points.ptr,
            self.msm.point_bytes * shape.n,
            runtime.memcpyDeviceToDevice,
            self.stream.ptr,
        )
        took, bases = self._timed(lambda: self.msm.build(shape, table, scratch, self.stream))
        self.memory.free(scratch)
        return bases, took

    def measure(self, log_n: int, tuning: Tuning | None, tables: int, kind: str, repeats: int) -> Row:
        """Check one MSM, time it, and split its time by phases. Ends the program on a wrong result."""
        n = 1 << log_n
        shape = self.msm.shape(n, max_tables=tables)
        if tuning is not None:
            shape = msm_plan.shape(self.curve, n, tuning, tables)
        bases, table_ms = self.bases(shape)
        words = random_scalars(self.curve, n, kind)
        scalars = self.memory.allocate(words.nbytes, "scalars")
        scalars.upload(words, self.stream)
        workspace = self.memory.allocate(self.msm.workspace_bytes(shape), "workspace")
        out = self.memory.allocate(self.msm.point_bytes, "result")
        for poison in (workspace, out):
            poison.fill(0xA5, self.stream)
        run: Callable[[], None] = lambda: self.msm.run(bases, scalars, workspace, out, self.stream)  # noqa: E731
        run()
        if self.known.decode(out, self.stream) != self.known.expected(words):
            sys.exit(f"wrong result: {self.curve.name} {self.group} {shape}")
        times = [self._timed(run)[0] for _ in range(WARMUPS + repeats)][WARMUPS:]
        row = Row(
            log_n=log_n,
            bits=shape.bits,
            passes=shape.passes,
            tables=shape.tables,
            table_mib=self.msm.table_bytes(shape) >> 20,
            table_ms=table_ms if shape.tables > 1 else 0.0,
            workspace_mib=workspace.nbytes >> 20,
            median_ms=statistics.median(times),
            spread_ms=max(times) - min(times),
            phases_ms=self._phases(bases, scalars, workspace, out),
            floor_ms=floor_ms(self.curve, self.group, shape),
        )
        for buffer in (bases.table, scalars, workspace, out):
            self.memory.free(buffer)
        return row

    def _timed(self, work: Callable[[], Any]) -> tuple[float, Any]:
        start, end = Event(), Event()
        start.record(self.stream)
        result = work()
        end.record(self.stream)
        end.synchronize()
        return elapsed_ms(start, end), result

    def _phases(self, bases: Bases, scalars: Buffer, workspace: Buffer, out: Buffer) -> dict[str, float]:
        marks: list[tuple[str, Event]] = []

        def mark(phase: str) -> None:
            event = Event()
            event.record(self.stream)
            marks.append((phase, event))

        mark("start")
        self.msm.run(bases, scalars, workspace, out, self.stream, mark)
        self.stream.synchronize()
        return {phase: elapsed_ms(before, at) for (_, before), (phase, at) in itertools.pairwise(marks)}


def _finder(modules: list[LoadedModule]) -> Any:
    def find(name: str) -> Any:
        for module in modules[:-1]:
            kernel = module.find(name)
            if kernel is not None:
                return kernel
        return modules[-1].kernel(name)

    return find


def ungated(gpu: Gpu, path: Path) -> LoadedModule:
    """A module from a file, taken as it is. Its times are trials, not results."""
    module = Module()
    module.load(path.read_bytes())
    return LoadedModule(module, Artifact(path.name, path, "", "", gpu.arch))


def load(gpu: Gpu, curve: Curve, group: Group, folder: Path | None) -> list[LoadedModule]:
    """The two modules of a group's MSM: from the gate, or from a folder of trial builds."""
    units = (f"msm-{group}", "msm-sort")
    if folder is None:
        return [LoadedModule.load(gpu, artifact_from_gate(f"cuda-{unit}-{curve.name}")) for unit in units]
    names = (f"kernels_{unit.replace('-', '_')}_{curve.name}.cubin" for unit in units)
    return [ungated(gpu, folder / name) for name in names]


def parse_sizes(text: str) -> list[tuple[int, Tuning | None]]:
    """``16,20:17.3`` -> [(16, None), (20, Tuning(17, 3))]."""
    out: list[tuple[int, Tuning | None]] = []
    for item in text.split(","):
        size, _, tuning = item.partition(":")
        bits, _, passes = tuning.partition(".")
        out.append((int(size), msm_plan.Tuning(int(bits), int(passes)) if tuning else None))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--curve", choices=[c.name for c in CURVES], default=BLS12_381.name)
    parser.add_argument("--group", choices=["g1", "g2"], default="g1")
    parser.add_argument("--sizes", default="16,18,20,22,24", help="log2 of n, each may be SIZE:BITS.PASSES")
    parser.add_argument("--tables", type=int, default=256, help="tables at most; 1: the points alone")
    parser.add_argument("--scalars", choices=["dense", "binary", "equal"], default="dense")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--cubins", type=Path, help="a folder of ungated builds")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    options = parser.parse_args()
    curve = next(c for c in CURVES if c.name == options.curve)
    gpu = open_gpu()
    modules = load(gpu, curve, options.group, options.cubins)
    identity = ", ".join(f"{m.artifact.target} {m.artifact.digest}" for m in modules)
    identity = f"NOT GATED: {options.cubins}" if options.cubins else identity
    sizes = parse_sizes(options.sizes)
    bench = Bench(gpu, curve, options.group, modules, max(log_n for log_n, _ in sizes))
    print(f"{curve.name} {options.group}, {options.scalars} scalars, on {gpu.name}; {identity}")
    print("log n  bits.passes  tables    MiB  made ms  work MiB       ms  spread   floor  of it  phases ms")
    rows = []
    for log_n, tuning in sizes:
        row = bench.measure(log_n, tuning, options.tables, options.scalars, options.repeats)
        rows.append({name: getattr(row, name) for name in Row.__slots__})
        phases = " ".join(f"{name} {ms:.3f}" for name, ms in row.phases_ms.items())
        print(
            f"{log_n:5}  {f'{row.bits}.{row.passes}':>11}  {row.tables:6}  {row.table_mib:5}  "
            f"{row.table_ms:7.1f}  {row.workspace_mib:8}  {row.median_ms:7.3f}  {row.spread_ms:6.3f}  "
            f"{row.floor_ms:6.3f}  {row.floor_ms / row.median_ms:5.0%}  {phases}",
            flush=True,
        )
    if options.json:
        options.json.write_text(
            json.dumps({"identity": identity, "gpu": gpu.as_json(), "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
