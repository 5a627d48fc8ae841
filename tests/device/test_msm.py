"""MSMs on the GPU against the oracle: lengths, windows, tables, passes, awkward scalars and points."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends import msm_plan
from prover.backends.msm_plan import Tuning
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.reference import g1, g2
from prover.scalars import encode_scalars

pytestmark = pytest.mark.gpu

POOL = 64
"""Distinct points with known logarithms; longer MSMs repeat them."""


class Bench:
    """One group's MSM, and points k_i G with known k_i."""

    def __init__(self, curve, group, gpu, modules) -> None:
        from prover.backends.cuda_device import Memory, Stream
        from prover.backends.cuda_msm import Msm

        self.curve, self.stream = curve, Stream(non_blocking=True)
        self.memory = Memory(gpu)
        self.group = g1(curve) if group == "g1" else g2(curve)
        self.generator = curve.generator_g1 if group == "g1" else curve.generator_g2
        self.encode, self.decode = (encode_g1, decode_g1) if group == "g1" else (encode_g2, decode_g2)
        self.msm = Msm(
            curve, group, lambda name: next(k for m in modules if (k := m.find(name))), gpu.multiprocessors
        )
        draw = random.Random(6)
        self.logs = [draw.randrange(1, curve.r) for _ in range(POOL)]
        self.points = [self.encode(curve, self.group.multiply(k, self.generator)) for k in self.logs]

    def check(self, scalars, chosen, tuning=None, max_tables=256) -> None:
        """Chosen points: i >= 0 is point i of the pool, ~i its negative, None the identity."""
        n = len(scalars)
        shape = self.msm.shape(n, max_tables=max_tables)
        if tuning is not None:
            shape = msm_plan.shape(self.curve, n, tuning, max_tables)
        encoded = {i: self._encoded(i) for i in set(chosen)}
        words = np.frombuffer(b"".join(encoded[i] for i in chosen), np.uint8)
        table = self.memory.allocate(self.msm.table_bytes(shape), "table")
        scratch = self.memory.allocate(self.msm.table_scratch_bytes(shape), "scratch")
        scalar_words = encode_scalars(scalars).reshape(-1)
        on_device = self.memory.allocate(scalar_words.nbytes, "scalars")
        workspace = self.memory.allocate(self.msm.workspace_bytes(shape), "workspace")
        out = self.memory.allocate(self.msm.point_bytes, "out")
        for poison in (workspace, out, scratch):
            poison.fill(0xA5, self.stream)
        table.upload(words, self.stream)
        on_device.upload(scalar_words, self.stream)
        bases = self.msm.build(shape, table, scratch, self.stream)
        self.msm.run(bases, on_device, workspace, out, self.stream)
        got = self.decode(self.curve, out.download(self.stream).tobytes())
        for buffer in (table, scratch, on_device, workspace, out):
            self.memory.free(buffer)
        log = sum(s * self._log(i) for s, i in zip(scalars, chosen, strict=True)) % self.curve.r
        assert got == (self.group.multiply(log, self.generator) if log else None)

    def _log(self, i) -> int:
        return 0 if i is None else self.logs[i] if i >= 0 else -self.logs[~i]

    def _encoded(self, i) -> bytes:
        if i is None:
            return bytes(self.msm.point_bytes)
        if i >= 0:
            return self.points[i]
        negative = self.group.negate(self.decode(self.curve, self.points[~i]))
        return self.encode(self.curve, negative)


@pytest.fixture(scope="module", params=["g1", "g2"])
def bench(request, curve, gpu, load_module):
    modules = [load_module(f"cuda-msm-{unit}-{curve.name}") for unit in (request.param, "sort")]
    made = Bench(curve, request.param, gpu, modules)
    yield made
    made.memory.release()


def random_scalars(curve, n, seed=0):
    draw = random.Random(seed)
    return [draw.randrange(curve.r) for _ in range(n)]


def random_points(n, seed=0):
    draw = random.Random(seed)
    return [draw.choice([None, *range(POOL), *(~i for i in range(8))]) for _ in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 255, 1000, 4097, 20000])
@pytest.mark.parametrize("max_tables", [1, 3, 256])
def test_any_length(bench, curve, n, max_tables):
    bench.check(random_scalars(curve, n), random_points(n), max_tables=max_tables)


@pytest.mark.parametrize("tuning", [Tuning(2, 2), Tuning(5, 0), Tuning(8, 5), Tuning(13, 3), Tuning(17, 1)])
@pytest.mark.parametrize("max_tables", [2, 256])
def test_any_window_and_number_of_passes(bench, curve, tuning, max_tables):
    bench.check(random_scalars(curve, 700), random_points(700), tuning, max_tables)


def test_the_widest_windows(bench, curve):
    bench.check(random_scalars(curve, 3000), random_points(3000), Tuning(24, 3))


def skewed(curve):
    r = curve.r
    edges = [0, 1, 2, r - 1, r - 2, r // 2, r // 2 + 1, 1 << 128, (1 << 200) - 1, (1 << 16) - 1, 1 << 15]
    draw = random.Random(7)
    return {
        "zeros": lambda: 0,
        "ones": lambda: 1,
        "minus one": lambda: r - 1,
        "edges": lambda: draw.choice(edges),
        "nine tenths bits": lambda: draw.randrange(2) if draw.random() < 0.9 else draw.randrange(r),
        "few": lambda: draw.choice([r // 3, r // 7, 12345]),
        "equal": lambda: r // 5,
        "powers of two": lambda: 1 << draw.randrange(r.bit_length() - 1),
    }


@pytest.mark.parametrize(
    "kind", ["zeros", "ones", "minus one", "edges", "nine tenths bits", "few", "equal", "powers of two"]
)
@pytest.mark.parametrize("passes", [0, 3])
def test_skewed_scalars(bench, curve, kind, passes):
    scalar = skewed(curve)[kind]
    bench.check([scalar() for _ in range(5000)], random_points(5000), Tuning(9, passes))


@pytest.mark.parametrize("pattern", [[0], [0, ~0], [0, 0, 1], [None], [None, 0]])
@pytest.mark.parametrize("kind", ["random", "equal", "ones"])
@pytest.mark.parametrize("passes", [0, 3])
def test_equal_and_opposite_points_meet_in_buckets(bench, curve, pattern, kind, passes):
    n = 2000
    scalars = {"random": random_scalars(curve, n), "equal": [curve.r // 5] * n, "ones": [1] * n}[kind]
    bench.check(scalars, [pattern[i % len(pattern)] for i in range(n)], Tuning(8, passes))
