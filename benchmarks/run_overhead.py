"""What `freshproof run` costs a build: the build alone, under the observer, and with the record made.

    python benchmarks/run_overhead.py [units] [rounds]

A project of ``units`` CUDA sources and as many C++ sources, built by make from clean, alone and observed in
turn; the medians are compared. The time of the record, which holds nvcc's own `-M` runs, is told apart. Then
``rounds`` rebuilds of the untouched tree, of which none may be called anything but fresh.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
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


def write_project(root: Path, units: int) -> None:
    (root / "Makefile").write_text(MAKEFILE)
    for number in range(units):
        (root / f"k{number}.cu").write_text(f"__global__ void k{number}(int *p) {{ *p = {number}; }}\n")
        (root / f"h{number}.cpp").write_text(f"#include <vector>\nstd::vector<int> v{number}{{{number}}};\n")


def clean(root: Path) -> None:
    for pattern in ("*.o", "*.obj", "*.a"):
        for path in root.glob(pattern):
            path.unlink()


def timed(action):
    began = time.monotonic()
    answer = action()
    return time.monotonic() - began, answer


def observed_build(root: Path) -> Observed:
    before, began = look([str(root)]), file_clock_ns()
    code, events, lost = observe(["make", "-s"], os.environ, root, root)
    return Observed(("make",), str(root), code, events, lost, began, before, dict(os.environ))


def main(units: int = 6, rounds: int = 50) -> int:
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        root = Path(os.path.realpath(folder))
        write_project(root, units)
        store = Store(root)
        store.prepare()
        alone, watched, recording = [], [], []
        for _ in range(ROUNDS_OF_BUILDS):
            clean(root)
            alone.append(timed(lambda: subprocess.run(["make", "-s"], cwd=root, check=True))[0])
            clean(root)
            seconds, observed = timed(lambda: observed_build(root))
            watched.append(seconds)
            recorder = Recorder(store, store.read() or Build(str(root)))
            recording.append(timed(lambda r=recorder, o=observed: r.record(o))[0])
        base, under = statistics.median(alone), statistics.median(watched)
        print(f"build alone          {base:6.2f} s   (median of {ROUNDS_OF_BUILDS}: {_row(alone)})")
        print(f"build, observed      {under:6.2f} s   {100 * (under / base - 1):+.1f} %  ({_row(watched)})")
        print(f"record with -M runs  {statistics.median(recording):6.2f} s   ({_row(recording)})")
        return rebuild(root, store, rounds)


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
        print(f"one judgement        {statistics.median(times):6.2f} s   (every file read in full)")
    return 1 if false else 0


def _states(store: Store, build: Build) -> set[State]:
    judge = Judge(store, build, os.environ)
    return {judge.verdict(path).state for path in ends(build.made)[0]}


def _row(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
