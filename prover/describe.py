"""The facts of a key, a witness or a circuit, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ConfigurationError, Missing
from prover.formats.r1cs import read_r1cs
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey

if TYPE_CHECKING:
    from pathlib import Path


def describe(path: Path) -> dict[str, object]:
    """Name -> value. The file is read as strictly as for a proof; raises what its reader raises."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise Missing(f"{path}: no such file", remedy="check the path") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    readers = {b"zkey": _key, b"wtns": _witness, b"r1cs": _circuit}
    if magic not in readers:
        found = f"byte 0: starts with {magic!r}" if magic else "the file is empty"
        raise ConfigurationError(f"{path}: {found}", remedy="give a .zkey, .wtns or .r1cs file")
    return readers[magic](path)


def _key(path: Path) -> dict[str, object]:
    key = read_zkey(path)
    return {
        "kind": "Groth16 proving key",
        "curve": key.curve.name,
        "constraints": key.n_constraints,
        "wires": key.n_vars,
        "public": key.n_public,
        "domain": f"2^{key.log_domain}",
        "entries": len(key.coefs),
        "identities": ", ".join(f"{q} {_share(key, q):.0%}" for q in ("a_query", "b_g1_query", "l_query")),
        "digest": key.file.digest(),
    }


def _share(key: object, query: str) -> float:
    """The part of a query's points that are the identity: they cost an MSM nothing."""
    points = getattr(key, query)
    return float((~points.any(axis=1)).mean()) if len(points) else 0.0


def _witness(path: Path) -> dict[str, object]:
    witness = read_wtns(path)
    small = ~witness.words[:, 1:].any(axis=1) & (witness.words[:, 0] < 2)
    return {
        "kind": "witness",
        "curve": witness.curve.name,
        "wires": len(witness.words),
        "zero or one": f"{small.mean():.0%}",
        "digest": witness.file.digest(),
    }


def _circuit(path: Path) -> dict[str, object]:
    system = read_r1cs(path)
    return {
        "kind": "constraint system",
        "curve": system.curve.name,
        "constraints": system.n_constraints,
        "wires": system.n_wires,
        "public": f"{system.n_outputs} outputs, {system.n_public_inputs} inputs",
        "private": f"{system.n_private_inputs} inputs",
        "entries": f"A {len(system.a.rows)}, B {len(system.b.rows)}, C {len(system.c.rows)}",
    }
