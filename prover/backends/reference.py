"""The oracle as a backend: whole proofs of small circuits in Python integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.params import SCALAR_BYTES, Curve, G1Point, G2Point
from prover.phases import Phases
from prover.reference import g1, g2, intt, ntt
from prover.scalars import decode_scalars

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from prover.artifact import Loaded
    from prover.formats.zkey import ProvingKey

QUERIES_G1 = ("a_query", "b_g1_query", "l_query", "h_query")


class ReferenceBackend:
    """Implements `Backend` and `PointGenerator`. Vectors are lists of standard-form integers."""

    name = "reference"
    loaded: tuple[Loaded, ...] = ()
    device: dict[str, Any] | None = None

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.phases = Phases()
        self._g1 = g1(curve)
        self._g2 = g2(curve)
        self._key: ProvingKey | None = None
        self._points: dict[str, list[Any]] = {}
        self._entries: list[tuple[int, int, int, int]] = []

    def load(self, key: ProvingKey) -> None:
        """Decode the key's points and entries."""
        curve = self.curve
        self._key = key
        self._points = {q: [decode_g1(curve, row.data) for row in getattr(key, q)] for q in QUERIES_G1}
        self._points["b_g2_query"] = [decode_g2(curve, row.data) for row in key.b_g2_query]
        plain = pow(curve.radix_r, -2, curve.r)  # values are coefficient * R^2
        self._entries = [
            (
                int(matrix),
                int(constraint),
                int(wire),
                int.from_bytes(value.tobytes(), "little") * plain % curve.r,
            )
            for matrix, constraint, wire, value in key.coefs
        ]

    def check_points(self) -> tuple[str, int] | None:
        """The first point that is not on its curve."""
        for query, points in self._points.items():
            on_curve: Callable[[Any], bool] = (
                self._g2.is_on_curve if query == "b_g2_query" else self._g1.is_on_curve
            )
            for index, point in enumerate(points):
                if not on_curve(point):
                    return query, index
        return None

    @property
    def arrangement(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {}

    def host_words(self, n: int) -> NDArray[np.uint8]:
        """Ordinary memory."""
        return np.empty((n, SCALAR_BYTES), np.uint8)

    def witness(self, words: NDArray[np.uint8]) -> list[int]:
        """The wires as integers."""
        return decode_scalars(words)

    def sparse_products(self, witness: list[int]) -> tuple[list[int], list[int]]:
        """A.w and B.w, entry by entry."""
        assert self._key is not None
        with self.phases.span("sparse products"):
            products = ([0] * self._key.domain_size, [0] * self._key.domain_size)
            for matrix, constraint, wire, value in self._entries:
                row = products[matrix]
                row[constraint] = (row[constraint] + value * witness[wire]) % self.curve.r
            return products

    def multiply(self, a: list[int], b: list[int]) -> list[int]:
        """a[i] * b[i]"""
        return [x * y % self.curve.r for x, y in zip(a, b, strict=True)]

    def to_coset(self, *vectors: list[int]) -> tuple[list[int], ...]:
        """Interpolate on {w[k]^i}; evaluate at w[k+1] * w[k]^i, which are the odd powers of w[k+1]."""
        with self.phases.span("ntt"):
            return tuple(self._to_coset(v) for v in vectors)

    def _to_coset(self, v: list[int]) -> list[int]:
        r, k = self.curve.r, len(v).bit_length() - 1
        coefficients = intt(v, self.curve.root_of_unity(k), r)
        shift, power, shifted = self.curve.root_of_unity(k + 1), 1, []
        for coefficient in coefficients:
            shifted.append(coefficient * power % r)
            power = power * shift % r
        return ntt(shifted, self.curve.root_of_unity(k), r)

    def quotient(self, a: list[int], b: list[int], c: list[int]) -> list[int]:
        """a[i] * b[i] - c[i]"""
        return [(x * y - z) % self.curve.r for x, y, z in zip(a, b, c, strict=True)]

    def msm_g1(self, query: str, scalars: list[int]) -> G1Point:
        """Done at once."""
        with self.phases.span(f"msm {query}"):
            return self._g1.msm(scalars, self._points[query])

    def msm_g2(self, query: str, scalars: list[int]) -> G2Point:
        """Done at once."""
        with self.phases.span(f"msm {query}"):
            return self._g2.msm(scalars, self._points[query])

    def fetch(self, pending: Sequence[Any]) -> list[Any]:
        """Nothing is pending."""
        return list(pending)

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """As any MSM."""
        return self._g1.msm(scalars, points)

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """As any MSM."""
        return self._g2.msm(scalars, points)

    def close(self) -> None:
        """Python integers cannot be scrubbed; the key is let go."""
        self._key, self._points, self._entries = None, {}, []

    def multiples_g1(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G1 for each scalar."""
        points = (self._g1.multiply(k, self.curve.generator_g1) for k in decode_scalars(scalars))
        data = b"".join(encode_g1(self.curve, point) for point in points)
        return np.frombuffer(data, np.uint8).reshape(-1, self.curve.g1_bytes)

    def multiples_g2(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k * G2 for each scalar."""
        points = (self._g2.multiply(k, self.curve.generator_g2) for k in decode_scalars(scalars))
        data = b"".join(encode_g2(self.curve, point) for point in points)
        return np.frombuffer(data, np.uint8).reshape(-1, self.curve.g2_bytes)
