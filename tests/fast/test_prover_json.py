"""The JSON files of snarkjs: written as it writes them, and what is none refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from prover.formats.snarkjs import (
    MalformedJson,
    proof_json,
    public_json,
    read_proof,
    read_public,
    read_verification_key,
    verification_key_json,
)
from prover.params import CURVES, Curve

DATA = Path(__file__).parents[1] / "data"
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


@both_curves
def test_json_is_written_byte_for_byte_as_snarkjs_does(curve: Curve) -> None:
    folder = DATA / curve.file_name
    named, proof = read_proof(folder / "pow5_proof.json")
    assert named == curve
    assert proof_json(curve, proof) == (folder / "pow5_proof.json").read_text()
    signals = read_public(folder / "pow5_public.json")
    assert public_json(signals) == (folder / "pow5_public.json").read_text()
    assert public_json([]) == "[]"


def test_verification_key_survives_writing(tmp_path: Path) -> None:
    vk = read_verification_key(DATA / "bls12381" / "mul_vk.json")
    path = tmp_path / "vk.json"
    path.write_text(verification_key_json(vk))
    assert read_verification_key(path) == vk


BAD_PROOFS = {
    "empty": ("", "not JSON"),
    "not UTF-8": ("\udcff", "not JSON"),
    "a list": ("[]", "not a JSON object"),
    "another protocol": ('{"protocol": "plonk"}', "protocol"),
    "another curve": ('{"protocol": "groth16", "curve": "bls12377"}', "bls12377"),
    "no point": ('{"protocol": "groth16", "curve": "bn128"}', "pi_a"),
    "a number without quotes": ('{"protocol": "groth16", "curve": "bn128", "pi_a": [1, "2", "1"]}', "quotes"),
    "a sign": ('{"protocol": "groth16", "curve": "bn128", "pi_a": ["-1", "2", "1"]}', "decimal"),
    "a leading zero": ('{"protocol": "groth16", "curve": "bn128", "pi_a": ["01", "2", "1"]}', "decimal"),
    "an endless number": (
        '{"protocol": "groth16", "curve": "bn128", "pi_a": ["' + "9" * 5000 + '", "2", "1"]}',
        "decimal",
    ),
    "z not 1": ('{"protocol": "groth16", "curve": "bn128", "pi_a": ["1", "2", "2"]}', "z is not 1"),
    "a name twice": ('{"protocol": "groth16", "protocol": "groth16"}', "twice"),
    "deep nesting": ("[" * 100_000, "nested more than 8 deep"),
}


@pytest.mark.parametrize("name", BAD_PROOFS)
def test_proof_that_is_no_proof_is_refused(name: str, tmp_path: Path) -> None:
    text, words = BAD_PROOFS[name]
    path = tmp_path / "p.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(MalformedJson) as caught:
        read_proof(path)
    assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)


def test_verification_key_with_a_false_count_is_refused(tmp_path: Path) -> None:
    text = (DATA / "bn128" / "mul_vk.json").read_text().replace('"nPublic": 1', '"nPublic": 2')
    path = tmp_path / "vk.json"
    path.write_text(text)
    with pytest.raises(MalformedJson, match="nPublic = 2 needs 3"):
        read_verification_key(path)
