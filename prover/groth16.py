"""Groth16: the proof, as the paper has it.

Jens Groth, "On the Size of Pairing-Based Non-interactive Arguments", EUROCRYPT 2016, section 3.2.

The circuit is a quadratic arithmetic program over a domain of n points: wire values w satisfy, at each
point, A.w * B.w = C.w. Equivalently h = (A.w * B.w - C.w) / t is a polynomial, where t vanishes on the
domain. The key holds, in the exponent and at a secret point, the polynomials of each wire (a_query,
b_g1_query, b_g2_query), those of the private wires combined and over delta (l_query), and a basis for
h t over delta (h_query). The proof is

    A = alpha + sum w_i a_i + r delta                                  in G1
    B = beta  + sum w_i b_i + s delta                                  in G2 (and in G1, to form C)
    C = sum_private w_i l_i + sum x_i h_i + s A + r B - r s delta      in G1

with r and s uniform: they hide the witness, and two proofs with equal r and s reveal it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prover.backends import Backend, Vector
    from prover.formats.zkey import ProvingKey
    from prover.params import Curve, G1Point, G2Point


@dataclass(frozen=True, slots=True)
class Proof:
    """Three points."""

    a: G1Point
    b: G2Point
    c: G1Point


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """What a verifier needs: the check is e(A, B) = e(alpha, beta) e(sum pub_i ic_i, gamma) e(C, delta)."""

    curve: Curve
    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta: G2Point
    ic: tuple[G1Point, ...]
    """For the constant 1 and then each public signal."""


def blinders(curve: Curve) -> tuple[int, int]:
    """Fresh r and s, uniform in [0, r), from the operating system."""
    return secrets.randbelow(curve.r), secrets.randbelow(curve.r)


def prove(key: ProvingKey, witness: NDArray[np.uint8], r: int, s: int, backend: Backend) -> Proof:
    """The proof for a witness (`Witness.words`) and blinders r, s; ``backend`` has loaded ``key``.

    A witness that does not satisfy the circuit gives a proof that no verifier accepts: check the result.
    """
    in_g1, in_g2 = backend.combine_g1, backend.combine_g2
    w = backend.witness(witness)
    wb_g2 = backend.msm_g2("b_g2_query", w)
    x = quotient(w, backend)
    wa, wb = backend.msm_g1("a_query", w), backend.msm_g1("b_g1_query", w)
    wl, xh = backend.msm_g1("l_query", w[key.n_public + 1 :]), backend.msm_g1("h_query", x)
    with backend.phases.span("blind"):  # a backend that works beside us is still summing
        r_delta, s_delta_g2 = in_g1([r], [key.delta_g1]), in_g2([s], [key.delta_g2])

    sum_a, sum_b = backend.fetch([wa, wb])  # the first to be ready: what needs them is done beside the others
    with backend.phases.span("combine A"):
        a = in_g1([1, 1], [key.alpha_g1, sum_a])
        b = in_g1([1, 1], [key.beta_g1, sum_b])
        A = in_g1([1, 1], [a, r_delta])
        cross = in_g1([s, r, r * s % key.curve.r], [a, b, key.delta_g1])  # s A + r B - r s delta

    sum_b_g2, sum_l, sum_h = backend.fetch([wb_g2, wl, xh])
    with backend.phases.span("combine"):
        B = in_g2([1, 1, 1], [key.beta_g2, sum_b_g2, s_delta_g2])
        C = in_g1([1, 1, 1], [sum_l, sum_h, cross])
    return Proof(A, B, C)


def quotient(w: Vector, backend: Backend) -> Vector:
    """The scalars of h_query: the values of A.w * B.w - C.w at the odd points of the doubled domain.

    That polynomial, h t, vanishes at the even points, the domain itself. So these values determine it, and
    with the Lagrange basis at the odd points for h_query no division by t is needed. C.w is taken as the
    product A.w * B.w on the domain: the key has no matrix C, and an unsatisfying witness goes unnoticed here.
    """
    a, b = backend.sparse_products(w)
    c = backend.multiply(a, b)
    return backend.quotient(*backend.to_coset(a, b, c))
