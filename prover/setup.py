"""Test keys: a Groth16 setup by one party, who can forge proofs with what it knew.

Groth 2016, section 3.2, in the form of snarkjs's keys (gamma = 1; h_query as a Lagrange basis). Real keys
come from a ceremony (`snarkjs powersoftau`, `snarkjs groth16 setup`); these are for tests and benchmarks.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prover import qap
from prover.backends import KeyPolynomials, KeyScalars
from prover.formats.points import encode_g1, encode_g2
from prover.formats.zkey import COEF, entries_of, write_zkey
from prover.memory import require_memory
from prover.params import SCALAR_BYTES
from prover.reference import g1, g2
from prover.scalars import decode_scalars, encode_scalars, take

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from prover.backends import PointGenerator
    from prover.formats.r1cs import ConstraintSystem
    from prover.params import Curve

    DoubleMontgomery = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Trapdoor:
    """The secrets of a setup. Whoever has them can forge proofs."""

    tau: int
    alpha: int
    beta: int
    delta: int


def draw_trapdoor(curve: Curve) -> Trapdoor:
    """Secrets from the operating system, each in [1, r), tau outside every domain."""
    while True:
        trapdoor = Trapdoor(*(1 + secrets.randbelow(curve.r - 1) for _ in range(4)))
        if _outside_domains(curve, trapdoor.tau):
            return trapdoor


def seeded_trapdoor(curve: Curve, seed: str) -> Trapdoor:
    """The same secrets for the same seed: for tests, where equal keys are wanted. No secret at all."""
    label = f"freshproof test-only trapdoor {curve.name} {seed}".encode(errors="surrogateescape")
    stream = hashlib.shake_256(label).digest(4 * 64)
    draws = (int.from_bytes(stream[i : i + 64], "little") for i in range(0, len(stream), 64))
    trapdoor = Trapdoor(*(1 + value % (curve.r - 1) for value in draws))
    if not _outside_domains(curve, trapdoor.tau):
        raise ValueError(f"seed {seed!r} gives a tau inside a domain")
    return trapdoor


def _outside_domains(curve: Curve, tau: int) -> bool:
    return pow(tau, 1 << curve.two_adicity, curve.r) != 1


def write_test_key(
    path: Path,
    system: ConstraintSystem,
    trapdoor: Trapdoor,
    generator: PointGenerator,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Make the proving key of a circuit and write it as a ``.zkey`` that snarkjs reads.

    Raises `ConfigurationError` for a circuit too large for its curve, and `Missing` for one too large for
    this machine's memory.
    """
    curve = system.curve
    k = qap.log_domain(curve, system.n_constraints, system.n_public)
    n_entries = len(system.a.rows) + len(system.b.rows)
    counts = {"n_wires": system.n_wires, "n_public": system.n_public, "n_constraints": system.n_constraints}
    require_memory(key_bytes(curve, **counts, n_entries=n_entries), f"a key of a domain of 2^{k}")
    say(f"polynomials of {system.n_wires} wires over a domain of 2^{k}")
    fast = generator if isinstance(generator, KeyPolynomials) else None
    scalars = fast.key_scalars(system, trapdoor) if fast else key_scalars(system, trapdoor)
    say(f"points: {3 * system.n_wires + (1 << k)} in G1, {system.n_wires} in G2")
    write_zkey(
        path,
        curve,
        n_public=system.n_public,
        singles=_single_points(curve, trapdoor),
        ic=generator.multiples_g1(scalars.public),
        a_query=generator.multiples_g1(scalars.a),
        b_g1_query=generator.multiples_g1(scalars.b),
        b_g2_query=generator.multiples_g2(scalars.b),
        l_query=generator.multiples_g1(scalars.private),
        h_query=generator.multiples_g1(scalars.h),
        coefs=_key_entries(system, fast.double_montgomery if fast else _double_montgomery(curve)),
    )


def key_bytes(curve: Curve, *, n_wires: int, n_public: int, n_constraints: int, n_entries: int) -> int:
    """Memory that `write_test_key` takes at least: the key's points, what they are multiples of, its entries.

    ``n_entries``: of A and B. The circuit itself is not counted.
    """
    domain = 1 << qap.log_domain(curve, n_constraints, n_public)
    points = (3 * n_wires + domain) * curve.g1_bytes + n_wires * curve.g2_bytes
    return points + (3 * n_wires + domain) * SCALAR_BYTES + (n_entries + n_public + 1) * COEF.itemsize


def key_scalars(system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
    """What the points of the key are multiples by, in Python integers."""
    curve, r, first_private = system.curve, system.curve.r, system.n_public + 1
    k = qap.log_domain(curve, system.n_constraints, system.n_public)
    a, b, c = qap.wire_polynomials_at(system, qap.lagrange_at(curve, k, trapdoor.tau))
    combined = [
        (trapdoor.beta * a_s + trapdoor.alpha * b_s + c_s) % r for a_s, b_s, c_s in zip(a, b, c, strict=True)
    ]
    over_delta = pow(trapdoor.delta, -1, r)
    return KeyScalars(
        a=encode_scalars(a),
        b=encode_scalars(b),
        public=encode_scalars(combined[:first_private]),
        private=encode_scalars(value * over_delta % r for value in combined[first_private:]),
        h=encode_scalars(value * over_delta % r for value in qap.odd_lagrange_at(curve, k, trapdoor.tau)),
    )


def _single_points(curve: Curve, trapdoor: Trapdoor) -> list[bytes]:
    """alpha, beta in G1; beta, gamma in G2; delta in both: the order of the header."""
    G1, G2 = g1(curve), g2(curve)

    def in_g1(scalar: int) -> bytes:
        return encode_g1(curve, G1.multiply(scalar, curve.generator_g1))

    def in_g2(scalar: int) -> bytes:
        return encode_g2(curve, G2.multiply(scalar, curve.generator_g2))

    return [
        in_g1(trapdoor.alpha),
        in_g1(trapdoor.beta),
        in_g2(trapdoor.beta),
        in_g2(1),
        in_g1(trapdoor.delta),
        in_g2(trapdoor.delta),
    ]


def _key_entries(system: ConstraintSystem, double_montgomery: DoubleMontgomery) -> NDArray[Any]:
    """A and B as the key has them: by constraint, A before B, then the public rows of A."""
    rows = np.concatenate([system.a.rows, system.b.rows])
    order = np.argsort(rows, kind="stable")
    parts = [
        entries_of(which, matrix.rows, matrix.wires, double_montgomery(matrix.coefs))
        for which, matrix in enumerate((system.a, system.b))
    ]
    by_constraint = take(np.concatenate(parts).view(np.uint8).reshape(-1, COEF.itemsize), order)
    wires = np.arange(system.n_public + 1, dtype=np.uint32)
    one = np.repeat(double_montgomery(encode_scalars([1])), len(wires), axis=0)
    public = entries_of(0, system.n_constraints + wires, wires, one)
    return np.concatenate([by_constraint.reshape(-1).view(COEF), public])


def _double_montgomery(curve: Curve) -> DoubleMontgomery:
    radix_squared = pow(curve.radix_r, 2, curve.r)
    return lambda coefs: encode_scalars(value * radix_squared % curve.r for value in decode_scalars(coefs))
