"""Times transforms over Fr on the GPU, each checked before it is timed.

    python -m benchmarks.ntt [--curve bls12_381] [--sizes 18,20:7.7.6,24,24:9.9.6]
    python -m benchmarks.ntt --cubin trial.cubin     a build apart from the targets, not gated: for trials

Data is random and resident; times are CUDA events around whole transforms, launched as in a proof (from a
tape), medians of the repeats after warm-up. The floor is the time of the products alone at the measured rate
of the multiply pipe.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from prover.artifact import Artifact
from prover.backends import ntt_plan
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
from prover.backends.cuda_ntt import Ntt
from prover.backends.cuda_tape import Tapes
from prover.loading import artifact_from_gate
from prover.params import BLS12_381, BN254, CURVES, Curve
from prover.scalars import decode_scalars, encode_scalars

MULTIPLY_RATE = 16.4e12
"""32-bit multiply-adds a second that chains reach on an H200 (a wide one counts two): measured."""
COST = {BN254: (214, 166), BLS12_381: (186, 132)}
"""Multiply-adds of a product with any constant, and with the square root of -1 (`ntt_shoup.cuh`)."""
REPEATS = 20
WARMUPS = 3
BLOCK_WORDS = 1 << 18
"""Random elements made on the host and repeated on the device: data need not be new, only not special."""


def floor_ms(curve: Curve, passes: tuple[ntt_plan.Pass, ...], log_n: int) -> float:
    """The time of the products of one transform, all else free."""
    general, root = COST[curve]
    total = 0.0
    for step in passes:
        eights, rest = divmod(step.bits, 3)
        inner = eights * (2 * general + 3 * root) / 8 + {0: 0, 1: 0, 2: root / 4}[rest]
        twiddles = (eights - 1) * 7 / 8 + {0: 0, 1: 1 / 2, 2: 3 / 4}[rest]
        total += inner + general * (twiddles + (step.table is not None))
    return total * (1 << log_n) / MULTIPLY_RATE * 1e3


class Bench:
    """One curve's module and the buffers of the largest length."""

    def __init__(self, gpu: Gpu, curve: Curve, module: LoadedModule, largest: int) -> None:
        self.curve, self.module, self.gpu = curve, module, gpu
        self.stream = Stream(non_blocking=True)
        self.memory = Memory(gpu)
        self.data = self.memory.allocate(32 << largest, "data")
        self.work = self.memory.allocate(32 << largest, "work")

    def randomize(self, log_n: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Fill the data with random elements; the first `BLOCK_WORDS` of them come back."""
        words = np.random.default_rng().integers(0, 256, (min(1 << log_n, BLOCK_WORDS), 32), np.uint8)
        words[:, 31] &= 0x1F
        self.data.upload(words, self.stream)
        filled, total = words.nbytes, 32 << log_n
        while filled < total:
            runtime.memcpyAsync(
                self.data.ptr + filled, self.data.ptr, filled, runtime.memcpyDeviceToDevice, self.stream.ptr
            )
            filled *= 2
        return words

    def check(self, ntt: Ntt, log_n: int, bits: tuple[int, ...] | None) -> None:
        """A sparse input by samples of the output, and there and back. Ends the program on a mismatch."""
        n, r, w = 1 << log_n, self.curve.r, self.curve.root_of_unity(log_n)
        draw = random.Random()
        data, work = self._views(log_n)
        terms = {draw.randrange(n): draw.randrange(r) for _ in range(6)} | {n - 1: r - 1}
        data.fill(0, self.stream)
        work.fill(0xEE, self.stream)
        for at, value in terms.items():
            data.part(32 * at, 32).upload(encode_scalars([value]), self.stream)
            self.stream.synchronize()
        ntt.run(ntt_plan.forward(log_n, bits), data, work, 1, self.stream)
        for k in (0, 1, n - 1, *(draw.randrange(n) for _ in range(40))):
            (got,) = decode_scalars(data.part(32 * k, 32).download(self.stream).reshape(1, 32))
            if got != sum(v * pow(w, at * k, r) for at, v in terms.items()) % r:
                sys.exit(f"wrong output {k} of 2^{log_n} points, passes {bits}")
        words = self.randomize(log_n)
        for plan in (ntt_plan.forward, ntt_plan.inverse):
            ntt.run(plan(log_n, bits), data, work, 1, self.stream)
        for start in {0, max(0, 32 * n - words.nbytes)}:
            back = data.part(start, words.nbytes).download(self.stream).reshape(-1, 32)
            if not np.array_equal(back, words):
                sys.exit(f"2^{log_n} points, there and back, differ; passes {bits}")

    def measure(self, log_n: int, bits: tuple[int, ...] | None, repeats: int = REPEATS) -> dict[str, Any]:
        """Check and time the forward transform and the coset pair."""
        ntt = Ntt(self.module, self.curve, log_n, self.memory, self.stream)
        forward, pair = ntt_plan.forward(log_n, bits), ntt_plan.to_coset(log_n, bits)
        for passes in (forward, ntt_plan.inverse(log_n, bits), pair):
            ntt.prepare(passes)
        self.check(ntt, log_n, bits)
        self.randomize(log_n)
        forward_ms = self._times(ntt, forward, log_n, repeats)
        pair_ms = self._times(ntt, pair, log_n, repeats)
        by_pass = [statistics.median(self._times(ntt, (step,), log_n, repeats)) for step in forward]
        median = statistics.median(forward_ms)
        floor = floor_ms(self.curve, forward, log_n)
        ntt.release()
        return {
            "curve": self.curve.name,
            "log_n": log_n,
            "bits": [p.bits for p in forward],
            "forward_ms": median,
            "forward_spread_ms": max(forward_ms) - min(forward_ms),
            "to_coset_ms": statistics.median(pair_ms),
            "passes_ms": by_pass,
            "floor_ms": floor,
            "of_floor": floor / median,
        }

    def _times(self, ntt: Ntt, passes: tuple[ntt_plan.Pass, ...], log_n: int, repeats: int) -> list[float]:
        data, work = self._views(log_n)
        times, tapes = [], Tapes()
        for index in range(WARMUPS + repeats):
            start, end = Event(), Event()
            start.record(self.stream)
            tapes.play("transform", lambda: ntt.run(passes, data, work, 1, self.stream))
            end.record(self.stream)
            end.synchronize()
            if index >= WARMUPS:
                times.append(elapsed_ms(start, end))
        return times

    def _views(self, log_n: int) -> tuple[Buffer, Buffer]:
        return self.data.part(0, 32 << log_n), self.work.part(0, 32 << log_n)


def ungated(gpu: Gpu, path: Path) -> LoadedModule:
    """A module from a file, taken as it is. Its times are trials, not results."""
    module = Module()
    module.load(path.read_bytes())
    return LoadedModule(module, Artifact(path.name, path, "", "", gpu.arch))


def parse_splits(text: str) -> list[tuple[int, tuple[int, ...] | None]]:
    """``20,24:9.9.6`` -> [(20, None), (24, (9, 9, 6))]."""
    out: list[tuple[int, tuple[int, ...] | None]] = []
    for item in text.split(","):
        size, _, bits = item.partition(":")
        out.append((int(size), tuple(int(b) for b in bits.split(".")) if bits else None))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--curve", choices=[c.name for c in CURVES], default=BLS12_381.name)
    parser.add_argument(
        "--sizes", default="16,18,20,22,24,26", help="log2 of the lengths, each may be SIZE:BITS.BITS"
    )
    parser.add_argument("--cubin", type=Path, help="an ungated build of the kernels")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    options = parser.parse_args()
    curve = next(c for c in CURVES if c.name == options.curve)
    gpu = open_gpu()
    if options.cubin:
        module, identity = ungated(gpu, options.cubin), f"NOT GATED: {options.cubin}"
    else:
        module = LoadedModule.load(gpu, artifact_from_gate(f"cuda-fr-{curve.name}"))
        identity = f"{module.artifact.target} {module.artifact.digest}"
    sizes = parse_splits(options.sizes)
    bench = Bench(gpu, curve, module, max(log_n for log_n, _ in sizes))
    print(f"{curve.name} on {gpu.name}; {identity}")
    print("log n  passes      forward ms  spread  to coset ms  floor ms  of floor  each pass ms")
    results = []
    for log_n, bits in sizes:
        row = bench.measure(log_n, bits)
        results.append(row)
        each = " ".join(f"{t:.3f}" for t in row["passes_ms"])
        print(
            f"{log_n:5}  {'.'.join(map(str, row['bits'])):10}  {row['forward_ms']:10.4f}  "
            f"{row['forward_spread_ms']:6.3f}  {row['to_coset_ms']:11.4f}  {row['floor_ms']:8.4f}  "
            f"{row['of_floor']:8.1%}  {each}",
            flush=True,
        )
    if options.json:
        options.json.write_text(
            json.dumps({"identity": identity, "gpu": gpu.as_json(), "rows": results}, indent=1)
        )


if __name__ == "__main__":
    main()
