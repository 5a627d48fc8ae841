"""How a transform over Fr is cut into passes, and the tables that the passes read. No GPU is needed here.

The passes and the layout of their tables are those of ``cuda_src/kernels/ntt_index.cuh``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prover.scalars import encode_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from prover.params import Curve

CONSTANT_BYTES = 64
"""A constant to multiply by: w and floor(w 2^256 / r)."""
MIN_BITS = 3
"""Fewer bits than this are transformed by the definition, by one thread."""
MAX_BITS = 9
"""A pass transforms columns of at most 2^9 points: two of them fill a tile."""
MAX_LOG_N = 27
"""Three passes of 2^9."""


@dataclass(frozen=True, slots=True)
class FactorTable:
    """Factors that a pass multiplies its inputs by: entry q + 2^log_f r, r < 2^bits.

    With g the root of order 2n: scale * g^(alpha q r + beta k) for entry k; ``scaled``: scale = 1/n, else 1.
    """

    bits: int
    log_f: int
    alpha: int
    beta: int
    scaled: bool

    @property
    def log_entries(self) -> int:
        """There are 2^log_entries entries."""
        return self.log_f + self.bits

    @property
    def nbytes(self) -> int:
        """64 bytes an entry, eight entries at least."""
        return CONSTANT_BYTES << max(3, self.log_entries)


@dataclass(frozen=True, slots=True)
class Pass:
    """One launch: columns of 2^bits points, sub-transforms of 2^log_s so far."""

    bits: int
    log_s: int
    flip: bool
    table: FactorTable | None


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block of a pass works on, as ``Tile`` in ``ntt_index.cuh``."""

    columns: int
    threads: int
    shared_bytes: int

    @classmethod
    def of(cls, bits: int) -> Tile:
        """The tile of a pass of 2^bits points."""
        rows = 1 << bits
        columns = 1024 // rows
        shared = 2 * 16 * (rows + rows // 8) * columns if bits > MIN_BITS else 0
        return cls(columns, rows // 8 * columns, shared)


SPLITS = {20: (8, 8, 4), 22: (8, 8, 6)}
"""Lengths for which another split was faster: by 3 % at 2^20, 1 % at 2^22 (benchmarks/NOTES.md)."""


def split(log_n: int) -> tuple[int, ...]:
    """The bits of each pass, the larger first: as few passes as possible, mostly of nearly equal size.

    Raises `ValueError` beyond 2^27, the largest domain of BN254.
    """
    if not 0 <= log_n <= MAX_LOG_N:
        raise ValueError(f"a transform of 2^{log_n} points: the exponent must be in 0..{MAX_LOG_N}")
    if log_n in SPLITS:
        return SPLITS[log_n]
    count = max(1, -(-log_n // MAX_BITS))
    return tuple((log_n + count - 1 - i) // count for i in range(count))


def forward(log_n: int, bits: Sequence[int] | None = None) -> tuple[Pass, ...]:
    """Coefficients -> values on the domain, natural order both. ``bits`` overrides `split`."""
    passes, log_s = [], 0
    for width in bits or split(log_n):
        table = None
        if log_s > 0:
            table = FactorTable(width, log_s, 2 << (log_n - log_s - width), beta=0, scaled=False)
        passes.append(Pass(width, log_s, flip=False, table=table))
        log_s += width
    if log_s != log_n:
        raise ValueError(f"passes of {bits} bits do not make 2^{log_n} points")
    return tuple(passes)


def inverse(log_n: int, bits: Sequence[int] | None = None) -> tuple[Pass, ...]:
    """Values -> coefficients: the forward transform of the inputs in reverse order, times 1/n.

    1/n goes into the factors of the second pass, the smallest table there is, or else into the only pass.
    """
    first, *rest = _flipped(forward(log_n, bits))
    if not rest:
        return (replace(first, table=FactorTable(first.bits, 0, 0, 0, scaled=True)),)
    second = rest[0]
    assert second.table is not None
    return (first, replace(second, table=replace(second.table, scaled=True)), *rest[1:])


def to_coset(log_n: int, bits: Sequence[int] | None = None) -> tuple[Pass, ...]:
    """Values on the domain -> values at the odd powers of the root of order 2n.

    The coefficients are multiplied by g^k / n as the second transform reads them: one multiplication for the
    shift and the scale together.
    """
    first, *rest = forward(log_n, bits)
    shift = FactorTable(first.bits, log_n - first.bits, alpha=0, beta=1, scaled=True)
    return (*_flipped(forward(log_n, bits)), replace(first, table=shift), *rest)


def _flipped(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    return (replace(passes[0], flip=True), *passes[1:])


def tables(passes: Sequence[Pass]) -> tuple[FactorTable, ...]:
    """The different tables that some passes read."""
    return tuple(dict.fromkeys(p.table for p in passes if p.table is not None))


@dataclass(frozen=True, slots=True)
class PowerTables:
    """Powers of the root g of order 2n: g^e = low[e mod 2^log_low] high[e >> log_low], Montgomery form."""

    low: NDArray[np.uint8]
    high: NDArray[np.uint8]
    log_low: int
    one: NDArray[np.uint8]
    one_over_n: NDArray[np.uint8]


def power_tables(curve: Curve, log_n: int) -> PowerTables:
    """The two short tables for domain size 2^log_n, of about the root of 2n entries each."""
    g, r = curve.root_of_unity(log_n + 1), curve.r
    log_low = (log_n + 2) // 2
    low = _powers(g, 1 << log_low, r)
    high = _powers(pow(g, 1 << log_low, r), 1 << (log_n + 1 - log_low), r)
    one_over_n = pow(1 << log_n, -1, r)
    return PowerTables(
        montgomery(curve, low),
        montgomery(curve, high),
        log_low,
        montgomery(curve, [1]),
        montgomery(curve, [one_over_n]),
    )


def direct_roots(curve: Curve, log_n: int) -> NDArray[np.uint8]:
    """w^j, j < n, for a transform by the definition; Montgomery form."""
    return montgomery(curve, _powers(curve.root_of_unity(log_n), 1 << log_n, curve.r))


def round_twiddles(curve: Curve, bits: int) -> NDArray[np.uint8]:
    """The twiddles of the rounds inside a pass of 2^bits points; layout: ``round_entry``, ``table_piece``.

    For each round after the first, with sub-transforms of length s and radix 2^b: w_(s 2^b)^(q k) for k in
    1 .. 2^b - 1, q < s.
    """
    values = []
    for log_s in range(3, bits, 3):
        radix_bits = min(3, bits - log_s)
        root = curve.root_of_unity(log_s + radix_bits)
        for k in range(1, 1 << radix_bits):
            values += _powers(pow(root, k, curve.r), 1 << log_s, curve.r)
    return constants(curve, values)


def constants(curve: Curve, values: Sequence[int]) -> NDArray[np.uint8]:
    """A table of constants, a multiple of eight, as ``table_piece`` lays them out."""
    words = encode_scalars(values)
    quotients = encode_scalars([(w << 256) // curve.r for w in values])
    pieces = np.concatenate([words, quotients], axis=1).reshape(-1, 8, 4, 16)
    return np.ascontiguousarray(pieces.transpose(0, 2, 1, 3)).reshape(-1)


def montgomery(curve: Curve, values: Sequence[int]) -> NDArray[np.uint8]:
    """(len, 32): the Montgomery form of Fr elements."""
    radix = curve.radix_r
    return encode_scalars([v * radix % curve.r for v in values])


def _powers(base: int, count: int, r: int) -> list[int]:
    out, power = [], 1
    for _ in range(count):
        out.append(power)
        power = power * base % r
    return out
