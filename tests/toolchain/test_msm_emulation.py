"""The MSM's kernels and their launches, run on the CPU thread by thread, against the oracle.

`native/grid_emulator.h` stands for the GPU: what is launched here is the kernels' own source, in the order
that `prover.backends.cuda_msm` gives.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from prover.backends import cuda_msm, msm_plan
from prover.backends.cuda_msm import Msm
from prover.backends.msm_plan import Grid, Tuning
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.params import BLS12_381, BN254
from prover.reference import g1, g2
from prover.scalars import encode_scalars

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path(__file__).parent / "native"
ALL_TABLES = 256
SMALL_GRID = Grid(pair=2 * cuda_msm.BLOCK, accumulate=3 * cuda_msm.BLOCK)
"""Few threads, so that each has several steps even here."""


class HostMemory:
    """As `prover.backends.cuda_device.Buffer`, filled with garbage and aligned alike."""

    def __init__(self, ptr: int, nbytes: int, owner: object) -> None:
        self.ptr, self.nbytes, self._owner = ptr, nbytes, owner

    @classmethod
    def holding(cls, data: bytes, nbytes: int | None = None) -> HostMemory:
        size = max(len(data), nbytes or 0)
        room = np.full(size + 256, 0xA5, np.uint8)
        start = -room.ctypes.data % 256
        room[start : start + len(data)] = np.frombuffer(data, np.uint8)
        return cls(room.ctypes.data + start, size, room)

    def part(self, offset: int, nbytes: int) -> HostMemory:
        assert offset >= 0 and nbytes >= 0 and offset + nbytes <= self.nbytes
        return HostMemory(self.ptr + offset, nbytes, self._owner)

    def fill(self, byte: int, _stream: object) -> None:
        ctypes.memset(self.ptr, byte, self.nbytes)

    def read(self) -> bytes:
        return ctypes.string_at(self.ptr, self.nbytes)


class Emulation:
    """One group's MSM on the emulator."""

    def __init__(self, library: ctypes.CDLL, curve, group) -> None:
        self.library, self.curve = library, curve
        self.group = g1(curve) if group == "g1" else g2(curve)
        self.encode, self.decode = (encode_g1, decode_g1) if group == "g1" else (encode_g2, decode_g2)
        self.msm = Msm(curve, group, self.find, multiprocessors=1)
        self.msm.grid = SMALL_GRID
        draw = random.Random(5)
        generator = curve.generator_g1 if group == "g1" else curve.generator_g2
        points = [self.group.multiply(draw.randrange(curve.r), generator) for _ in range(10)]
        self.pool = [*points, *(self.group.negate(p) for p in points[:4]), None]

    def find(self, name: str):
        entry = ctypes.cast(getattr(self.library, f"emulated_{name}"), ctypes.c_void_p)

        def launch(grid, block, args, _stream, *, shared=0):
            slots = [a.ptr if isinstance(a, HostMemory) else int(a) for a in args]
            self.library.emulate(entry, grid, block, shared, (ctypes.c_uint64 * len(slots))(*slots))

        return launch

    def run(self, scalars, points, tuning: Tuning, max_tables: int):
        n = len(scalars)
        shape = msm_plan.shape(self.curve, n, tuning, max_tables)
        data = b"".join(self.encode(self.curve, p) for p in points)
        table = HostMemory.holding(data, self.msm.table_bytes(shape))
        scratch = HostMemory.holding(b"", self.msm.table_scratch_bytes(shape))
        bases = self.msm.build(shape, table, scratch, None)
        workspace = HostMemory.holding(b"", self.msm.workspace_bytes(shape))
        out = HostMemory.holding(b"", self.msm.point_bytes)
        self.msm.run(bases, HostMemory.holding(encode_scalars(scalars).tobytes()), workspace, out, None)
        return self.decode(self.curve, out.read())

    def check(self, scalars, points, tuning: Tuning, max_tables: int = ALL_TABLES) -> None:
        assert self.run(scalars, points, tuning, max_tables) == self.group.msm(scalars, points)


@pytest.fixture(scope="module", params=[BN254, BLS12_381], ids=lambda c: c.name)
def curve(request):
    return request.param


@pytest.fixture(scope="module", params=["g1", "g2"])
def emulation(request, curve, tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.fail("no C++ compiler")
    group = request.param
    out = tmp_path_factory.mktemp("emulation") / f"msm_{group}_{curve.name}.so"
    flags = ["-x", "c++", "-O1", "-std=c++17", "-shared", "-fPIC"]
    defines = [
        "-DFRESHPROOF_EMULATE_PTX",
        "-DFRESHPROOF_EMULATED_GRID",
        f'-DMSM_SORT_SOURCE="kernels_msm_sort_{curve.name}.cu"',
        f'-DMSM_GROUP_SOURCE="kernels_msm_{group}_{curve.name}.cu"',
    ]
    source = NATIVE / "msm_emulation.cu"
    include = ["-I", str(ROOT / "cuda_src"), "-I", str(NATIVE)]
    subprocess.run([compiler, *flags, *defines, *include, str(source), "-o", str(out)], check=True)
    return Emulation(ctypes.CDLL(str(out)), curve, group)


def scalars_of(curve, kind: str, n: int) -> list[int]:
    draw, r = random.Random(f"{kind} {n}"), curve.r
    edges = [0, 1, 2, r - 1, r - 2, r // 2, r // 2 + 1, 1 << 128, (1 << 200) - 1, (1 << 16) - 1, 1 << 15]
    kinds = {
        "random": lambda: draw.randrange(r),
        "edges": lambda: draw.choice(edges),
        "bits": lambda: draw.randrange(2),
        "zeros": lambda: 0,
        "few": lambda: [r // 3, r // 5, 7][draw.randrange(3)],
    }
    if kind == "equal":
        return [draw.randrange(r)] * n
    return [kinds[kind]() for _ in range(n)]


SHAPES = [
    (1, "random", Tuning(6, 0), ALL_TABLES),
    (2, "edges", Tuning(6, 3), ALL_TABLES),
    (3, "random", Tuning(6, 0), 1),
    (40, "random", Tuning(5, 3), ALL_TABLES),
    (40, "edges", Tuning(8, 0), 1),
    (33, "equal", Tuning(7, 3), 2),
    (50, "zeros", Tuning(6, 1), ALL_TABLES),
    (64, "bits", Tuning(9, 2), 3),
    (90, "random", Tuning(4, 1), ALL_TABLES),
    (60, "edges", Tuning(13, 1), ALL_TABLES),
    (48, "few", Tuning(6, 4), 5),
    (20, "random", Tuning(2, 2), 30),
]


@pytest.mark.parametrize(("n", "kind", "tuning", "tables"), SHAPES)
def test_lengths_windows_tables_and_passes(emulation, n, kind, tuning, tables):
    draw = random.Random(n)
    points = [draw.choice(emulation.pool) for _ in range(n)]
    emulation.check(scalars_of(emulation.curve, kind, n), points, tuning, tables)


@pytest.mark.parametrize("kind", ["random", "equal", "bits"])
@pytest.mark.parametrize("passes", [0, 3])
def test_equal_and_opposite_points_meet_in_buckets(emulation, kind, passes):
    point, other = emulation.pool[:2]
    scalars = scalars_of(emulation.curve, kind, 24)
    for pattern in ([point], [point, emulation.group.negate(point)], [point, point, other], [None]):
        points = [pattern[i % len(pattern)] for i in range(24)]
        emulation.check(scalars, points, Tuning(6, passes))


def test_no_points(emulation):
    shape = msm_plan.shape(emulation.curve, 0, Tuning(6, 0), 1)
    table = HostMemory.holding(b"", emulation.msm.table_bytes(shape))
    bases = emulation.msm.build(shape, table, table, None)
    out = HostMemory.holding(b"", emulation.msm.point_bytes)
    emulation.msm.run(bases, table, table, out, None)
    assert emulation.decode(emulation.curve, out.read()) is None


def test_a_workspace_too_small_is_refused(emulation):
    shape = msm_plan.shape(emulation.curve, 8, Tuning(6, 0), 1)
    table = HostMemory.holding(b"", emulation.msm.table_bytes(shape))
    bases = cuda_msm.Bases(shape, table, table)
    small = HostMemory.holding(b"", emulation.msm.workspace_bytes(shape) - 1)
    with pytest.raises(ValueError, match="workspace"):
        emulation.msm.run(bases, table, small, table, None)


@pytest.mark.parametrize("passes", [1, 3])
def test_blocks_claim_several_shares(emulation, passes, monkeypatch):
    monkeypatch.setattr(msm_plan, "BATCH", 8)
    monkeypatch.setattr(msm_plan, "LEAST_BATCH", 8)
    tuning, n = Tuning(3, passes), 80
    made = msm_plan.shape(emulation.curve, n, tuning, ALL_TABLES)
    assert msm_plan.least_batch(made, SMALL_GRID) == 8
    draw = random.Random(n)
    points = [draw.choice(emulation.pool) for _ in range(n)]
    emulation.check(scalars_of(emulation.curve, "random", n), points, tuning)
