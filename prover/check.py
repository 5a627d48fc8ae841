"""The pairing check, by libraries that this project did not write.

    e(A, B) = e(alpha, beta) * e(ic_0 + sum pub_i ic_i, gamma) * e(C, delta)

BN254: py_ecc. BLS12-381: arkworks, through py-arkworks-bls12381. Neither is trusted with what it may leave
out: the count and range of the public signals, the range of coordinates, the curve equations and the
subgroups are each checked before the pairing (on BN254, G1 is its own subgroup).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, Protocol

from orchestrator.errors import ConfigurationError, Missing
from prover.params import BN254, G1Point, G2Point
from prover.reference import g1, g2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.formats.zkey import ProvingKey
    from prover.groth16 import Proof, VerificationKey


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome for one proof. ``reason`` says why it was rejected; empty when it is valid."""

    valid: bool
    reason: str
    by: str
    """The pairing library and its version."""
    seconds: float

    def as_json(self) -> dict[str, object]:
        """The form of the worker protocol and of records."""
        result: dict[str, object] = {"result": "pass" if self.valid else "fail"}
        result |= {"by": self.by, "seconds": self.seconds}
        return result if self.valid else result | {"reason": self.reason}


class Rejected(Exception):
    """A point or a number that no valid proof or key contains."""


class Pairing(Protocol):
    """What the check needs of a pairing library. Points are in range and on their curves."""

    by: str

    def require_subgroup_g1(self, point: G1Point) -> None:
        """Raise `Rejected` unless the point, on the curve, has order r or is the identity."""

    def require_subgroup_g2(self, point: G2Point) -> None:
        """As above, in G2."""

    def combine(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """sum scalars[i] * points[i]"""

    def product_is_one(self, pairs: Sequence[tuple[G1Point, G2Point]]) -> bool:
        """Whether the product of e(P, Q) over the pairs is 1."""


class Checker:
    """Checks proofs against one verification key.

    The key itself is checked once: every point in range, on its curve and in its subgroup; alpha, beta,
    gamma and delta not the identity. Raises `ConfigurationError` if not, and `Missing` without the library.
    """

    def __init__(self, vk: VerificationKey, *, source: object) -> None:
        self.vk = vk
        self.pairing: Pairing = _py_ecc() if vk.curve == BN254 else _arkworks()
        for name, kind, point in _named_points(vk):
            self._require_of_key(f"{source}: the verification key's {name}", kind, point)
            if point is None and not name.startswith("IC"):
                raise _damaged(f"{source}: the verification key's {name}", "is the identity")

    @classmethod
    def of_key(cls, key: ProvingKey) -> Checker:
        """Checks proofs made with a proving key, whose two points that no verifier has are checked as well:
        with a bad one every proof would fail, and the witness would look guilty.
        """
        path = key.file.path
        checker = cls(key.verification_key(), source=path)
        for name, point in (("beta_g1", key.beta_g1), ("delta_g1", key.delta_g1)):
            checker._require_of_key(f"{path}: {name}", "g1", point)
        return checker

    def check(self, proof: Proof, public: Sequence[int]) -> Check:
        """Whether the proof is valid for these public signals."""
        start = time.perf_counter()
        try:
            self._require_public(public)
            self._require_proof(proof)
            if not self._equation_holds(proof, public):
                raise Rejected("the pairing equation does not hold")
            reason = ""
        except Rejected as error:
            reason = str(error)
        return Check(not reason, reason, self.pairing.by, time.perf_counter() - start)

    def _require_public(self, public: Sequence[int]) -> None:
        wanted = len(self.vk.ic) - 1
        if len(public) != wanted:
            raise Rejected(f"{len(public)} public signals; the key is for {wanted}")
        for index, signal in enumerate(public):
            if not 0 <= signal < self.vk.curve.r:
                raise Rejected(f"public signal {index} is not below r")

    def _require_of_key(self, name: str, kind: Literal["g1", "g2"], point: Any) -> None:
        try:
            self._require(kind, point)
        except Rejected as error:
            raise _damaged(name, str(error)) from None

    def _require_proof(self, proof: Proof) -> None:
        points: list[tuple[str, Literal["g1", "g2"], Any]] = [
            ("A", "g1", proof.a),
            ("B", "g2", proof.b),
            ("C", "g1", proof.c),
        ]
        for name, kind, point in points:
            try:
                self._require(kind, point)
            except Rejected as error:
                raise Rejected(f"point {name} {error}") from None

    def _require(self, kind: Literal["g1", "g2"], point: Any) -> None:
        """In range, on the curve, in the subgroup; the identity is all three."""
        curve = self.vk.curve
        if point is None:
            return
        coordinates = point if kind == "g1" else (*point[0], *point[1])
        if not all(0 <= c < curve.q for c in coordinates):
            raise Rejected("has a coordinate that is not below q")
        group: Any = g1(curve) if kind == "g1" else g2(curve)
        if not group.is_on_curve(point):
            raise Rejected("is not on the curve")
        if kind == "g1":
            self.pairing.require_subgroup_g1(point)
        else:
            self.pairing.require_subgroup_g2(point)

    def _equation_holds(self, proof: Proof, public: Sequence[int]) -> bool:
        vk, negate = self.vk, g1(self.vk.curve).negate
        inputs = self.pairing.combine([1, *public], vk.ic)
        return self.pairing.product_is_one(
            [
                (proof.a, proof.b),
                (negate(vk.alpha), vk.beta),
                (negate(inputs), vk.gamma),
                (negate(proof.c), vk.delta),
            ]
        )


def _damaged(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} {what}", remedy="the key is damaged or hostile: make it or fetch it again"
    )


def _named_points(vk: VerificationKey) -> list[tuple[str, Literal["g1", "g2"], Any]]:
    return [
        ("alpha", "g1", vk.alpha),
        ("beta", "g2", vk.beta),
        ("gamma", "g2", vk.gamma),
        ("delta", "g2", vk.delta),
        *((f"IC[{i}]", "g1", point) for i, point in enumerate(vk.ic)),
    ]


def _py_ecc() -> Pairing:
    try:
        from py_ecc import optimized_bn128
    except ImportError:
        raise Missing(
            "py_ecc, which checks BN254 proofs, is not installed", remedy="pip install py-ecc"
        ) from None
    return _PyEcc(optimized_bn128)


class _PyEcc:
    """BN254 by py_ecc: projective points over its own field classes."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.by = f"py_ecc {version('py-ecc')}"

    def require_subgroup_g1(self, point: G1Point) -> None:
        """Every point of the curve has order r: the cofactor is 1."""

    def require_subgroup_g2(self, point: G2Point) -> None:
        if not self._library.is_inf(self._library.multiply(self._g2(point), BN254.r)):
            raise Rejected("is not in the subgroup of order r")

    def combine(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        lib = self._library
        terms = (lib.multiply(self._g1(p), k) for k, p in zip(scalars, points, strict=True))
        total = reduce(lib.add, terms, lib.Z1)
        if lib.is_inf(total):
            return None
        x, y = lib.normalize(total)
        return (int(x), int(y))

    def product_is_one(self, pairs: Sequence[tuple[G1Point, G2Point]]) -> bool:
        lib = self._library
        product = lib.FQ12.one()
        for p, q in pairs:
            product *= lib.pairing(self._g2(q), self._g1(p), final_exponentiate=False)
        return bool(lib.final_exponentiate(product) == lib.FQ12.one())

    def _g1(self, point: G1Point) -> Any:
        lib = self._library
        return lib.Z1 if point is None else (lib.FQ(point[0]), lib.FQ(point[1]), lib.FQ.one())

    def _g2(self, point: G2Point) -> Any:
        lib = self._library
        return lib.Z2 if point is None else (lib.FQ2(point[0]), lib.FQ2(point[1]), lib.FQ2.one())


def _arkworks() -> Pairing:
    try:
        import py_arkworks_bls12381
    except ImportError:
        raise Missing(
            "py_arkworks_bls12381, which checks BLS12-381 proofs, is not installed",
            remedy="pip install py-arkworks-bls12381",
        ) from None
    return _Arkworks(py_arkworks_bls12381)


class _Arkworks:
    """BLS12-381 by arkworks: points come in as big-endian coordinates, subgroup checked by the library."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.by = f"py-arkworks-bls12381 {version('py-arkworks-bls12381')}"

    def require_subgroup_g1(self, point: G1Point) -> None:
        if not self._g1(point).is_in_subgroup():
            raise Rejected("is not in the subgroup of order r")

    def require_subgroup_g2(self, point: G2Point) -> None:
        if not self._g2(point).is_in_subgroup():
            raise Rejected("is not in the subgroup of order r")

    def combine(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        lib = self._library
        total = lib.G1Point.multiexp_unchecked(
            [self._g1(point) for point in points], [lib.Scalar(k) for k in scalars]
        )
        if total == lib.G1Point.identity():
            return None
        data = total.to_xy_bytes_be()
        return (int.from_bytes(data[:48], "big"), int.from_bytes(data[48:], "big"))

    def product_is_one(self, pairs: Sequence[tuple[G1Point, G2Point]]) -> bool:
        return bool(
            self._library.GT.pairing_check([self._g1(p) for p, _ in pairs], [self._g2(q) for _, q in pairs])
        )

    def _g1(self, point: G1Point) -> Any:
        if point is None:
            return self._library.G1Point.identity()
        data = b"".join(c.to_bytes(48, "big") for c in point)
        return self._library.G1Point.from_xy_bytes_unchecked_be(data)

    def _g2(self, point: G2Point) -> Any:
        if point is None:
            return self._library.G2Point.identity()
        (x0, x1), (y0, y1) = point
        data = b"".join(c.to_bytes(48, "big") for c in (x0, x1, y0, y1))
        return self._library.G2Point.from_xy_bytes_unchecked_be(data)
