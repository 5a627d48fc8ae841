"""Sparse products and the quotient on the GPU against the oracle."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends.sparse_plan import ROW_LIMIT, SEGMENT, compressed_rows, most_bytes
from prover.formats.zkey import COEF
from prover.scalars import decode_scalars, encode_scalars

pytestmark = pytest.mark.gpu

N = 16
WIRES = 50
SHAPES = {
    "empty": {},
    "one entry": {(1, 15): 1},
    "around the limit": {(m, i): ROW_LIMIT + i - 2 for m in (0, 1) for i in range(5)},
    "around a segment": {
        (0, 1): SEGMENT - 1,
        (1, 1): SEGMENT,
        (0, 15): SEGMENT + 1,
        (1, 0): 127,
        (0, 0): 129,
    },
    "a very long row": {(0, 3): 20 * SEGMENT + 7, (1, 3): 2, (1, 7): 33},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_products_agree_with_the_oracle(curve, load_module, memory, stream, shape):
    from prover.backends.cuda_sparse import SparseProducts
    from prover.backends.cuda_staging import Staging

    r, draw = curve.r, random.Random(shape)
    witness = [1, 0, r - 1, r - 2, *(draw.randrange(r) for _ in range(WIRES - 4))]
    places = [place for place, count in SHAPES[shape].items() for _ in range(count)]
    draw.shuffle(places)
    entries = [
        (m, i, draw.randrange(WIRES), draw.choice((0, 1, r - 1, draw.randrange(r)))) for m, i in places
    ]
    coefs = np.zeros(len(entries), COEF)
    expected = [[0] * N, [0] * N]
    for k, (m, i, wire, value) in enumerate(entries):
        double = value * curve.radix_r**2 % r
        coefs[k] = (m, i, wire, encode_scalars([double])[0])
        expected[m][i] = (expected[m][i] + value * witness[wire]) % r
    rows = compressed_rows(coefs, N)
    room = memory.allocate(most_bytes(len(coefs), N), "the matrices")
    sparse = SparseProducts(load_module(f"cuda-fr-{curve.name}"), rows, N, room, Staging(), stream)
    wires = memory.allocate(32 * WIRES, "witness")
    wires.upload(encode_scalars(witness), stream)
    out = memory.allocate(2 * N * 32, "products")
    out.fill(0xEE, stream)
    sparse.run(wires, out, stream)
    plain = pow(curve.radix_r, -1, r)
    got = [v * plain % r for v in decode_scalars(out.download(stream).reshape(-1, 32))]
    assert [got[:N], got[N:]] == expected


@pytest.mark.parametrize("count", [1, 127, 1000, 300_000])
def test_multiply_and_quotient(curve, gpu, load_module, memory, stream, count):
    r, draw = curve.r, random.Random(count)
    edges = [0, 1, r - 1, r - 2]
    rows = min(count, 1000)
    vectors = [
        [draw.choice(edges) if draw.random() < 0.3 else draw.randrange(r) for _ in range(rows)] for _ in "abc"
    ]
    repeats = -(-count // rows)
    buffers = []
    for values in vectors:
        words = encode_scalars([v * curve.radix_r % r for v in values])
        buffers.append(memory.allocate(32 * count, "vector"))
        buffers[-1].upload(np.tile(words, (repeats, 1))[:count].copy(), stream)
    product = memory.allocate(32 * count, "product")
    module = load_module(f"cuda-fr-{curve.name}")
    module.kernel("fr_multiply")(64, 128, (product, *buffers[:2], np.uint32(count)), stream)
    module.kernel("fr_quotient")(64, 128, (buffers[0], *buffers, np.uint32(count)), stream)
    a, b, c = vectors
    plain = pow(curve.radix_r, -1, r)
    times = [v * plain % r for v in decode_scalars(product.download(stream).reshape(-1, 32))]
    h = decode_scalars(buffers[0].download(stream).reshape(-1, 32))
    expected = [(x * y % r, (x * y - z) % r) for x, y, z in zip(a, b, c, strict=True)] * repeats
    assert list(zip(times, h, strict=True)) == expected[:count]
