"""What the work on a GPU costs at least, what it should take, and what others take for it.

A cost is a count of 32-bit multiply-adds (a wide one counts two) and one of bytes moved to and from the GPU's
memory; the floor is the time of the first alone, at the rate that was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prover.backends.msm_plan import Group, Shape
    from prover.backends.ntt_plan import Pass

MULTIPLY_RATE = 16.4e12
"""Multiply-adds a second that chains reach on an H200: measured."""
BANDWIDTH = 4.3e12
"""Bytes a second, read and written, of a copy within its memory: measured."""

ALL_TABLES = 256
"""More than any tuning asks for."""
SCALARS: Mapping[str, str] = {
    "dense": "random below r",
    "binary": "nine tenths 0 or 1",
    "sparse": "nine tenths 0",
    "equal": "all the same",
    "few": "four values",
    "ones": "2^k - 1, every k",
}
"""What an MSM may be asked to sum with."""

ADDITION_COST: Mapping[tuple[str, Group], tuple[int, int, int]] = {
    ("bn254", "g1"): (1547, 2432, 3500),
    ("bls12_381", "g1"): (3445, 5408, 7796),
    ("bn254", "g2"): (4050, 6700, 9500),
    ("bls12_381", "g2"): (8850, 14640, 20750),
}
"""Multiply-adds of a pairing, of a mixed and of a full XYZZ addition, counted in the machine code."""
PRODUCT_COST: Mapping[str, tuple[int, int]] = {"bn254": (214, 166), "bls12_381": (186, 132)}
"""Multiply-adds of a product in Fr with any constant, and with the square root of -1 (`ntt_shoup.cuh`)."""

MSM_GOAL_MS: Mapping[tuple[str, str], Mapping[int, float]] = {
    ("bls12_381", "g1"): {20: 9, 22: 28, 24: 95, 26: 360},
    ("bls12_381", "g2"): {20: 22, 22: 68},
    ("bn254", "g1"): {20: 5, 22: 14, 24: 48},
    ("bn254", "g2"): {20: 11},
}
"""log2 of n: what a resident MSM over random scalars should take on an H200."""
MSM_PEER_MS: Mapping[tuple[str, str], Mapping[int, float]] = {
    ("bls12_381", "g1"): {16: 5.3, 18: 7.6, 20: 16.4, 22: 43.8, 24: 147.7, 26: 555.7},
    ("bls12_381", "g2"): {16: 7.2, 18: 14.9, 20: 38.3, 22: 117.4},
    ("bn254", "g1"): {20: 8.6, 22: 22.8, 24: 75.1},
    ("bn254", "g2"): {20: 18.7},
}
"""sppark 17278d7 with its best window width, measured on the same kind of card: resident, without tables."""
NTT_GOAL_MS: Mapping[str, Mapping[int, float]] = {"bls12_381": {20: 0.21, 24: 3.7, 26: 16.5}}
NTT_PEER_MS: Mapping[str, Mapping[int, float]] = {"bls12_381": {20: 0.278, 22: 1.125, 24: 4.75, 26: 23.8}}
"""sppark, as above: forward, natural order in and out."""
PROOF_GOAL_MS: Mapping[str, float] = {
    "synthetic-18-bls12_381": 30, "synthetic-18-bls12_381-bits": 20,
    "synthetic-20-bls12_381": 80, "synthetic-20-bls12_381-bits": 45,
    "synthetic-22-bls12_381": 240, "synthetic-22-bls12_381-bits": 130,
    "synthetic-20-bls12_381-cold": 2500, "synthetic-24-bls12_381": 750,
}  # fmt: skip
"""Of a workload: from the witness in host memory, or from the key file, to the proof."""
PROOF_PEER_MS: Mapping[str, float] = {
    "synthetic-18-bls12_381": 108, "synthetic-18-bls12_381-bits": 63,
    "synthetic-20-bls12_381": 171, "synthetic-20-bls12_381-bits": 121,
    "synthetic-22-bls12_381": 536, "synthetic-22-bls12_381-bits": 340,
}  # fmt: skip
"""supra_seal c2ff1ac with its G2 sums moved to the GPU, a, b and c given, on the same kind of card."""


def msm_multiplies(curve: str, group: Group, shape: Shape) -> int:
    """Of an MSM over dense scalars."""
    pairing, mixed, full = ADDITION_COST[curve, group]
    paired = shape.entries - shape.accumulated
    return paired * pairing + shape.accumulated * mixed + 2 * shape.buckets * full


def msm_bytes(shape: Shape, point_bytes: int) -> int:
    """Of an MSM over dense scalars, nothing kept in a cache.

    The sort reads the scalars twice, and writes and reads each pair of bucket and entry; an addition reads
    two points and writes one, and a pairing writes and reads a product of half a point besides.
    """
    paired = shape.entries - shape.accumulated
    sort = 64 * shape.n + 2 * 6 * shape.pairs + 2 * 4 * shape.entries
    pairing = paired * (4 * point_bytes)
    sums = 2 * point_bytes * shape.buckets
    return sort + pairing + shape.accumulated * point_bytes + 3 * sums


def ntt_multiplies(curve: str, passes: Sequence[Pass], log_n: int) -> int:
    """Of one transform."""
    general, root = PRODUCT_COST[curve]
    total = 0.0
    for step in passes:
        eights, rest = divmod(step.bits, 3)
        inner = eights * (2 * general + 3 * root) / 8 + {0: 0, 1: 0, 2: root / 4}[rest]
        twiddles = (eights - 1) * 7 / 8 + {0: 0, 1: 1 / 2, 2: 3 / 4}[rest]
        total += inner + general * (twiddles + (step.table is not None))
    return round(total * (1 << log_n))


def ntt_bytes(passes: Sequence[Pass], log_n: int) -> int:
    """Of one transform: each pass reads and writes every element, and reads its factors."""
    factors = sum(step.table.nbytes for step in passes if step.table is not None)
    return len(passes) * (64 << log_n) + factors


def floor_ms(multiplies: int) -> float:
    """The time of so many multiply-adds, all else free."""
    return multiplies / MULTIPLY_RATE * 1e3
