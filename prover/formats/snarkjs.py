"""The JSON files of snarkjs: proof.json, public.json and verification_key.json.

Numbers are decimal strings in standard form. Points are projective with z = 1; the identity is (0, 1, 0).
Readers are strict about shape. Range, curve and subgroup are left to `prover.check`, which rejects a proof
rather than a file.
"""

from __future__ import annotations

import json
import re
import stat
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.errors import ConfigurationError, Missing
from prover.groth16 import Proof, VerificationKey
from prover.params import CURVES, Curve, G1Point, G2Point, curve_by_name

if TYPE_CHECKING:
    from pathlib import Path

MAX_JSON_BYTES = 1 << 28
"""More than any of these files: 10^6 public signals take 80 MB."""
MAX_DEPTH = 8
"""Twice that of any of these files. Python's parser recurses, and py_ecc lifts its limit past the C stack."""

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,127}")


class MalformedJson(ConfigurationError):
    """A JSON file that breaks its format. Names the file and the place in it."""

    def __init__(self, path: Path, place: str, what: str) -> None:
        where = f"{path}: {place}: " if place else f"{path}: "
        super().__init__(where + what, remedy="give a file in the form that snarkjs writes")


def read_proof(path: Path) -> tuple[Curve | None, Proof]:
    """A proof and the curve that it names: ``None`` where it names none, as rapidsnark's do not.

    Raises `Missing` and `MalformedJson`.
    """
    document = _Document(path)
    curve = document.curve() if "curve" in document.fields else None
    a, b, c = document.g1("pi_a"), document.g2("pi_b"), document.g1("pi_c")
    return curve, Proof(a, b, c)


def read_verification_key(path: Path) -> VerificationKey:
    """A verification key; ``vk_alphabeta_12`` is not used. Raises `Missing` and `MalformedJson`."""
    document = _Document(path)
    curve = document.curve()
    ic = document.get("IC", list)
    n_public = document.get("nPublic", int)
    if len(ic) != n_public + 1:
        raise MalformedJson(path, "IC", f"has {len(ic)} points; nPublic = {n_public} needs {n_public + 1}")
    return VerificationKey(
        curve,
        alpha=document.g1("vk_alpha_1"),
        beta=document.g2("vk_beta_2"),
        gamma=document.g2("vk_gamma_2"),
        delta=document.g2("vk_delta_2"),
        ic=tuple(_g1(path, f"IC[{i}]", point) for i, point in enumerate(ic)),
    )


def read_public(path: Path) -> list[int]:
    """The public signals, not yet checked to be below r. Raises `Missing` and `MalformedJson`."""
    signals = _load(path)
    if not isinstance(signals, list):
        raise MalformedJson(path, "", "is not a list of public signals")
    return [_number(path, f"[{i}]", value) for i, value in enumerate(signals)]


def proof_json(curve: Curve, proof: Proof) -> str:
    """proof.json, byte for byte as snarkjs writes it."""
    return _dump(
        {
            "pi_a": _g1_json(proof.a),
            "pi_b": _g2_json(proof.b),
            "pi_c": _g1_json(proof.c),
            "protocol": "groth16",
            "curve": curve.file_name,
        }
    )


def public_json(signals: list[int]) -> str:
    """public.json, byte for byte as snarkjs writes it."""
    return _dump([str(signal) for signal in signals])


def verification_key_json(vk: VerificationKey) -> str:
    """verification_key.json, without the optional ``vk_alphabeta_12``."""
    return _dump(
        {
            "protocol": "groth16",
            "curve": vk.curve.file_name,
            "nPublic": len(vk.ic) - 1,
            "vk_alpha_1": _g1_json(vk.alpha),
            "vk_beta_2": _g2_json(vk.beta),
            "vk_gamma_2": _g2_json(vk.gamma),
            "vk_delta_2": _g2_json(vk.delta),
            "IC": [_g1_json(point) for point in vk.ic],
        }
    )


def _dump(value: object) -> str:
    return json.dumps(value, indent=1)


def _g1_json(point: G1Point) -> list[str]:
    return ["0", "1", "0"] if point is None else [str(point[0]), str(point[1]), "1"]


def _g2_json(point: G2Point) -> list[list[str]]:
    if point is None:
        return [["0", "0"], ["1", "0"], ["0", "0"]]
    (x0, x1), (y0, y1) = point
    return [[str(x0), str(x1)], [str(y0), str(y1)], ["1", "0"]]


def _load(path: Path) -> Any:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise MalformedJson(path, "", "is not a regular file")
        if status.st_size > MAX_JSON_BYTES:
            raise MalformedJson(path, "", f"is larger than {MAX_JSON_BYTES} bytes")
        data = path.read_bytes()
        if _depth(data) > MAX_DEPTH:
            raise MalformedJson(path, "", f"is nested more than {MAX_DEPTH} deep")
        return json.loads(data.decode(), object_pairs_hook=_unique)
    except FileNotFoundError:
        raise Missing(f"{path}: no such file", remedy="check the path") from None
    except OSError as error:
        what = f"{path}: cannot be read: {error.strerror}"
        raise ConfigurationError(what, remedy="check the path and its permissions") from None
    except ValueError as error:  # not UTF-8, not JSON, a repeated name, or a number too long
        raise MalformedJson(path, "", f"is not JSON: {error}") from None


def _depth(data: bytes) -> int:
    """The deepest nesting of brackets, those in strings counted too (these files have none there)."""
    text = np.frombuffer(data, np.uint8)
    steps = np.zeros(len(text), np.int8)
    for brackets, step in ((b"[{", 1), (b"]}", -1)):
        steps[np.isin(text, np.frombuffer(brackets, np.uint8))] = step
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name appears twice in one object")
    return result


class _Document:
    """A JSON object of one Groth16 curve, read field by field."""

    def __init__(self, path: Path) -> None:
        self.path = path
        value = _load(path)
        if not isinstance(value, dict):
            raise MalformedJson(path, "", "is not a JSON object")
        self.fields: dict[str, Any] = value
        if value.get("protocol") != "groth16":
            raise MalformedJson(path, "protocol", f"is {value.get('protocol')!r}, not 'groth16'")

    def get(self, name: str, kind: type) -> Any:
        value = self.fields.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise MalformedJson(self.path, name, f"is missing or not of type {kind.__name__}")
        return value

    def curve(self) -> Curve:
        name = self.get("curve", str)
        curve = curve_by_name(name)
        if curve is None or curve.file_name != name:
            known = ", ".join(c.file_name for c in CURVES)
            raise MalformedJson(self.path, "curve", f"{name!r} is not known; known: {known}")
        return curve

    def g1(self, name: str) -> G1Point:
        return _g1(self.path, name, self.fields.get(name))

    def g2(self, name: str) -> G2Point:
        value = self.fields.get(name)
        if not isinstance(value, list) or len(value) != 3:
            raise MalformedJson(self.path, name, "is not a point of three coordinates")
        (x0, x1), (y0, y1), z = (_pair(self.path, name, v) for v in value)
        if z == (0, 0) and (x0, x1, y0, y1) == (0, 0, 1, 0):
            return None
        if z != (1, 0):
            raise MalformedJson(self.path, name, "z is not 1")
        return ((x0, x1), (y0, y1))


def _g1(path: Path, place: str, value: Any) -> G1Point:
    if not isinstance(value, list) or len(value) != 3:
        raise MalformedJson(path, place, "is not a point of three coordinates")
    x, y, z = (_number(path, place, v) for v in value)
    if (x, y, z) == (0, 1, 0):
        return None
    if z != 1:
        raise MalformedJson(path, place, "z is not 1")
    return (x, y)


def _pair(path: Path, place: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise MalformedJson(path, place, "a coordinate is not a pair")
    return _number(path, place, value[0]), _number(path, place, value[1])


def _number(path: Path, place: str, value: Any) -> int:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise MalformedJson(path, place, f"{value!r:.80} is not a decimal number in quotes")
    return int(value)
