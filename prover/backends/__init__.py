"""The seam between the protocol and the machine that does the arithmetic.

A backend works on one curve. It receives a proving key once (`Backend.load`), so that points, tables and
matrices stay resident, and then serves any number of proofs. Operations may be asynchronous: `msm_g1` and
`msm_g2` return at once, and `Backend.fetch` waits and gives affine points. Vectors are opaque to the
protocol, which only ever cuts off their head (``v[start:]``): they never leave the backend.

Layouts at the seam are those of the snarkjs files (little-endian, 32-byte scalars in standard form; affine
points in Montgomery form, all-zero bytes = identity), so a memory-mapped key needs no conversion. Points
that come back are Python integers (`prover.params.G1Point`, `G2Point`).

`prover.loading.open_backend` makes them. Those with compiled code load exactly the bytes of the admitted
`prover.artifact.Artifact`, or raise, and say in ``backend.loaded`` what they found in the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from prover.artifact import Loaded
    from prover.formats.r1cs import ConstraintSystem
    from prover.formats.zkey import ProvingKey
    from prover.params import G1Point, G2Point
    from prover.phases import Phases
    from prover.setup import Trapdoor

Vector = Any
"""A vector of field elements held by a backend, in whatever form it likes; ``v[start:]`` is its tail."""

Pending = Any
"""An MSM under way; `Backend.fetch` turns a sequence of them into points."""


class Backend(Protocol):
    """Arithmetic of one curve with one resident proving key."""

    name: str
    """``reference``, ``host`` or ``cuda``."""
    phases: Phases
    """Every operation records its own spans here; the caller drains them after each proof."""

    loaded: tuple[Loaded, ...]
    """The artifacts as found in this process after loading; none for the reference."""
    device: dict[str, Any] | None
    """The GPU in use (name, arch, uuid, driver version); ``None`` for a CPU."""

    def load(self, key: ProvingKey) -> None:
        """Make the key's points and matrices resident. Raises `Missing` when memory does not suffice."""

    @property
    def arrangement(self) -> dict[str, Any]:
        """How the loaded key is kept, for people and records: words and figures by name; may be empty."""

    def check_points(self) -> tuple[str, int] | None:
        """The first point of the loaded key that is not on its curve, as (query, index); ``None`` if all are.

        Queries are the attributes of `ProvingKey`: ``a_query``, ``b_g1_query``, ``b_g2_query``, ``l_query``,
        ``h_query``. The identity is on the curve. Coordinates are already known to be below q.
        """

    def host_words(self, n: int) -> NDArray[np.uint8]:
        """Host memory for a witness of n wires, (n, 32), that `witness` takes in fastest. One at a time."""

    def witness(self, words: NDArray[np.uint8]) -> Vector:
        """Take in the witness: shape (n_vars, 32), standard form, each below r."""

    def sparse_products(self, witness: Vector) -> tuple[Vector, Vector]:
        """A.w and B.w over the domain (rows past the last constraint are zero), Montgomery form."""

    def multiply(self, a: Vector, b: Vector) -> Vector:
        """The element-wise product of two vectors of the domain's length."""

    def to_coset(self, *vectors: Vector) -> tuple[Vector, ...]:
        """Values on the domain -> values on the odd points of the domain of twice the size (two NTTs each).

        May work in place: the arguments are not used again.
        """

    def quotient(self, a: Vector, b: Vector, c: Vector) -> Vector:
        """a*b - c element-wise, as standard-form scalars ready for an MSM."""

    def msm_g1(self, query: str, scalars: Vector) -> Pending:
        """Start the MSM of the key's G1 ``query`` (``a_query``, ``b_g1_query``, ``h_query``, ``l_query``).

        ``scalars`` has exactly the query's length, in standard form: a witness, its tail, or a quotient.
        """

    def msm_g2(self, query: str, scalars: Vector) -> Pending:
        """Start the MSM of the key's G2 ``query`` (``b_g2_query``); as `msm_g1`."""

    def fetch(self, pending: Sequence[Pending]) -> list[Any]:
        """Wait for MSMs; affine points in standard form (`G1Point` or `G2Point`)."""

    def combine_g1(self, scalars: Sequence[int], points: Sequence[G1Point]) -> G1Point:
        """sum scalars[i] * points[i] of a handful of points of G1, at once; scalars in [0, r)."""

    def combine_g2(self, scalars: Sequence[int], points: Sequence[G2Point]) -> G2Point:
        """As `combine_g1`, in G2."""

    def close(self) -> None:
        """Release memory and scrub what held the witness."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyScalars:
    """What the points of a key are multiples by, each (n, 32) in standard form."""

    a: NDArray[np.uint8]
    """For a_query: A_s(tau) for every wire s."""
    b: NDArray[np.uint8]
    """For b_g1_query and b_g2_query."""
    public: NDArray[np.uint8]
    """For IC: beta A_s + alpha B_s + C_s of the constant and the public wires."""
    private: NDArray[np.uint8]
    """For l_query: the same of the other wires, over delta."""
    h: NDArray[np.uint8]
    """For h_query: the Lagrange basis at the odd points, over delta."""


@runtime_checkable
class KeyPolynomials(Protocol):
    """The polynomials of a circuit at a secret point. Backends may offer it, where Python is too slow."""

    def key_scalars(self, system: ConstraintSystem, trapdoor: Trapdoor) -> KeyScalars:
        """As `prover.setup.key_scalars`."""

    def double_montgomery(self, coefs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """coefficient * R^2 mod r for each. In and out: (n, 32)."""


@runtime_checkable
class DenseWires(Protocol):
    """Many wires of a synthetic circuit at once. Backends may offer it, where Python is too slow."""

    def dense_wires(
        self,
        c: NDArray[np.uint8],
        w_i: NDArray[np.uint8],
        w_j: NDArray[np.uint8],
        w_k: NDArray[np.uint8],
        d: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """(c w_i + w_j) (w_k + d), element by element; all (n, 32) in standard form, below r."""


@runtime_checkable
class PointGenerator(Protocol):
    """Multiples of the generators, for making test keys. Backends may offer it; the reference does."""

    def multiples_g1(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k*G1 for each scalar. In: (n, 32), standard form, below r. Out: (n, g1_bytes), as in key files."""

    def multiples_g2(self, scalars: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """k*G2 for each scalar. In: (n, 32), standard form, below r. Out: (n, g2_bytes), as in key files."""
