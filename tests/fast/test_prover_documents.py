"""The documents of `groth16 --json`: each says what it is, and manifests/README.md names its keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLS = ROOT / "tests" / "data" / "bls12381"
REFERENCE = ("--backend", "reference")
COMMANDS = {
    "prove": (
        *("prove", "--zkey", BLS / "mul.zkey", "--wtns", BLS / "mul.wtns", *REFERENCE),
        *("--proof", "p", "--public", "u"),
    ),
    "verify": (
        *("verify", "--vk", BLS / "mul_vk.json"),
        *("--proof", BLS / "mul_proof.json", "--public", BLS / "mul_public.json"),
    ),
    "setup": ("setup", "--r1cs", BLS / "mul.r1cs", "--zkey", "k", "--vk", "v", *REFERENCE),
    "synth": ("synth", "--curve", "bn254", "--constraints", 5, "--zkey", "k", "--wtns", "w", *REFERENCE),
    "info": ("info", BLS / "mul.zkey"),
    "info of a witness": ("info", BLS / "mul.wtns"),
    "info of a circuit": ("info", BLS / "mul.r1cs"),
}
CHECK = {"result", "by", "seconds"}


def row(command: str) -> str:
    """What the table says of a command."""
    text = (ROOT / "manifests" / "README.md").read_text()
    (found,) = re.findall(rf"^\| `groth16 {command}` \| (.*) \|$", text, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_document_says_what_it_is_and_its_keys_are_in_the_table(
    groth16, tmp_path: Path, monkeypatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = name.split()[0]
    code, out, _ = groth16(*COMMANDS[name], "--json")
    document = json.loads(out)
    assert code == 0 and document.pop("schema") == f"groth16/{command}/1"
    told = row(command) + (row("setup") if command == "synth" else "")
    assert f"`groth16/{command}/1`" in told
    if command == "verify":
        assert set(document) == CHECK | {"proof", "public"}
        return
    assert {key for key in document if f"`{key}`" not in told} == set()
    if command == "prove":
        assert set(document["check"]) == CHECK


def test_every_key_of_a_proofs_document_is_there(groth16, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(groth16(*COMMANDS["prove"], "--json")[1])
    named = set(re.findall(r"`(\w+)`", row("prove"))) - {"before_ns", "null"}
    assert named <= {*document, *document["cold_start"]}


def test_a_document_of_an_invalid_proof_has_the_reason(groth16, tmp_path: Path) -> None:
    (tmp_path / "u").write_text('["1"]')
    code, out, _ = groth16(*COMMANDS["verify"][:5], "--public", tmp_path / "u", "--json")
    document = json.loads(out)
    assert code == 1 and document["schema"] == "groth16/verify/1"
    assert document["result"] == "fail" and "equation" in document["reason"]


def test_info_has_values_for_programs_and_words_for_people(groth16) -> None:
    document = json.loads(groth16("info", BLS / "mul.zkey", "--json")[1])
    assert (document["domain"], document["wires"], document["public_signals"]) == (4, 4, 1)
    assert all(0 <= share <= 1 for share in document["identities"].values())
    _, out, _ = groth16("info", BLS / "mul.zkey")
    assert re.search(r"^domain +2\^2$", out, re.MULTILINE)
    assert re.search(r"^identities +a_query \d+%, b_g1_query", out, re.MULTILINE)
