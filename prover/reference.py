"""The oracle: fields, curves, NTT and MSM in plain Python integers, as the textbooks have them.

Slow on purpose, and independent of every fast path: standard-form integers, no Montgomery form, no windows.
The host and CUDA code are tested against this module, and this module against other people's libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.params import Curve

E = TypeVar("E")
"""An element of a field: an integer, or a pair (c0, c1) for c0 + c1 u."""


class Field(Protocol[E]):
    """What a curve needs of the field of its coordinates."""

    @property
    def zero(self) -> E: ...
    @property
    def one(self) -> E: ...
    def add(self, a: E, b: E) -> E: ...
    def sub(self, a: E, b: E) -> E: ...
    def mul(self, a: E, b: E) -> E: ...
    def inverse(self, a: E) -> E: ...


@dataclass(frozen=True, slots=True)
class PrimeField:
    """Integers modulo a prime p."""

    p: int

    @property
    def zero(self) -> int:
        """The neutral element of addition."""
        return 0

    @property
    def one(self) -> int:
        """The neutral element of multiplication."""
        return 1

    def add(self, a: int, b: int) -> int:
        """a + b"""
        return (a + b) % self.p

    def sub(self, a: int, b: int) -> int:
        """a - b"""
        return (a - b) % self.p

    def mul(self, a: int, b: int) -> int:
        """a * b"""
        return a * b % self.p

    def inverse(self, a: int) -> int:
        """1 / a. Raises `ValueError` for zero."""
        return pow(a, -1, self.p)


@dataclass(frozen=True, slots=True)
class QuadraticField:
    """Fp2 = Fp[u] / (u^2 + 1), for p = 3 mod 4. The pair (c0, c1) stands for c0 + c1 u."""

    p: int

    @property
    def zero(self) -> tuple[int, int]:
        """The neutral element of addition."""
        return (0, 0)

    @property
    def one(self) -> tuple[int, int]:
        """The neutral element of multiplication."""
        return (1, 0)

    def add(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        """a + b"""
        return ((a[0] + b[0]) % self.p, (a[1] + b[1]) % self.p)

    def sub(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        """a - b"""
        return ((a[0] - b[0]) % self.p, (a[1] - b[1]) % self.p)

    def mul(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        """(a0 b0 - a1 b1) + (a0 b1 + a1 b0) u"""
        return ((a[0] * b[0] - a[1] * b[1]) % self.p, (a[0] * b[1] + a[1] * b[0]) % self.p)

    def inverse(self, a: tuple[int, int]) -> tuple[int, int]:
        """(a0 - a1 u) / (a0^2 + a1^2). Raises `ValueError` for zero."""
        norm_inverse = pow(a[0] * a[0] + a[1] * a[1], -1, self.p)
        return (a[0] * norm_inverse % self.p, -a[1] * norm_inverse % self.p)


Jacobian = tuple[E, E, E]
"""(X, Y, Z) for the affine point (X / Z^2, Y / Z^3); Z = 0 is the identity."""


@dataclass(frozen=True, slots=True)
class Group(Generic[E]):
    """The points of y^2 = x^3 + b, affine; ``None`` is the identity. ``order`` is r, the subgroup's order."""

    field: Field[E]
    b: E
    order: int
    generator: tuple[E, E]

    def is_on_curve(self, point: tuple[E, E] | None) -> bool:
        """Whether y^2 = x^3 + b. The identity is on the curve."""
        if point is None:
            return True
        x, y = point
        f = self.field
        return f.mul(y, y) == f.add(f.mul(f.mul(x, x), x), self.b)

    def in_subgroup(self, point: tuple[E, E] | None) -> bool:
        """Whether r * point is the identity, for a point on the curve."""
        return self.multiply(self.order, point) is None

    def negate(self, point: tuple[E, E] | None) -> tuple[E, E] | None:
        """-P = (x, -y)"""
        return None if point is None else (point[0], self.field.sub(self.field.zero, point[1]))

    def add(self, p: tuple[E, E] | None, q: tuple[E, E] | None) -> tuple[E, E] | None:
        """P + Q by chord and tangent, every case."""
        if p is None or q is None:
            return q if p is None else p
        f = self.field
        if p[0] == q[0]:
            if p[1] != q[1] or p[1] == f.zero:
                return None
            x_squared = f.mul(p[0], p[0])
            rise, run = f.add(f.add(x_squared, x_squared), x_squared), f.add(p[1], p[1])
        else:
            rise, run = f.sub(q[1], p[1]), f.sub(q[0], p[0])
        slope = f.mul(rise, f.inverse(run))
        x = f.sub(f.sub(f.mul(slope, slope), p[0]), q[0])
        return (x, f.sub(f.mul(slope, f.sub(p[0], x)), p[1]))

    def sum(self, *points: tuple[E, E] | None) -> tuple[E, E] | None:
        """The sum of any number of points."""
        total: tuple[E, E] | None = None
        for point in points:
            total = self.add(total, point)
        return total

    def multiply(self, scalar: int, point: tuple[E, E] | None) -> tuple[E, E] | None:
        """scalar * P; the scalar is any integer >= 0 and is not reduced."""
        return self.msm([scalar], [point])

    def msm(self, scalars: Sequence[int], points: Sequence[tuple[E, E] | None]) -> tuple[E, E] | None:
        """Sum of scalars[i] * points[i], from the top bit: double, then add every point with that bit."""
        terms = [(k, p) for k, p in zip(scalars, points, strict=True) if k and p is not None]
        f = self.field
        total: Jacobian[E] = (f.one, f.one, f.zero)
        for bit in reversed(range(max((k.bit_length() for k, _ in terms), default=0))):
            total = self._double(total)
            for scalar, point in terms:
                if scalar >> bit & 1:
                    total = self._add_affine(total, point)
        return self.to_affine(total)

    def to_affine(self, point: Jacobian[E]) -> tuple[E, E] | None:
        """(X / Z^2, Y / Z^3)"""
        f = self.field
        if point[2] == f.zero:
            return None
        z = f.inverse(point[2])
        z2 = f.mul(z, z)
        return (f.mul(point[0], z2), f.mul(point[1], f.mul(z2, z)))

    def _double(self, point: Jacobian[E]) -> Jacobian[E]:
        """2P, a = 0: explicit-formulas database, "dbl-2009-l"."""
        mul, add, sub = self.field.mul, self.field.add, self.field.sub
        x, y, z = point
        a, b = mul(x, x), mul(y, y)
        c = mul(b, b)
        x_b = add(x, b)
        half_d = sub(sub(mul(x_b, x_b), a), c)
        d, e = add(half_d, half_d), add(add(a, a), a)
        x3 = sub(mul(e, e), add(d, d))
        c2 = add(c, c)
        c4 = add(c2, c2)
        yz = mul(y, z)
        return (x3, sub(mul(e, sub(d, x3)), add(c4, c4)), add(yz, yz))

    def _add_affine(self, p: Jacobian[E], q: tuple[E, E]) -> Jacobian[E]:
        """P + Q with Q affine ("madd" of Cohen, Miyaji and Ono); equal, opposite, identity apart."""
        f = self.field
        mul, sub = f.mul, f.sub
        x1, y1, z1 = p
        if z1 == f.zero:
            return (q[0], q[1], f.one)
        z1_squared = mul(z1, z1)
        h = sub(mul(q[0], z1_squared), x1)
        t = sub(mul(q[1], mul(z1, z1_squared)), y1)
        if h == f.zero:
            return self._double(p) if t == f.zero else (f.one, f.one, f.zero)
        h2 = mul(h, h)
        h3 = mul(h, h2)
        v = mul(x1, h2)
        x3 = sub(sub(mul(t, t), h3), f.add(v, v))
        return (x3, sub(mul(t, sub(v, x3)), mul(y1, h3)), mul(z1, h))


@cache
def g1(curve: Curve) -> Group[int]:
    """G1 of a curve: over Fq."""
    return Group(PrimeField(curve.q), curve.b_g1, curve.r, curve.generator_g1)


@cache
def g2(curve: Curve) -> Group[tuple[int, int]]:
    """G2 of a curve: on the sextic twist over Fq2."""
    return Group(QuadraticField(curve.q), curve.b_g2, curve.r, curve.generator_g2)


def ntt(values: Sequence[int], root: int, p: int) -> list[int]:
    """out[j] = sum of values[i] * root^(ij): evaluation at root^0..root^(n-1), natural order.

    ``root`` generates the subgroup of order n = len(values), a power of two. Cooley and Tukey, 1965.
    """
    if len(values) == 1:
        return list(values)
    even = ntt(values[::2], root * root % p, p)
    odd = ntt(values[1::2], root * root % p, p)
    power, turned = 1, []
    for value in odd:
        turned.append(value * power % p)
        power = power * root % p
    low = [(a + b) % p for a, b in zip(even, turned, strict=True)]
    return low + [(a - b) % p for a, b in zip(even, turned, strict=True)]


def intt(values: Sequence[int], root: int, p: int) -> list[int]:
    """The inverse of `ntt`: the coefficients of the polynomial with these values."""
    scale = pow(len(values), -1, p)
    return [value * scale % p for value in ntt(values, pow(root, -1, p), p)]
