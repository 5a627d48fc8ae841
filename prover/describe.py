"""The facts of a key, a witness or a circuit, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.errors import ConfigurationError
from prover.check import Checker
from prover.formats.container import first_bytes
from prover.formats.r1cs import read_r1cs
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from prover.formats.zkey import ProvingKey


def describe(path: Path) -> dict[str, Any]:
    """Name -> value, as JSON has it. The file is read as strictly as for a proof, up to the curve equations
    of a key's queries, which take a backend. Raises what its reader raises.
    """
    magic = first_bytes(path, 4)
    readers = {b"zkey": _key, b"wtns": _witness, b"r1cs": _circuit}
    if magic not in readers:
        found = f"byte 0: starts with {magic!r}" if magic else "the file is empty"
        raise ConfigurationError(f"{path}: {found}", remedy="give a .zkey, .wtns or .r1cs file")
    return readers[magic](path)


def lines(facts: Mapping[str, Any]) -> list[str]:
    """The facts as a person reads them."""
    return [f"{name.replace('_', ' '):<18} {_shown(name, value)}" for name, value in facts.items()]


def _shown(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(name, part)}" for key, part in value.items())
    if isinstance(value, float):
        return f"{value:.0%}"
    return f"2^{value.bit_length() - 1}" if name == "domain" else str(value)


def _key(path: Path) -> dict[str, Any]:
    key = read_zkey(path)
    Checker.of_key(key)
    return {
        "kind": "Groth16 proving key",
        "curve": key.curve.name,
        "constraints": key.n_constraints,
        "wires": key.n_vars,
        "public_signals": key.n_public,
        "domain": key.domain_size,
        "entries": len(key.coefs),
        "identities": {query: _share(key, query) for query in ("a_query", "b_g1_query", "l_query")},
        "digest": key.file.digest(),
    }


def _share(key: ProvingKey, query: str) -> float:
    """The part of a query's points that are the identity: they cost an MSM nothing."""
    points = getattr(key, query)
    return float((~points.any(axis=1)).mean()) if len(points) else 0.0


def _witness(path: Path) -> dict[str, Any]:
    witness = read_wtns(path)
    small = ~witness.words[:, 1:].any(axis=1) & (witness.words[:, 0] < 2)
    return {
        "kind": "witness",
        "curve": witness.curve.name,
        "wires": len(witness.words),
        "zero_or_one": float(small.mean()),
        "digest": witness.file.digest(),
    }


def _circuit(path: Path) -> dict[str, Any]:
    system = read_r1cs(path)
    return {
        "kind": "constraint system",
        "curve": system.curve.name,
        "constraints": system.n_constraints,
        "wires": system.n_wires,
        "outputs": system.n_outputs,
        "public_inputs": system.n_public_inputs,
        "private_inputs": system.n_private_inputs,
        "entries": {name: len(getattr(system, name).rows) for name in "abc"},
    }
