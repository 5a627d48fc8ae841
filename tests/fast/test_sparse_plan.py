"""Compressed rows of a key's matrices, with long rows cut into segments."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends.sparse_plan import ROW_LIMIT, SEGMENT, compressed_rows, most_bytes
from prover.formats.zkey import COEF


def entries(triples):
    coefs = np.zeros(len(triples), COEF)
    for k, (matrix, row, wire) in enumerate(triples):
        coefs[k] = (matrix, row, wire, np.frombuffer((1000 + k).to_bytes(32, "little"), np.uint8))
    return coefs


def whole(column, pieces):
    """All bytes of a column, made in pieces of so many items."""
    out = np.full(column.nbytes, 0xA5, np.uint8)
    step = pieces * column.items.dtype.itemsize
    for start in range(0, len(out), step):
        column.fill(start, out[start : start + step])
    return out


def products(rows, n, witness, pieces):
    """What the kernels compute, in integers: short rows whole, long rows by segments."""
    values = [int.from_bytes(v.tobytes(), "little") for v in whole(rows.values, pieces).reshape(-1, 32)]
    wires = whole(rows.wires, pieces).view(np.uint32).tolist()

    def total(start, end):
        return sum(values[k] * witness[wires[k]] for k in range(start, end))

    out = [[None] * n, [None] * n]
    for m in range(2 * n):
        start, end = int(rows.starts[m]), int(rows.starts[m + 1])
        if end - start <= ROW_LIMIT:
            out[m % 2][m // 2] = total(start, end)
    segments = [total(int(s), int(e)) for s, e in zip(rows.segment_starts, rows.segment_ends, strict=True)]
    for k, m in enumerate(rows.long_rows):
        first, end = rows.first_segments[k : k + 2]
        assert out[m % 2][m // 2] is None
        out[m % 2][m // 2] = sum(segments[first:end])
    return out


@pytest.mark.parametrize(
    "lengths",
    [
        {},
        {(0, 0): 1},
        {(1, 3): ROW_LIMIT, (0, 3): ROW_LIMIT + 1},
        {(0, 1): SEGMENT, (0, 2): SEGMENT + 1, (1, 2): 3 * SEGMENT, (1, 0): 2},
        {(m, i): (7 * i + m) % 50 for m in (0, 1) for i in range(4)},
    ],
)
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_rows_in_any_order_give_the_products(lengths, order):
    n, draw = 4, random.Random(3)
    triples = [(m, i, draw.randrange(9)) for (m, i), count in lengths.items() for _ in range(count)]
    if order == "shuffled":
        draw.shuffle(triples)
    coefs = entries(triples)
    witness = [draw.randrange(1 << 40) for _ in range(9)]
    expected = [[0] * n, [0] * n]
    for matrix, row, wire, value in coefs:
        expected[matrix][row] += int.from_bytes(value.tobytes(), "little") * witness[wire]
    for pieces in (1, 7, 10**6):
        assert products(compressed_rows(coefs, n), n, witness, pieces) == expected


def test_no_segment_is_empty_or_too_long():
    rows = compressed_rows(entries([(0, 2, 0)] * (2 * SEGMENT + 5)), 4)
    sizes = rows.segment_ends.astype(int) - rows.segment_starts
    assert sizes.tolist() == [SEGMENT, SEGMENT, 5]


@pytest.mark.parametrize("n", [1, 4, 64])
@pytest.mark.parametrize("lengths", [[], [1], [33] * 8, [32] * 4, [1025, 33], [1024], [5000], [33, 0, 2048]])
def test_the_memory_reserved_before_the_rows_are_known_suffices(n, lengths):
    triples = [(row % 2, row // 2 % n, 0) for row, length in enumerate(lengths) for _ in range(length)]
    rows = compressed_rows(entries(triples), n)
    assert rows.nbytes <= most_bytes(len(triples), n)
