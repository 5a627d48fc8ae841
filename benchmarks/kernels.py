"""Workloads for ``freshproof bench``: one MSM or one transform a sample, its result checked each time.

    python -m benchmarks.kernels msm --curve bls12_381 --group g1 --log-n 22 [--tables 1] [--scalars binary]
    python -m benchmarks.kernels ntt --curve bn254 --log-n 20

All data is resident and random. The phase ``msm`` or ``ntt`` is the whole of it by CUDA events, from before
the first kernel to after the last. As in a proof, launches are recorded as graphs: here one for each phase.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from benchmarks.speeds import ALL_TABLES, SCALARS
from prover.loading import artifact_from_orchestrator
from prover.params import CURVES
from prover.serving import report_failure, serve

if TYPE_CHECKING:
    from benchmarks.launches import Kernels


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
    """Load what the gate admitted, and make the data. Raises `Missing` where there is no CuPy or no GPU."""
    from benchmarks.launches import Kernels
    from benchmarks.msm import MsmWork, units
    from benchmarks.ntt import NttWork
    from prover.backends.cuda_device import open_gpu
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.host_library import load_library

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
