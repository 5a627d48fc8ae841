"""Transforms, sparse products and element-wise operations of the host library against the oracle."""

from __future__ import annotations

import random

import numpy as np
import pytest

from orchestrator.errors import BrokenRun
from prover.formats.zkey import COEF
from prover.reference import intt, ntt
from prover.scalars import decode_scalars, encode_scalars

pytestmark = pytest.mark.toolchain

SMALL = [0, 1, 2, 3, 4, 7]
BLOCKED = [11, 12, 14]  # cut into blocks and passes, of one and of two stages


def residues(curve, n, seed):
    draw = random.Random(seed)
    edges = (0, 1, curve.r - 1, curve.r - 2)
    return [draw.choice(edges) if draw.random() < 0.2 else draw.randrange(curve.r) for _ in range(n)]


def vector(values):
    """An array that the library may write to: aligned to 16 bytes."""
    rows = encode_scalars(values)
    room = np.empty(rows.size + 16, np.uint8)
    start = -room.ctypes.data % 16
    out = room[start : start + rows.size].reshape(rows.shape)
    out[:] = rows
    return out


def in_montgomery(curve, values):
    return vector([v * curve.radix_r % curve.r for v in values])


def from_montgomery(curve, rows):
    down = pow(curve.radix_r, -1, curve.r)
    return [v * down % curve.r for v in decode_scalars(rows)]


def tables(arithmetic, log_n):
    out = vector([0] * (2 << log_n))
    arithmetic.library.call("domain", out, log_n, arithmetic.threads)
    return out


def transformed(arithmetic, values, log_n, inverse):
    rows = in_montgomery(arithmetic.curve, values)
    arithmetic.library.call("ntt", rows, log_n, tables(arithmetic, log_n), inverse, arithmetic.threads)
    return from_montgomery(arithmetic.curve, rows)


def on_coset(curve, values, log_n):
    """By definition: interpolate, scale by powers of the double domain's generator, evaluate."""
    r, shift = curve.r, curve.root_of_unity(log_n + 1)
    shifted = [c * pow(shift, i, r) % r for i, c in enumerate(intt(values, curve.root_of_unity(log_n), r))]
    return ntt(shifted, curve.root_of_unity(log_n), r)


@pytest.mark.parametrize("log_n", SMALL)
def test_transforms(arithmetic, log_n):
    curve = arithmetic.curve
    root, values = curve.root_of_unity(log_n), residues(curve, 1 << log_n, log_n)
    assert transformed(arithmetic, values, log_n, 0) == ntt(values, root, curve.r)
    assert transformed(arithmetic, values, log_n, 1) == intt(values, root, curve.r)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("log_n", BLOCKED)
def test_large_transforms(host, log_n, threads):
    host.threads = threads
    root, values = host.curve.root_of_unity(log_n), residues(host.curve, 1 << log_n, log_n)
    assert transformed(host, values, log_n, 0) == ntt(values, root, host.curve.r)
    assert transformed(host, values, log_n, 1) == intt(values, root, host.curve.r)


@pytest.mark.parametrize("log_n", SMALL)
def test_change_of_domain(arithmetic, log_n):
    curve = arithmetic.curve
    values = residues(curve, 1 << log_n, 30 + log_n)
    rows = in_montgomery(curve, values)
    arithmetic.library.call("to_coset", rows, log_n, tables(arithmetic, log_n), arithmetic.threads)
    assert from_montgomery(curve, rows) == on_coset(curve, values, log_n)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("log_n", BLOCKED)
def test_large_change_of_domain(host, log_n, threads):
    values = residues(host.curve, 1 << log_n, log_n)
    rows = in_montgomery(host.curve, values)
    host.library.call("to_coset", rows, log_n, tables(host, log_n), threads)
    assert from_montgomery(host.curve, rows) == on_coset(host.curve, values, log_n)


def test_a_domain_without_a_double_is_refused(host):
    with pytest.raises(BrokenRun):
        host.library.call("domain", vector([0, 0]), host.curve.two_adicity, 1)


def test_an_unaligned_vector_is_refused(host):
    odd = np.zeros(33 + 16, np.uint8)
    start = -odd.ctypes.data % 16 + 1
    with pytest.raises(BrokenRun):
        host.library.call("domain", odd[start:], 0, 1)


@pytest.mark.parametrize("n", [0, 1, 5, 4097])
def test_products_and_quotients(arithmetic, n):
    curve, r = arithmetic.curve, arithmetic.curve.r
    a, b, c = (residues(curve, n, seed) for seed in (1, 2, 3))
    x, y, z = (in_montgomery(curve, v) for v in (a, b, c))
    out = vector([0] * n)
    arithmetic.library.call("multiply", x, y, out, n, arithmetic.threads)
    assert from_montgomery(curve, out) == [i * j % r for i, j in zip(a, b, strict=True)]
    arithmetic.library.call("quotient", x, y, z, x, n, arithmetic.threads)
    assert decode_scalars(x) == [(i * j - k) % r for i, j, k in zip(a, b, c, strict=True)]


def entries_of(curve, triples):
    """Entries as in a key: coefficient * R^2."""
    out = np.zeros(len(triples), COEF)
    square = curve.radix_r * curve.radix_r
    for at, (matrix, row, wire, value) in enumerate(triples):
        out[at] = (matrix, row, wire, encode_scalars([value * square % curve.r])[0])
    return out


def sorted_entries(host, entries, domain):
    order, starts = np.zeros(len(entries), np.uint32), np.zeros(2 * domain + 1, np.uint32)
    host.library.call("sort_entries", entries, len(entries), domain, order, starts)
    return order, starts


@pytest.mark.parametrize("threads", [1, 3])
def test_sparse_products(host, threads):
    """Entries in any order, rows with none and with many, 0 and 1 among the wires, several slices of rows."""
    curve, r, draw = host.curve, host.curve.r, random.Random(3)
    domain, wires = 8192, 40
    w = [1, *residues(curve, wires - 1, 4)]
    triples = [
        (draw.randrange(2), draw.choice((0, 5, 4095, 4096, 8191)), draw.randrange(wires), draw.randrange(r))
        for _ in range(600)
    ]
    want = [[0] * domain, [0] * domain]
    for matrix, row, wire, value in triples:
        want[matrix][row] = (want[matrix][row] + value * w[wire]) % r
    entries = entries_of(curve, triples)
    order, starts = sorted_entries(host, entries, domain)
    a, b = vector([7] * domain), vector([7] * domain)
    host.library.call(
        "sparse_products", entries, order, starts, domain, encode_scalars(w), wires, a, b, threads
    )
    assert [from_montgomery(curve, a), from_montgomery(curve, b)] == want


def test_no_entries_give_zero_rows(host):
    entries = entries_of(host.curve, [])
    order, starts = sorted_entries(host, entries, 4)
    a, b = vector([7] * 4), vector([7] * 4)
    host.library.call("sparse_products", entries, order, starts, 4, encode_scalars([1]), 1, a, b, 2)
    assert decode_scalars(a) == decode_scalars(b) == [0] * 4


@pytest.mark.parametrize("entry", [(2, 0, 0, 1), (0, 4, 0, 1), (1, 2**32 - 1, 0, 1)])
def test_an_entry_out_of_range_is_refused(host, entry):
    with pytest.raises(BrokenRun):
        sorted_entries(host, entries_of(host.curve, [entry]), 4)


def test_a_wire_out_of_range_is_refused(host):
    entries = entries_of(host.curve, [(0, 1, 2, 1)])
    order, starts = sorted_entries(host, entries, 4)
    a, b = vector([0] * 4), vector([0] * 4)
    with pytest.raises(BrokenRun):
        host.library.call("sparse_products", entries, order, starts, 4, encode_scalars([1, 2]), 2, a, b, 2)
