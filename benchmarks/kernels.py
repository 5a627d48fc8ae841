"""Workloads for ``freshproof bench``: one MSM or one transform a sample, its result checked each time.

    python -m benchmarks.kernels msm --curve bls12_381 --group g1 --log-n 22 [--tables 1] [--scalars binary]
    python -m benchmarks.kernels ntt --curve bn254 --log-n 20

All data is resident and random. The phase ``msm`` or ``ntt`` is the whole of it by CUDA events, from before
the first kernel to after the last. As in a proof, launches are recorded as graphs: here one for each phase.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn, Protocol

from benchmarks.msm import ALL_TABLES, SCALARS, MsmWork, units
from benchmarks.ntt import NttWork
from prover.backends.cuda_clock import SpanClock
from prover.backends.cuda_device import checked, open_gpu
from prover.backends.cuda_graph import Graphs
from prover.backends.cuda_module import LoadedModule
from prover.backends.host_library import load_library
from prover.loading import artifact_from_orchestrator
from prover.params import CURVES
from prover.serving import Facts, Sampled, report_failure, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from prover.artifact import Loaded
    from prover.backends.cuda_device import Gpu, Stream
    from prover.check import Check

MAIN = "main"
"""The stream, as spans name it."""


class Work(Protocol):
    """What is timed: the same launches each time, on one stream."""

    name: str
    stream: Stream

    def facts(self) -> dict[str, Any]: ...
    def prepare(self) -> None: ...
    def phases(self) -> list[tuple[str, Callable[[], None]]]: ...
    def check(self) -> Check: ...
    def close(self) -> None: ...


class Kernels:
    """Samples of one `Work`, as a `prover.serving.Service`."""

    def __init__(self, gpu: Gpu, work: Work, loaded: Sequence[Loaded]) -> None:
        self._gpu, self._work, self._loaded = gpu, work, loaded
        self._clock, self._graphs = SpanClock(), Graphs()
        self._phases = work.phases()

    def facts(self) -> Facts:
        """What the work says of itself."""
        return Facts(self._loaded, self._gpu.as_json(), self._work.facts())

    def sample(self) -> Sampled:
        """Run the work once, and check what came of it."""
        work, clock = self._work, self._clock
        t0_ns = time.monotonic_ns()
        clock.start(work.stream)
        with checked(work.name):
            with clock.on_host("launch"):
                work.prepare()  # beside it the first launch reaches the GPU: that way is no part of the span
                with clock.span(work.name, work.stream, MAIN):
                    self._launch()
            with clock.on_host("wait for the GPU"):
                work.stream.synchronize()
        t1_ns = time.monotonic_ns()
        return Sampled(t0_ns, t1_ns, clock.drain(), work.check())

    def close(self) -> None:
        """Give the memory back."""
        self._work.close()

    def _launch(self) -> None:
        """Put all phases on the stream; where there are several, each with a span of its own."""
        stream = self._work.stream
        for name, put in self._phases:
            with self._clock.span(name, stream, MAIN) if name else nullcontext():
                self._graphs.play(name, put, stream)


class Parser(argparse.ArgumentParser):
    """Tells a wrong command line to the orchestrator as well."""

    def error(self, message: str) -> NoReturn:
        report_failure(message, "see `python -m benchmarks.kernels --help`", 2)
        super().error(message)


def parser() -> argparse.ArgumentParser:
    out = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = out.add_subparsers(dest="kind", required=True)
    msm, ntt = kinds.add_parser("msm"), kinds.add_parser("ntt")
    for kind in (msm, ntt):
        kind.add_argument("--curve", choices=[c.name for c in CURVES], required=True)
        kind.add_argument("--log-n", type=int, required=True)
    msm.add_argument("--group", choices=["g1", "g2"], required=True)
    msm.add_argument("--tables", type=int, default=ALL_TABLES, help="at most; 1: the points alone")
    msm.add_argument("--scalars", choices=SCALARS, default="dense", help=str(SCALARS))
    return out


def begin(options: argparse.Namespace) -> Kernels:
    """Load what the gate admitted, and make the data."""
    gpu = open_gpu()
    curve = next(c for c in CURVES if c.name == options.curve)

    def load(unit: str) -> LoadedModule:
        return LoadedModule.load(gpu, artifact_from_orchestrator(f"cuda-{unit}-{curve.name}"))

    if options.kind == "msm":
        modules = [load(unit) for unit in units(options.group)]
        choices = {"tables": options.tables, "scalars": options.scalars}
        msm = MsmWork(gpu, curve, options.group, modules, options.log_n, **choices)
        return Kernels(gpu, msm, [module.as_loaded() for module in modules])
    module = load("fr")
    library, loaded = load_library(artifact_from_orchestrator(f"host-{curve.name}"), curve.name)
    ntt = NttWork(gpu, curve, module, library, options.log_n)
    return Kernels(gpu, ntt, [module.as_loaded(), loaded])


def main() -> int:
    options = parser().parse_args()
    return serve(lambda: begin(options), ["benchmarks"])


if __name__ == "__main__":
    sys.exit(main())
