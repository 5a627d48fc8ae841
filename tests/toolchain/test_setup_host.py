"""The setup kernels' mathematics, run on the CPU, against the oracle."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from prover.formats.points import encode_g1, encode_g2
from prover.params import BLS12_381, BN254
from prover.reference import g1, g2
from prover.scalars import encode_scalars

pytestmark = pytest.mark.toolchain

CURVES = (BN254, BLS12_381)
ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "native" / "setup_host.cu"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.fail("no C++ compiler")
    out = tmp_path_factory.mktemp("setup") / "setup_host.so"
    flags = ["-x", "c++", "-O2", "-std=c++17", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-I", str(ROOT / "cuda_src"), str(SOURCE), "-o", str(out)], check=True)
    return ctypes.CDLL(str(out))


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("threads", [1, 3, 64])
def test_multiples_of_the_generator(library, curve, group, threads):
    draw = random.Random(group)
    scalars = [
        0,
        1,
        2,
        255,
        256,
        257,
        curve.r - 1,
        curve.r - 2,
        0,
        *(draw.randrange(curve.r) for _ in range(6)),
    ]
    reference, encode, width, generator = (
        (g1(curve), encode_g1, curve.g1_bytes, curve.generator_g1)
        if group == 1
        else (g2(curve), encode_g2, curve.g2_bytes, curve.generator_g2)
    )
    point = np.frombuffer(encode(curve, generator), np.uint8).copy()
    out = np.full((len(scalars), width), 0xEE, np.uint8)
    words = encode_scalars(scalars).copy()
    library.setup_multiples(
        CURVES.index(curve),
        group,
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_void_p(words.ctypes.data),
        ctypes.c_void_p(point.ctypes.data),
        len(scalars),
        threads,
    )
    assert [row.tobytes() for row in out] == [
        encode(curve, reference.multiply(k, generator)) for k in scalars
    ]
