"""The seam between the protocol and the machine that does the arithmetic.

A backend works on one curve. It receives a proving key once (`Backend.load`), so that points, tables and
matrices stay resident, and then serves any number of proofs. Operations may be asynchronous: `msm_g1` and
`msm_g2` return at once, and `Backend.fetch` waits and gives affine points. Vectors are opaque to the
protocol: they never leave the backend between operations.

Layouts at the seam are those of the snarkjs files (little-endian, 32-byte scalars in standard form; affine
points in Montgomery form, all-zero bytes = identity), so a memory-mapped key needs no conversion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.formats.zkey import ProvingKey
    from prover.phases import Phases

Vector = Any
"""A vector of field elements held by a backend, in whatever form it likes."""

Pending = Any
"""An MSM under way; `Backend.fetch` turns a sequence of them into points."""


class Backend(Protocol):
    """Arithmetic of one curve with one resident proving key."""

    name: str

    def load(self, key: ProvingKey) -> None:
        """Make the key's points and matrices resident. Raises `Missing` when memory does not suffice."""

    def witness(self, words: bytes | memoryview) -> Vector:
        """Take in ``n_vars`` scalars, standard form, 32 bytes each."""

    def sparse_products(self, witness: Vector) -> tuple[Vector, Vector]:
        """A.w and B.w over the domain (rows past the last constraint are zero), Montgomery form."""

    def multiply(self, a: Vector, b: Vector) -> Vector:
        """The element-wise product of two vectors of the domain's length."""

    def to_coset(self, v: Vector) -> Vector:
        """Values on the domain -> values on the odd points of the domain of twice the size (two NTTs)."""

    def quotient(self, a: Vector, b: Vector, c: Vector) -> Vector:
        """a*b - c element-wise, as standard-form scalars ready for an MSM."""

    def msm_g1(self, query: str, scalars: Vector) -> Pending:
        """Start the MSM of the key's G1 ``query`` (``a_query``, ``b_g1_query``, ``h_query``, ``l_query``)."""

    def msm_g2(self, query: str, scalars: Vector) -> Pending:
        """Start the MSM of the key's G2 ``query`` (``b_g2_query``)."""

    def fetch(self, pending: Sequence[Pending]) -> list[Any]:
        """Wait for MSMs; affine points as the reference represents them (`prover.reference`)."""

    def phases(self) -> Phases:
        """The spans measured since the last call."""

    def close(self) -> None:
        """Release memory and scrub what held the witness."""
