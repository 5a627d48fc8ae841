"""What `freshproof run` costs a build: the build alone, under the observer, and with the record made.

    python benchmarks/run_overhead.py [units | kernel] [rounds]

A project of ``units`` CUDA sources and as many C++ sources, built by make from clean, alone and observed in
turn; the medians are compared, by the clock and in processor time, which other work sways less.
The record is told apart, and nvcc's own `-M` runs, which it holds. Then ``rounds`` rebuilds of the untouched
tree, of which none may be called anything but fresh. With ``kernel`` the source is one of this
repository's, which takes nvcc as long as real ones do.
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
from orchestrator.foreign.provenance import ends
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


def observed_build(root: Path) -> Observed:
    before, began = look([str(root)]), file_clock_ns()
    code, events, lost = observe(["make", "-s"], os.environ, root, root)
    return Observed(("make",), str(root), code, events, lost, began, before, dict(os.environ))


def main(units: str = "6", rounds: str = "50") -> int:
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        root = Path(os.path.realpath(folder))
        if units == "kernel":
            write_kernel(root)
        else:
            write_units(root, int(units))
        store = Store(root)
        store.prepare()
        alone, watched, recording, asking = [], [], [], []
        for _ in range(ROUNDS_OF_BUILDS):
            clean(root)
            alone.append(timed(lambda: subprocess.run(["make", "-s"], cwd=root, check=True))[0])
            clean(root)
            cost, observed = timed(lambda: observed_build(root))
            watched.append(cost)
            recorder = Recorder(store, store.read() or Build(str(root)))
            recording.append(timed(lambda r=recorder, o=observed: r.record(o))[0])
            asking.append(timed(lambda: ask_nvcc(root))[0])
        show("build alone", alone)
        show("build, observed", watched, alone)
        show("record", recording, alone)
        show("nvcc -M, each source", asking, alone)
        return rebuild(root, store, int(rounds))


def ask_nvcc(root: Path) -> None:
    """What nvcc takes to tell what each source reads: the record holds these runs."""
    for source in root.glob("*.cu"):
        command = ["nvcc", "-arch=sm_90", "-std=c++17", source, "-M", "-MF", "/dev/null"]
        subprocess.run(command, cwd=root, check=True)


def show(what: str, costs: list[Cost], base: list[Cost] = ()) -> None:
    columns = []
    for kind in ("clock", "processor"):
        value = statistics.median(getattr(cost, kind) for cost in costs)
        ratio = ""
        if base:
            other = statistics.median(getattr(cost, kind) for cost in base)
            ratio = f"{100 * (value / other - (what == 'build, observed')):+.1f} %"
        columns.append(f"{value:7.2f} s {kind} {ratio:>8}")
    print(f"{what:<21}" + "  ".join(columns))


def rebuild(root: Path, store: Store, rounds: int) -> int:
    """Untouched rebuilds, each judged from scratch."""
    false = 0
    times = []
    for _ in range(rounds):
        observed = observed_build(root)
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
    sys.exit(main(*sys.argv[1:3]))
