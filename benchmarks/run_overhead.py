"""What `freshproof run` costs a build: the build alone, under the observer, and with the record made.

    python benchmarks/run_overhead.py [units | kernel] [rounds] [jobs]

A project of ``units`` CUDA sources and as many C++ sources, built by `make -j JOBS` from clean, alone and
observed in turn, and which of both is first in turn too; the medians are compared, by the clock and in
processor time, which other work sways less. The record is told apart, and of it nvcc's own `-M` runs and
what is beside them; and what it takes to start the program. Then ``rounds`` rebuilds of the untouched tree,
of which none may be called anything but fresh. With ``kernel`` the source is one of this repository's, which
takes nvcc as long as real ones do.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator.foreign.judge import Judge
from orchestrator.foreign.made import Build
from orchestrator.foreign.observe import file_clock_ns, observe
from orchestrator.foreign.outputs import Output
from orchestrator.foreign.provenance import ends
from orchestrator.foreign.reads import Reads
from orchestrator.foreign.receipt import look
from orchestrator.foreign.record import Observed, Recorder
from orchestrator.foreign.store import Store
from orchestrator.model import State

MAKEFILE = """\
CUDA = $(wildcard *.cu)
CXX_ = $(wildcard *.cpp)
liball.a: $(CUDA:.cu=.o) $(CXX_:.cpp=.obj)
\tar crs $@ $^
%.o: %.cu
\tnvcc -arch=sm_90 -c $< -o $@
%.obj: %.cpp
\tg++ -O1 -c $< -o $@
"""
ROUNDS_OF_BUILDS = 3
KERNEL = "kernels_fr_bn254.cu"
OBSERVED = "build, observed"
START = (sys.executable, "-c", "import orchestrator.cli.run")


def write_kernel(root: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "cuda_src", root, dirs_exist_ok=True)
    for path in root.glob("*.cu"):
        if path.name != KERNEL:
            path.unlink()
    (root / "Makefile").write_text(MAKEFILE.replace("-arch=sm_90", "-arch=sm_90 -O3 -std=c++17"))


def write_units(root: Path, units: int) -> None:
    (root / "Makefile").write_text(MAKEFILE)
    for number in range(units):
        (root / f"k{number}.cu").write_text(f"__global__ void k{number}(int *p) {{ *p = {number}; }}\n")
        (root / f"h{number}.cpp").write_text(f"#include <vector>\nstd::vector<int> v{number}{{{number}}};\n")


def clean(root: Path) -> None:
    for pattern in ("*.o", "*.obj", "*.a"):
        for path in root.glob(pattern):
            path.unlink()


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of processor time of this process and its children."""

    clock: float
    processor: float


def timed(action):
    began, used = time.monotonic(), _processor()
    answer = action()
    return Cost(time.monotonic() - began, _processor() - used), answer


def _processor() -> float:
    return sum(os.times()[:4])


def observed_build(root: Path, jobs: str) -> Observed:
    before, began = look([str(root)]), file_clock_ns()
    argv = ("make", "-s", f"-j{jobs}")
    code, events, lost = observe(argv, os.environ, root, root)
    return Observed(argv, str(root), code, events, lost, began, before, dict(os.environ))


def main(units: str = "6", rounds: str = "50", jobs: str = "1") -> int:
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        root = Path(os.path.realpath(folder))
        if units == "kernel":
            write_kernel(root)
        else:
            write_units(root, int(units))
        store = Store(root)
        store.prepare()
        compare(root, store, jobs)
        return rebuild(root, store, int(rounds), jobs)


def compare(root: Path, store: Store, jobs: str) -> None:
    alone, watched, starting, recording, asking, beside = [], [], [], [], [], []

    def build_alone() -> None:
        clean(root)
        argv = ["make", "-s", f"-j{jobs}"]
        alone.append(timed(lambda: subprocess.run(argv, cwd=root, check=True))[0])

    for number in range(ROUNDS_OF_BUILDS):
        if number % 2 == 0:
            build_alone()
        clean(root)
        cost, observed = timed(lambda: observed_build(root, jobs))
        watched.append(cost)
        recorder = Recorder(store, store.read() or Build(str(root)))
        cost, record = timed(lambda r=recorder, o=observed: r.record(o))
        recording.append(cost)
        asked = timed(lambda r=record: ask_compilers(r[1]))[0]
        asking.append(asked)
        beside.append(Cost(cost.clock - asked.clock, cost.processor - asked.processor))
        starting.append(timed(lambda: subprocess.run(START, check=True))[0])
        if number % 2:
            build_alone()
    show("build alone", alone)
    show(OBSERVED, watched, alone)
    show("start of the program", starting, alone)
    show("record", recording, alone)
    show("  -M runs", asking, alone)
    show("  beside them", beside, alone)


def ask_compilers(outputs: tuple[Output, ...]) -> None:
    """What the compilers take to tell what each source reads, as the record asks them."""
    steps = [output.step for output in outputs]
    with Reads() as reads:
        reads.expect(steps)
        for step in steps:
            if step.sources:
                reads.of(step)


def show(what: str, costs: list[Cost], base: list[Cost] = ()) -> None:
    columns = []
    for kind in ("clock", "processor"):
        value = statistics.median(getattr(cost, kind) for cost in costs)
        ratio = ""
        if base:
            other = statistics.median(getattr(cost, kind) for cost in base)
            ratio = f"{100 * (value / other - (what == OBSERVED)):+.1f} %"
        columns.append(f"{value:7.2f} s {kind} {ratio:>8}")
    print(f"{what:<21}" + "  ".join(columns))


def rebuild(root: Path, store: Store, rounds: int, jobs: str) -> int:
    """Untouched rebuilds, each judged from scratch."""
    false = 0
    times = []
    for _ in range(rounds):
        observed = observed_build(root, jobs)
        recorder = Recorder(store, store.read() or Build(str(root)))
        build, outputs = recorder.record(observed)
        seconds, states = timed(lambda b=build: _states(store, b))
        times.append(seconds)
        false += bool(outputs) or states != {State.FRESH}
    print(f"untouched rebuilds   {rounds}, of which called anything but fresh: {false}")
    if times:
        show("one judgement", times)
    return 1 if false else 0


def _states(store: Store, build: Build) -> set[State]:
    judge = Judge(store, build, os.environ)
    return {judge.verdict(path).state for path in ends(build.made)[0]}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
