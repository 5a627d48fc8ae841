"""A workload for ``freshproof bench``: proofs of a synthetic circuit, made on first use.

    python -m benchmarks.synthetic --curve bls12_381 --log-domain 18 --binary 0.9 --backend cuda

The circuit fills its domain to the last row. Key and witness follow from the seed, so they are the same on
every machine; they are kept in build/circuits. Then this process is `groth16 worker` on them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from prover import setup, synth
from prover.backends import DenseWires
from prover.formats.wtns import write_wtns
from prover.loading import artifact_from_orchestrator, checkout, open_generator
from prover.output import all_or_none
from prover.params import CURVES, Curve
from prover.serving import report_failure, serve
from prover.worker import Job, Proofs

if TYPE_CHECKING:
    from prover.loading import FindArtifact

SEED = "bench"


def circuit(curve: Curve, log_domain: int, binary: float) -> tuple[Path, Path]:
    """The paths of the key and the witness, whether they exist or not."""
    folder = checkout() / "build" / "circuits"
    name = f"{curve.name}-{log_domain}-{round(100 * binary)}"
    return folder / f"{name}.zkey", folder / f"{name}.wtns"


def ensure(
    curve: Curve, log_domain: int, binary: float, backend: str, find: FindArtifact
) -> tuple[Path, Path]:
    """Make the files if they are not there: both, whole, or neither."""
    zkey, wtns = circuit(curve, log_domain, binary)
    if zkey.exists() and wtns.exists():
        return zkey, wtns
    zkey.parent.mkdir(parents=True, exist_ok=True)
    shape = synth.Shape(curve, synth.constraints_filling(log_domain), binary, SEED)
    generator = open_generator(backend, curve, find)
    system, witness = synth.synthesize(shape, generator if isinstance(generator, DenseWires) else None)
    with all_or_none((zkey, wtns)) as staged:
        write_wtns(staged[wtns], curve, witness)
        setup.write_test_key(staged[zkey], system, setup.seeded_trapdoor(curve, SEED), generator)
    return zkey, wtns


class Parser(argparse.ArgumentParser):
    """Tells a wrong command line to the orchestrator as well."""

    def error(self, message: str) -> NoReturn:
        report_failure(message, "see `python -m benchmarks.synthetic --help`", 2)
        super().error(message)


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curve", choices=[c.name for c in CURVES], required=True)
    parser.add_argument("--log-domain", type=int, required=True)
    parser.add_argument("--binary", type=float, default=0.0, help="share of the wires that are 0 or 1")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--gpu-memory", type=float, metavar="GB", help="memory of the GPU to use at most")
    parser.add_argument("--cold", action="store_true", help="time each sample from the key file on")
    options = parser.parse_args()
    curve = next(c for c in CURVES if c.name == options.curve)
    gpu_memory = None if options.gpu_memory is None else round(options.gpu_memory * 1e9)

    def begin() -> Proofs:
        shape = (curve, options.log_domain, options.binary)
        files = ensure(*shape, options.backend, artifact_from_orchestrator)
        return Proofs(Job(*files, options.backend, gpu_memory, options.cold))

    return serve(begin, ["benchmarks"])


if __name__ == "__main__":
    sys.exit(main())
