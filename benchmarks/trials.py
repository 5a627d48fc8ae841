"""For tuning: MSMs and transforms from cubins that lie anywhere, checked and timed. Trials, not results.

    python -m benchmarks.trials FOLDER msm --curve bls12_381 --group g1 --cases 20,20:17.3,22:20.3x1,20/binary
    python -m benchmarks.trials FOLDER ntt --curve bls12_381 --cases 20,20:7.7.6,24

FOLDER holds the builds, named as their sources are. A case is log2 of the length, then maybe ``:`` and a
tuning (window bits and pairing passes, or the bits of each pass), ``x`` and how many tables at most, ``/``
and the kind of scalars. No gate is asked for the cubins, so nothing here is a figure to keep: that is what
``freshproof bench`` is for. The host library, which says what a transform must give, comes from the gate.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.launches import Kernels, Work
from benchmarks.msm import MsmWork, units
from benchmarks.ntt import NttWork
from benchmarks.speeds import ALL_TABLES, SCALARS, floor_ms
from orchestrator.errors import BrokenRun, FreshproofError
from prover.artifact import Artifact
from prover.backends.cuda_device import Gpu, Module, open_gpu
from prover.backends.cuda_module import LoadedModule
from prover.backends.host_library import load_library
from prover.backends.msm_plan import Tuning
from prover.loading import artifact_from_gate
from prover.params import CURVES, Curve

WARMUPS = 3
_CASE = re.compile(r"(\d+)(?::([\d.]+))?(?:x(\d+))?(?:/([a-z]+))?")


def ungated(gpu: Gpu, folder: Path, unit: str, curve: Curve) -> LoadedModule:
    """A module from a file, taken as it is."""
    path = folder / f"kernels_{unit.replace('-', '_')}_{curve.name}.cubin"
    module = Module()
    module.load(path.read_bytes())
    return LoadedModule(module, Artifact(path.name, path, "", "", gpu.arch))


def msm_cases(
    gpu: Gpu, curve: Curve, options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], Work]]]:
    modules = [ungated(gpu, options.folder, unit, curve) for unit in units(options.group)]
    for text, log_n, numbers, tables, scalars in cases(options.cases):
        tuning = Tuning(*numbers) if numbers else None
        choices = {"tables": tables, "scalars": scalars, "tuning": tuning}

        def make(log_n: int = log_n, choices: dict[str, Any] = choices) -> Work:
            return MsmWork(gpu, curve, options.group, modules, log_n, **choices)

        yield f"{curve.name} {options.group} {text}", make


def ntt_cases(
    gpu: Gpu, curve: Curve, options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], Work]]]:
    module = ungated(gpu, options.folder, "fr", curve)
    library, _ = load_library(artifact_from_gate(f"host-{curve.name}"), curve.name)
    for text, log_n, numbers, _, _ in cases(options.cases):

        def make(log_n: int = log_n, bits: tuple[int, ...] | None = numbers or None) -> Work:
            return NttWork(gpu, curve, module, library, log_n, bits)

        yield f"{curve.name} fr {text}", make


def cases(text: str) -> Iterator[tuple[str, int, tuple[int, ...], int, str]]:
    """``20:17.3x1/binary`` -> itself, 20, (17, 3), 1, "binary"."""
    for item in text.split(","):
        found = _CASE.fullmatch(item)
        if not found or (found[4] or "dense") not in SCALARS:
            sys.exit(f"no case: {item!r}")
        numbers = tuple(int(part) for part in (found[2] or "").split(".") if part)
        yield item, int(found[1]), numbers, int(found[3] or ALL_TABLES), found[4] or "dense"


def timed(gpu: Gpu, name: str, work: Work, repeats: int) -> str:
    """A line: the median and the spread of the whole, the medians of its phases. Raises `BrokenRun`."""
    kernels, facts = Kernels(gpu, work, ()), work.facts()
    times: dict[str, list[float]] = {}
    for index in range(WARMUPS + repeats):
        sampled = kernels.sample()
        if not sampled.check.valid:
            raise BrokenRun(sampled.check.reason)
        for span in sampled.spans if index >= WARMUPS else ():
            if span.clock == "cuda":
                times.setdefault(span.name, []).append((span.t1_ns - span.t0_ns) / 1e6)
    kernels.close()
    whole, phases = times.pop(work.name), times.items()
    median, spread = statistics.median(whole), max(whole) - min(whole)
    share = f"{floor_ms(facts['multiply-adds']) / median:4.0%}" if "multiply-adds" in facts else "    "
    tables = (
        f"tables {facts['tables']:2} in {facts['tables made in ms']:7.1f} ms  " if "tables" in facts else ""
    )
    each = " ".join(f"{phase} {statistics.median(ms):.3f}" for phase, ms in phases)
    return f"{name:30} {median:9.4f} ms  spread {spread:7.4f}  pipe {share}  {tables}{each}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=["msm", "ntt"])
    parser.add_argument("--curve", choices=[c.name for c in CURVES], required=True)
    parser.add_argument("--group", choices=["g1", "g2"], default="g1")
    parser.add_argument("--cases", required=True)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    curve = next(c for c in CURVES if c.name == options.curve)
    try:
        gpu = open_gpu()
        for name, make in (msm_cases if options.kind == "msm" else ntt_cases)(gpu, curve, options):
            print(timed(gpu, name, make(), options.repeats), flush=True)
    except FreshproofError as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
