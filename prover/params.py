"""The two curves: every constant with the formula that gives it.

Sources: BN254 as in EIP-196/197 (Barreto-Naehrig, ``alt_bn128``); BLS12-381 as in the IETF draft on
pairing-friendly curves. File names (``bn128``, ``bls12381``) and the root of unity follow snarkjs.
"""

from __future__ import annotations

from dataclasses import dataclass

G1Point = tuple[int, int] | None
"""Affine (x, y) over Fq in standard form; ``None`` is the identity."""

G2Point = tuple[tuple[int, int], tuple[int, int]] | None
"""Affine ((x0, x1), (y0, y1)) over Fq2 = Fq[u]/(u^2 + 1); ``None`` is the identity."""

SCALAR_BYTES = 32
"""Bytes of an Fr element in every file, on both curves."""


@dataclass(frozen=True, slots=True, repr=False)
class Curve:
    """One pairing-friendly curve y^2 = x^3 + b, and the conventions of its files."""

    name: str
    """The name in targets, kernels and messages."""
    file_name: str
    """The name in snarkjs's JSON files."""
    q: int
    """Order of the base field Fq."""
    r: int
    """Order of the groups, and of the scalar field Fr."""
    b_g1: int
    b_g2: tuple[int, int]
    """b of the sextic twist over Fq2."""
    generator_g1: tuple[int, int]
    generator_g2: tuple[tuple[int, int], tuple[int, int]]
    q_bytes: int
    """Bytes of an Fq element in files; the Montgomery radix of Fq is 2^(8 * q_bytes)."""
    two_adicity: int
    """The largest s with 2^s | r - 1."""

    def __repr__(self) -> str:
        return f"<Curve {self.name}>"

    @property
    def g1_bytes(self) -> int:
        """Bytes of an affine G1 point in files: x, y."""
        return 2 * self.q_bytes

    @property
    def g2_bytes(self) -> int:
        """Bytes of an affine G2 point in files: x.c0, x.c1, y.c0, y.c1."""
        return 4 * self.q_bytes

    @property
    def radix_q(self) -> int:
        """R mod q, R = 2^(8 * q_bytes): the Montgomery form of 1 in Fq."""
        return pow(2, 8 * self.q_bytes, self.q)

    @property
    def radix_r(self) -> int:
        """R mod r, R = 2^256: the Montgomery form of 1 in Fr."""
        return pow(2, 8 * SCALAR_BYTES, self.r)

    @property
    def max_domain(self) -> int:
        """The largest domain a proof can use: its double must be a subgroup of Fr* too, so 2^(s - 1)."""
        return 1 << (self.two_adicity - 1)

    def root_of_unity(self, k: int) -> int:
        """The generator w[k] of the domain of size 2^k: 5^((r - 1) / 2^k), 0 <= k <= s.

        5 is the smallest non-residue of Fr on both curves, and what snarkjs uses. Most BLS12-381
        libraries use 7: proofs made with their root from these keys are invalid.
        """
        if not 0 <= k <= self.two_adicity:
            raise ValueError(
                f"no domain of size 2^{k} in Fr of {self.name}: k must be in 0..{self.two_adicity}"
            )
        return pow(NON_RESIDUE, (self.r - 1) >> k, self.r)


NON_RESIDUE = 5
"""Generator of the 2-part of Fr* in the snarkjs convention, for both curves."""


def _bn254() -> Curve:
    x = 4965661367192848881
    q = 36 * x**4 + 36 * x**3 + 24 * x**2 + 6 * x + 1
    inverse_82 = pow(82, -1, q)  # 1 / (9 + u) = (9 - u) / (9^2 + 1)
    return Curve(
        name="bn254",
        file_name="bn128",
        q=q,
        r=36 * x**4 + 36 * x**3 + 18 * x**2 + 6 * x + 1,
        b_g1=3,
        b_g2=(3 * 9 * inverse_82 % q, -3 * inverse_82 % q),  # 3 / (9 + u)
        generator_g1=(1, 2),
        generator_g2=(
            (
                0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
                0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
            ),
            (
                0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
                0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
            ),
        ),
        q_bytes=32,
        two_adicity=28,
    )


def _bls12_381() -> Curve:
    x = -0xD201000000010000
    r = x**4 - x**2 + 1
    return Curve(
        name="bls12_381",
        file_name="bls12381",
        q=(x - 1) ** 2 * r // 3 + x,
        r=r,
        b_g1=4,
        b_g2=(4, 4),  # 4 * (1 + u)
        generator_g1=(
            0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
            0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
        ),
        generator_g2=(
            (
                0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
                0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
            ),
            (
                0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
                0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
            ),
        ),
        q_bytes=48,
        two_adicity=32,
    )


BN254 = _bn254()
BLS12_381 = _bls12_381()
CURVES = (BN254, BLS12_381)


def curve_by_name(name: str) -> Curve | None:
    """The curve with this name (``bn254``, ``bls12_381``) or file name (``bn128``, ``bls12381``)."""
    return next((c for c in CURVES if name in (c.name, c.file_name)), None)


def curve_by_primes(q: int, r: int) -> Curve | None:
    """The curve of these two field orders, as the header of a key gives them."""
    return next((c for c in CURVES if (c.q, c.r) == (q, r)), None)


def curve_by_scalar_prime(r: int) -> Curve | None:
    """The curve of this scalar field, as the header of a witness or constraint file gives it."""
    return next((c for c in CURVES if c.r == r), None)
