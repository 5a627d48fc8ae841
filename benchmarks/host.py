"""Times of the host libraries on this machine, next to peers that are here.

    python benchmarks/host.py [--logs 12 14 16] [--repeat 5] [--proof-log 14] [--snarkjs COMMAND]

Prints MSM, NTT and whole proofs: median and range of wall-clock times, and the median of processor times
(on a busy machine only those mean something). Peers: arkworks' Pippenger by py-arkworks-bls12381 (one thread;
it converts its points first), and snarkjs on the same key and witness. The gate admits the libraries.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import py_arkworks_bls12381 as arkworks

from prover.backends.host import G1, G2, HostBackend
from prover.formats.points import decode_g1
from prover.formats.wtns import read_wtns
from prover.loading import artifact_from_gate
from prover.params import BLS12_381, CURVES, Curve
from prover.session import Session

NTT_LOG = 18


def timed(what: str, repeat: int, body: Callable[[], object]) -> None:
    """Run a few times and print one row."""
    walls, processor = [], []
    for _ in range(repeat):
        wall, used = time.perf_counter(), sum(os.times()[:4])  # with the children's
        body()
        walls.append(time.perf_counter() - wall)
        processor.append(sum(os.times()[:4]) - used)
    spread = f"{min(walls) * 1e3:.1f}..{max(walls) * 1e3:.1f}"
    print(
        f"{what:<66} {statistics.median(walls) * 1e3:>10.1f} {spread:>20} "
        f"{statistics.median(processor) * 1e3:>10.1f}"
    )


def random_scalars(curve: Curve, n: int) -> np.ndarray:
    """n scalars, uniform but for the top bits, which keep them below r."""
    words = np.frombuffer(secrets.token_bytes(32 * n), np.uint8).reshape(n, 32).copy()
    words[:, 31] &= (1 << (curve.r.bit_length() - 1) % 8) - 1
    return words


def vector(words: np.ndarray) -> np.ndarray:
    """The same words at an address that the library may write to."""
    room = np.empty(words.size + 16, np.uint8)
    start = -room.ctypes.data % 16
    out = room[start : start + words.size].reshape(words.shape)
    out[:] = words
    return out


def time_msm(backend: HostBackend, group: int, log_n: int, repeat: int) -> None:
    """One MSM of random scalars and random points."""
    curve, n = backend.curve, 1 << log_n
    logs, scalars = random_scalars(curve, n), random_scalars(curve, n)
    points = backend.multiples_g1(logs) if group == G1 else backend.multiples_g2(logs)
    out = np.empty(points.shape[1], np.uint8)
    call = backend._library.call
    name = f"{curve.name} MSM G{group} 2^{log_n}"
    timed(name, repeat, lambda: call("msm", group, points, scalars, n, 0, backend.threads, out))
    if curve is BLS12_381 and group == G1:
        theirs = [arkworks_point(curve, row.tobytes()) for row in points]
        factors = [arkworks.Scalar.from_le_bytes(row.tobytes()) for row in scalars]
        results = []
        timed(
            f"  arkworks, one thread, G1 2^{log_n}",
            repeat,
            lambda: results.append(arkworks.G1Point.multiexp_unchecked(theirs, factors)),
        )
        if results[0] != arkworks_point(curve, out.tobytes()):
            sys.exit("the two MSMs differ")


def arkworks_point(curve: Curve, data: bytes) -> arkworks.G1Point:
    """A point of a key file as arkworks has it."""
    point = decode_g1(curve, data)
    if point is None:
        return arkworks.G1Point.identity()
    joined = b"".join(c.to_bytes(curve.q_bytes, "little") for c in point)
    return arkworks.G1Point.from_xy_bytes_unchecked_le(joined)


def time_ntt(backend: HostBackend, repeat: int) -> None:
    """One transform, and one change of domain (two transforms and a scaling)."""
    curve, call, threads = backend.curve, backend._library.call, backend.threads
    tables = vector(np.zeros((2 << NTT_LOG, 32), np.uint8))
    call("domain", tables, NTT_LOG, threads)
    values = vector(random_scalars(curve, 1 << NTT_LOG))
    timed(
        f"{curve.name} NTT 2^{NTT_LOG}",
        repeat,
        lambda: call("ntt", values, NTT_LOG, tables, 0, threads),
    )
    timed(
        f"{curve.name} change of domain 2^{NTT_LOG}",
        repeat,
        lambda: call("to_coset", values, NTT_LOG, tables, threads),
    )


def time_proof(curve: Curve, log_n: int, binary: float, repeat: int, snarkjs: str | None) -> None:
    """Whole proofs of a synthetic circuit, its key resident; snarkjs reads the key each time, as it does."""
    with tempfile.TemporaryDirectory() as folder:
        zkey, wtns = Path(folder) / "c.zkey", Path(folder) / "c.wtns"
        made = ["--curve", curve.name, "--log-domain", str(log_n), "--binary", str(binary)]
        command = [sys.executable, "-m", "prover", "synth", *made, "--backend", "host"]
        subprocess.run([*command, "--zkey", zkey, "--wtns", wtns], check=True, capture_output=True)
        name = f"{curve.name} proof 2^{log_n}, {binary:.0%} of the wires 0 or 1"
        with Session.open(zkey, "host", artifact_from_gate, lambda _: None) as session:
            witness, spans = read_wtns(wtns), []

            def prove() -> None:
                outcome = session.prove(witness)
                spans.append(outcome.t1_ns - outcome.t0_ns)
                if not outcome.check.valid:
                    sys.exit("a proof failed its check")

            timed(f"{name} (check included)", repeat, prove)
            print(f"  without the check {statistics.median(spans) / 1e6:>57.1f}")
        if snarkjs is not None:
            out = [Path(folder) / "proof.json", Path(folder) / "public.json"]
            prove_there = [*snarkjs.split(), "groth16", "prove", zkey, wtns, *out]
            timed("  snarkjs", 1, lambda: subprocess.run(prove_there, check=True, capture_output=True))


def main() -> None:
    """Everything for both curves."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--logs", type=int, nargs="+", default=[12, 14, 16], help="MSM sizes, as powers of two"
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--proof-log", type=int, default=14, help="domain of the synthetic circuit")
    parser.add_argument("--snarkjs", default=shutil.which("snarkjs"), help="command that runs snarkjs")
    options = parser.parse_args()
    print(f"{'':<66} {'median ms':>10} {'range':>20} {'CPU ms':>10}")
    for curve in CURVES:
        backend = HostBackend(curve, artifact_from_gate(f"host-{curve.name}"))
        for group in (G1, G2):
            for log_n in options.logs:
                time_msm(backend, group, log_n, options.repeat)
        time_ntt(backend, options.repeat)
        for binary in (0.0, 0.9):
            time_proof(curve, options.proof_log, binary, options.repeat, options.snarkjs)


if __name__ == "__main__":
    main()
