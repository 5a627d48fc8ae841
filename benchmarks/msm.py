"""Times MSMs on the GPU, each checked against known discrete logarithms before it is timed.

    python -m benchmarks.msm --goals                     every figure that has a goal, and skewed scalars
    python -m benchmarks.msm [--curve bls12_381] [--group g1] [--sizes 16,18,20,22,24]
    python -m benchmarks.msm --sizes 20:17.3,20:18.3     windows of 17 and 18 bits, 3 pairing passes
    python -m benchmarks.msm --tables 256,1              with a table for every window, and with none
    python -m benchmarks.msm --scalars dense,binary      see `random_scalars`
    python -m benchmarks.msm --cubins FOLDER             builds apart from the targets, not gated: for trials

Points, tables and scalars are resident; times are CUDA events around whole MSMs, medians of the repeats after
warm-up. The floor is the time of the multiplications alone at the measured rate of the multiply pipe. Exit
code 6: a wrong result; 8: too little GPU memory, told before work starts.
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

from benchmarks.known_points import KnownPoints, making_bytes
from benchmarks.msm_report import Row, floor_ms, goals_table, skew_table
from orchestrator.errors import BrokenRun, FreshproofError
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

REPEATS = 10
WARMUPS = 2
ALL_TABLES = 256
KINDS = ("dense", "binary", "sparse", "equal", "few", "ones")


@dataclass(frozen=True, slots=True)
class Case:
    """What to measure: n = 2^log_n, at most so many tables, which scalars; a tuning of one's own if given."""

    log_n: int
    tables: int
    scalars: str
    tuning: Tuning | None = None


def goal_cases(curve: str, group: Group) -> list[Case]:
    """Cases of all figures that have a goal; skewed scalars at two sizes."""
    sizes = {
        ("bls12_381", "g1"): (20, 22, 24, 26),
        ("bls12_381", "g2"): (20, 22),
        ("bn254", "g1"): (20, 22, 24),
        ("bn254", "g2"): (20,),
    }[curve, group]
    cases = [Case(log_n, tables, "dense") for log_n in sizes for tables in (ALL_TABLES, 1)]
    if (curve, group) == ("bls12_381", "g1"):
        cases += [Case(log_n, ALL_TABLES, kind) for log_n in (20, 22) for kind in KINDS[1:]]
    return sorted(cases, key=lambda case: case.log_n)


def random_scalars(curve: Curve, n: int, kind: str) -> NDArray[np.uint8]:
    """n scalars below r.

    ``dense``; ``binary``: nine tenths 0 or 1; ``sparse``: nine tenths 0; all ``equal``; ``few``: four values;
    ``ones``: 2^k - 1, every k.
    """
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


class Bench:
    """One group's kernels, and points for the largest length; raises `Missing` if a case lacks memory."""

    def __init__(
        self, gpu: Gpu, curve: Curve, group: Group, modules: list[LoadedModule], cases: list[Case]
    ) -> None:
        self.curve, self.group = curve, group
        self.memory, self.stream = Memory(gpu), Stream(non_blocking=True)
        self.msm = Msm(curve, group, _finder(modules), gpu.multiprocessors)
        self.identity = ", ".join(f"{m.artifact.target} {m.artifact.digest or 'NOT GATED'}" for m in modules)
        log_n = max(case.log_n for case in cases)
        for case in cases:
            self.memory.require(
                self.msm.point_bytes * (1 << log_n)
                + max(making_bytes(self.msm, log_n), self.case_bytes(case)),
                f"an MSM of 2^{case.log_n} points with {self.shape(case).tables} tables",
            )
        self.known = KnownPoints(self.msm, log_n, self.memory, self.stream)
        self._inputs: tuple[tuple[int, str], NDArray[np.uint8], Any] | None = None

    def shape(self, case: Case) -> Shape:
        """How a case is cut up."""
        if case.tuning is None:
            return self.msm.shape(1 << case.log_n, max_tables=case.tables)
        return msm_plan.shape(self.curve, 1 << case.log_n, case.tuning, case.tables)

    def case_bytes(self, case: Case) -> int:
        """Memory of a case beside the known points."""
        shape = self.shape(case)
        scratch = max(self.msm.table_scratch_bytes(shape), 32 * shape.n + self.msm.workspace_bytes(shape))
        return self.msm.table_bytes(shape) + scratch + (1 << 20)

    def measure(self, case: Case, repeats: int) -> Row:
        """Check one MSM, time it, and split its time by phases. Raises `BrokenRun` on a wrong result."""
        shape = self.shape(case)
        bases, table_ms = self._bases(shape)
        words, expected = self._scalars(case)
        scalars = self.memory.allocate(words.nbytes, "scalars")
        scalars.upload(words, self.stream)
        workspace = self.memory.allocate(self.msm.workspace_bytes(shape), "workspace")
        out = self.memory.allocate(self.msm.point_bytes, "result")
        for poison in (workspace, out):
            poison.fill(0xA5, self.stream)
        run: Callable[[], None] = lambda: self.msm.run(bases, scalars, workspace, out, self.stream)  # noqa: E731
        run()
        if self.known.decode(out, self.stream) != expected:
            raise BrokenRun(f"wrong result: {self.curve.name} {self.group} {case.scalars} {shape}")
        times = [self._timed(run)[0] for _ in range(WARMUPS + repeats)][WARMUPS:]
        row = Row(
            curve=self.curve.name,
            group=self.group,
            log_n=case.log_n,
            scalars=case.scalars,
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
            identity=self.identity,
        )
        for buffer in (bases.table, scalars, workspace, out):
            self.memory.free(buffer)
        return row

    def _bases(self, shape: Shape) -> tuple[Bases, float]:
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

    def _scalars(self, case: Case) -> tuple[NDArray[np.uint8], Any]:
        """Scalars of a case and the MSM over them; the last are kept, for the next case may want them."""
        key = (case.log_n, case.scalars)
        if self._inputs is None or self._inputs[0] != key:
            words = random_scalars(self.curve, 1 << case.log_n, case.scalars)
            self._inputs = (key, words, self.known.expected(words))
        return self._inputs[1], self._inputs[2]

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


def wanted(options: argparse.Namespace) -> dict[tuple[Curve, Group], list[Case]]:
    """The cases that the command line asks for, by curve and group."""
    if options.goals:
        groups: tuple[Group, ...] = ("g1", "g2")
        return {(c, g): goal_cases(c.name, g) for c in (BLS12_381, *CURVES) for g in groups}
    cases = [
        Case(log_n, int(tables), kind, tuning)
        for log_n, tuning in parse_sizes(options.sizes)
        for kind in options.scalars.split(",")
        for tables in options.tables.split(",")
    ]
    if unknown := [case.scalars for case in cases if case.scalars not in KINDS]:
        sys.exit(f"no scalars called {unknown[0]!r}; there are {', '.join(KINDS)}")
    return {(next(c for c in CURVES if c.name == options.curve), options.group): cases}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--goals", action="store_true", help="both curves, both groups, tables of results")
    parser.add_argument("--curve", choices=[c.name for c in CURVES], default=BLS12_381.name)
    parser.add_argument("--group", choices=["g1", "g2"], default="g1")
    parser.add_argument("--sizes", default="16,18,20,22,24", help="log2 of n, each may be SIZE:BITS.PASSES")
    parser.add_argument("--tables", default=str(ALL_TABLES), help="tables at most; 1: the points alone")
    parser.add_argument("--scalars", default="dense", help=", ".join(KINDS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--cubins", type=Path, help="a folder of ungated builds")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    options = parser.parse_args()
    rows: list[Row] = []
    try:
        gpu = open_gpu()
        print(f"on {gpu.name}, driver {gpu.driver_version}")
        for (curve, group), cases in wanted(options).items():
            bench = Bench(gpu, curve, group, load(gpu, curve, group, options.cubins), cases)
            print(bench.identity)
            for case in cases:
                rows.append(bench.measure(case, options.repeats))
                print(rows[-1].line(), flush=True)
            bench.memory.release()
    except FreshproofError as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        if options.json and rows:
            options.json.write_text(json.dumps([row.as_json() for row in rows], indent=1))
    if options.goals:
        print(goals_table(rows), skew_table(rows), sep="\n\n")


if __name__ == "__main__":
    main()
