"""From constraints to polynomials: the quadratic arithmetic program of a circuit, at one point.

Gennaro, Gentry, Parno and Raykova, "Quadratic Span Programs and Succinct NIZKs without PCPs", EUROCRYPT 2013.
The domain is {w[k]^i}, one point a constraint. After the constraints come n_public + 1 rows of A alone,
(A.w)_row = w_s: they keep the polynomials of the public wires independent of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ConfigurationError
from prover.scalars import decode_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.formats.r1cs import ConstraintSystem, SparseMatrix
    from prover.params import Curve


def log_domain(curve: Curve, n_constraints: int, n_public: int) -> int:
    """k, where 2^k is the smallest domain with a point for every row.

    Raises `ConfigurationError` when k reaches the field's two-adicity: the doubled domain would not exist.
    """
    k = (n_constraints + n_public).bit_length()
    if k >= curve.two_adicity:
        raise ConfigurationError(
            f"{n_constraints} constraints are more than {curve.name} allows in one proof: "
            f"2^{curve.two_adicity - 1}, the public signals and one more included",
            remedy="split the circuit",
        )
    return k


def lagrange_at(curve: Curve, k: int, tau: int) -> list[int]:
    """L_i(tau) for the Lagrange basis L_i of {w^i}, w = w[k], n = 2^k.

    L_i(tau) = (tau^n - 1) / n * w^i / (tau - w^i); tau must lie outside the domain.
    """
    r, n, w = curve.r, 1 << k, curve.root_of_unity(k)
    points = _powers(w, n, r)
    scale = (pow(tau, n, r) - 1) * pow(n, -1, r) % r
    inverses = _invert_all([tau - x for x in points], r)
    return [scale * x % r * inverse % r for x, inverse in zip(points, inverses, strict=True)]


def odd_lagrange_at(curve: Curve, k: int, tau: int) -> list[int]:
    """M_(2i+1)(tau), i < 2^k, for the Lagrange basis M of the domain of size 2^(k+1)."""
    return lagrange_at(curve, k + 1, tau)[1::2]


def wire_polynomials_at(
    system: ConstraintSystem, basis: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """A_s(tau), B_s(tau), C_s(tau) for every wire s; ``basis`` is L_i(tau)."""
    a, b, c = (_columns(m, system.n_wires, basis, system.curve.r) for m in (system.a, system.b, system.c))
    for wire in range(system.n_public + 1):
        a[wire] = (a[wire] + basis[system.n_constraints + wire]) % system.curve.r
    return a, b, c


def first_unsatisfied(system: ConstraintSystem, witness: Sequence[int]) -> int | None:
    """The first constraint that the witness breaks, or ``None``."""
    r = system.curve.r
    a, b, c = (_rows(m, system.n_constraints, witness, r) for m in (system.a, system.b, system.c))
    for row in range(system.n_constraints):
        if (a[row] * b[row] - c[row]) % r:
            return row
    return None


def _columns(matrix: SparseMatrix, n_wires: int, basis: Sequence[int], r: int) -> list[int]:
    """basis^T M: one value a wire."""
    sums = [0] * n_wires
    for row, wire, coef in _entries(matrix):
        sums[wire] += coef * basis[row]
    return [value % r for value in sums]


def _rows(matrix: SparseMatrix, n_rows: int, witness: Sequence[int], r: int) -> list[int]:
    """M w: one value a row."""
    sums = [0] * n_rows
    for row, wire, coef in _entries(matrix):
        sums[row] += coef * witness[wire]
    return [value % r for value in sums]


def _entries(matrix: SparseMatrix) -> zip[tuple[int, int, int]]:
    return zip(matrix.rows.tolist(), matrix.wires.tolist(), decode_scalars(matrix.coefs), strict=True)


def _powers(base: int, count: int, p: int) -> list[int]:
    powers, power = [], 1
    for _ in range(count):
        powers.append(power)
        power = power * base % p
    return powers


def _invert_all(values: Sequence[int], p: int) -> list[int]:
    """1 / v for every v, none zero, with one inversion and three products each (Montgomery's trick)."""
    products, product = [], 1
    for value in values:
        products.append(product)
        product = product * value % p
    inverse = pow(product, -1, p)
    inverses = [0] * len(values)
    for index in reversed(range(len(values))):
        inverses[index] = inverse * products[index] % p
        inverse = inverse * values[index] % p
    return inverses
