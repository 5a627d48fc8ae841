"""`groth16`: exit codes and messages."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict
from prover import loading
from prover.cli import DETERMINISTIC

ROOT = Path(__file__).parents[2]
BLS, BN = ROOT / "tests/data/bls12381", ROOT / "tests/data/bn128"


def prove_arguments(folder: Path, out: Path, *more: object, backend: str = "reference") -> list[object]:
    files = ("--zkey", folder / "mul.zkey", "--wtns", folder / "mul.wtns")
    return ["prove", *files, "--proof", out / "p", "--public", out / "u", "--backend", backend, *more]


# --- prove ----------------------------------------------------------------------------------------------


def test_proof_is_written_and_verified_by_both_kinds_of_key(groth16, tmp_path: Path) -> None:
    code, out, err = groth16(*prove_arguments(BLS, tmp_path))
    assert code == 0 and "valid (py-arkworks-bls12381" in out
    assert "msm a_query" in err and "unaccounted" in err
    assert DETERMINISTIC not in err
    assert (tmp_path / "u").read_text() == (BLS / "mul_public.json").read_text()
    for key in (("--vk", BLS / "mul_vk.json"), ("--zkey", BLS / "mul.zkey")):
        code, out, _ = groth16("verify", *key, "--proof", tmp_path / "p", "--public", tmp_path / "u")
        assert code == 0 and "valid" in out


def test_json_says_what_ran_and_standard_output_holds_nothing_else(groth16, tmp_path: Path) -> None:
    code, out, _ = groth16(*prove_arguments(BLS, tmp_path, "--json"))
    report = json.loads(out)
    assert code == 0
    assert report["zero_knowledge"] is True and report["warning"] is None
    assert (report["curve"], report["constraints"], report["backend"]) == ("bls12_381", 1, "reference")
    assert report["check"]["result"] == "pass" and report["loaded"] == []


def test_given_blinders_are_said_to_break_zero_knowledge(groth16, tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        code, out, err = groth16(*prove_arguments(BLS, tmp_path / name, "--test-blinders", 1, 2, "--json"))
        report = json.loads(out)
        assert code == 0 and DETERMINISTIC in err
        assert report["zero_knowledge"] is False and report["warning"] == DETERMINISTIC
        texts.append((tmp_path / name / "p").read_bytes())
    assert texts[0] == texts[1]


def test_blinders_out_of_range_are_refused(groth16, tmp_path: Path) -> None:
    code, _, err = groth16(*prove_arguments(BLS, tmp_path, "--test-blinders", 1, 1 << 256))
    assert code == 2 and "below the group order" in err


def broken_witness(tmp_path: Path) -> Path:
    data = bytearray((BLS / "mul.wtns").read_bytes())
    data[-32] ^= 1
    path = tmp_path / "broken.wtns"
    path.write_bytes(data)
    return path


def test_false_witness_writes_nothing(groth16, tmp_path: Path) -> None:
    arguments = prove_arguments(BLS, tmp_path)
    arguments[4] = broken_witness(tmp_path)
    (tmp_path / "p").write_text("old")
    code, out, err = groth16(*arguments)
    assert code == 6 and "nothing was written" in err and "--r1cs" in err and out == ""
    assert (tmp_path / "p").read_text() == "old" and not (tmp_path / "u").exists()


def test_false_witness_is_explained_by_the_circuit(groth16, tmp_path: Path) -> None:
    arguments = prove_arguments(BLS, tmp_path, "--r1cs", BLS / "mul.r1cs")
    arguments[4] = broken_witness(tmp_path)
    code, _, err = groth16(*arguments)
    assert code == 1 and "does not satisfy constraint 0" in err


def test_point_off_the_curve_is_refused_with_its_byte(groth16, tmp_path: Path) -> None:
    data = bytearray((BLS / "mul.zkey").read_bytes())
    from prover.formats.zkey import read_zkey

    section = read_zkey(BLS / "mul.zkey").file.section(7)
    data[section.offset + 192] ^= 1
    key = tmp_path / "k.zkey"
    key.write_bytes(data)
    arguments = prove_arguments(BLS, tmp_path)
    arguments[2] = key
    code, _, err = groth16(*arguments)
    assert code == 2 and f"byte {section.offset + 192}: section 7 (B2 points): point 1 is not on" in err


def test_mistakes_are_messages(groth16, tmp_path: Path) -> None:
    arguments = prove_arguments(BLS, tmp_path)
    arguments[2] = tmp_path / "nothing.zkey"
    code, _, err = groth16(*arguments)
    assert code == 8 and "nothing.zkey: no such file" in err and "->" in err
    arguments = prove_arguments(BLS, tmp_path)
    arguments[8] = arguments[6]
    code, _, err = groth16(*arguments)
    assert code == 2 and "same file" in err
    arguments = prove_arguments(BLS, tmp_path / "no" / "folder")
    code, _, err = groth16(*arguments)
    assert code == 2 and "cannot be written" in err
    arguments = prove_arguments(BLS, tmp_path)
    arguments[4] = BN / "mul.wtns"
    code, _, err = groth16(*arguments)
    assert code == 2 and "is for bn254" in err
    assert groth16("prove")[0] == 2


def test_prove_tells_the_way_from_the_key_file_to_the_first_proof(groth16, tmp_path: Path) -> None:
    code, out, err = groth16(*prove_arguments(BLS, tmp_path, "--json"))
    cold = json.loads(out)["cold_start"]
    assert code == 0
    assert cold["total_ns"] > json.loads(out)["total_ns"]
    assert cold["spans"][0]["name"] == "key read"
    assert set(cold["before_ns"]) == {"process start", "gate"}
    assert "key file to first proof" in err and "process start (before it)" in err


def test_a_witness_of_another_circuit_is_refused_before_the_key_is_loaded(
    groth16, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("prover.session.open_backend", lambda *_: pytest.fail("the work was begun"))
    for name, words in ((BLS / "pow5.wtns", "has 903 wires"), (BN / "mul.wtns", "is for bn254")):
        arguments = prove_arguments(BLS, tmp_path)
        arguments[4] = name
        code, _, err = groth16(*arguments)
        assert code == 2 and words in err


# --- no way around the gate -----------------------------------------------------------------------------


def refusing(root: Path, names: list[str]) -> Admission:
    finding = Finding(
        State.STALE,
        Link.INPUTS,
        "input-changed",
        "cuda_src/field.cuh",
        "old",
        "new",
        "field.cuh changed",
        "freshproof build",
    )
    return Admission((Verdict(names[0], State.STALE, (finding,), ()),), ())


def test_the_report_tells_of_the_backend_as_it_was_when_it_proved(
    groth16, tmp_path: Path, monkeypatch
) -> None:
    from prover.backends.reference import ReferenceBackend

    def arrangement(backend: ReferenceBackend) -> dict[str, str]:
        assert not getattr(backend, "closed", False), "a backend without its key has nothing to tell"
        return {"points": "resident"}

    monkeypatch.setattr(ReferenceBackend, "arrangement", property(arrangement))
    monkeypatch.setattr(ReferenceBackend, "close", lambda backend: setattr(backend, "closed", True))
    code, out, _ = groth16(*prove_arguments(BLS, tmp_path, "--json"))
    assert code == 0
    assert json.loads(out)["arrangement"] == {"points": "resident"}


def test_stale_code_is_refused_with_its_findings(groth16, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("orchestrator.gate.admit", refusing)
    code, _, err = groth16(*prove_arguments(BLS, tmp_path, backend="host"))
    assert code == 5
    assert "host-bls12_381 is stale: field.cuh changed" in err
    assert "freshproof build host-bls12_381" in err
    assert not (tmp_path / "p").exists()


def test_a_refusal_that_no_build_cures_says_what_does(groth16, tmp_path: Path, monkeypatch) -> None:
    finding = Finding(
        State.STALE, Link.CONTENTS, "loader-variable", "V", "unset", "1", "V=1: other code", "unset V"
    )
    refusal = Admission((Verdict("host-bls12_381", State.STALE, (finding,), ()),), ())
    monkeypatch.setattr("orchestrator.gate.admit", lambda root, names: refusal)
    code, _, err = groth16(*prove_arguments(BLS, tmp_path, backend="host"))
    assert code == 5
    assert "-> unset V\n" in err


def test_the_variable_of_the_orchestrator_does_not_lead_around_the_gate(
    groth16, tmp_path: Path, monkeypatch
) -> None:
    artifact = {"path": "/tmp/x.so", "digest": "sha256:0", "stamp": "0", "arch": None}
    monkeypatch.setenv("FRESHPROOF_ARTIFACTS", json.dumps({"host-bls12_381": artifact}))
    monkeypatch.setattr("orchestrator.gate.admit", refusing)
    assert groth16(*prove_arguments(BLS, tmp_path, backend="host"))[0] == 5


def test_admitted_artifact_is_handed_on_as_the_gate_gave_it(monkeypatch) -> None:
    admitted = Admitted(
        "host-bn254", Kind.SHARED_LIBRARY, "build/x.so", "sha256:1", "sha256:2", "sha256:3", None
    )
    fresh = Admission((Verdict("host-bn254", State.FRESH, (), ()),), (admitted,))
    monkeypatch.setattr("orchestrator.gate.admit", lambda root, names: fresh)
    artifact = loading.artifact_from_gate("host-bn254")
    assert artifact.path == ROOT / "build/x.so"
    assert (artifact.digest, artifact.stamp, artifact.arch) == ("sha256:1", "sha256:2", None)


def test_cuda_without_cupy_is_missing_and_nothing_else_is_tried(groth16, tmp_path: Path, monkeypatch) -> None:
    for name in [n for n in sys.modules if n.startswith("prover.backends.cuda")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, err = groth16(*prove_arguments(BLS, tmp_path, backend="cuda"))
    assert code == 8 and "CuPy" in err and out == ""
    assert not (tmp_path / "p").exists()


# --- verify ---------------------------------------------------------------------------------------------


def test_invalid_proofs_exit_with_1_and_the_reason(groth16, tmp_path: Path) -> None:
    proof = json.loads((BLS / "mul_proof.json").read_text())
    public = json.loads((BLS / "mul_public.json").read_text())

    def verify(proof: object, public: object, *more: str) -> tuple[int, str, str]:
        (tmp_path / "p").write_text(json.dumps(proof))
        (tmp_path / "u").write_text(json.dumps(public))
        files = ("--vk", BLS / "mul_vk.json", "--proof", tmp_path / "p", "--public", tmp_path / "u")
        return groth16("verify", *files, *more)

    assert verify(proof, public)[0] == 0
    code, _, err = verify(proof, [str(int(public[0]) + 1)])
    assert code == 1 and "the pairing equation does not hold" in err
    code, _, err = verify(proof, [])
    assert code == 1 and "0 public signals; the key is for 1" in err
    code, out, _ = verify(proof, [], "--json")
    assert code == 1 and json.loads(out)["result"] == "fail"
    code, _, err = verify({**proof, "curve": "bn128"}, public)
    assert code == 1 and "for bn254, the key for bls12_381" in err
    unnamed = {name: value for name, value in proof.items() if name != "curve"}  # as rapidsnark writes them
    assert verify(unnamed, public)[0] == 0
    assert verify(unnamed, [str(int(public[0]) + 1)])[0] == 1
    code, _, err = verify({**proof, "curve": None}, public)
    assert code == 2 and "curve" in err
    code, _, err = verify({**proof, "pi_a": ["1", "2"]}, public)
    assert code == 2 and "pi_a" in err


def test_verify_wants_one_key(groth16) -> None:
    assert groth16("verify", "--proof", "p", "--public", "u")[0] == 2


# --- keys, circuits, facts ------------------------------------------------------------------------------


def test_setup_makes_a_key_that_proves(groth16, tmp_path: Path) -> None:
    key, vk = tmp_path / "mul.zkey", tmp_path / "vk.json"
    code, out, _ = groth16(
        "setup", "--r1cs", BLS / "mul.r1cs", "--zkey", key, "--vk", vk, "--backend", "reference"
    )
    assert code == 0 and "test key" in out and "forge" in out
    arguments = prove_arguments(BLS, tmp_path)
    arguments[2] = key
    assert groth16(*arguments)[0] == 0
    files = ("--vk", vk, "--proof", tmp_path / "p", "--public", tmp_path / "u")
    assert groth16("verify", *files)[0] == 0


def test_seeded_setup_repeats_and_another_does_not(groth16, tmp_path: Path) -> None:
    texts = []
    for seed in (("--test-seed", "a"), ("--test-seed", "a"), ()):
        key = tmp_path / "k"
        groth16("setup", "--r1cs", BLS / "mul.r1cs", "--zkey", key, "--backend", "reference", *seed)
        texts.append(key.read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_synth_makes_what_it_is_asked_for(groth16, tmp_path: Path) -> None:
    key, wtns, r1cs = (tmp_path / name for name in ("s.zkey", "s.wtns", "s.r1cs"))
    files = ("--zkey", key, "--wtns", wtns, "--r1cs", r1cs, "--backend", "reference")
    assert groth16("synth", "--curve", "bls12_381", *files)[0] == 2
    assert groth16("synth", "--curve", "bls12_381", "--log-domain", 4, "--binary", 0.5, *files)[0] == 0
    for file, words in ((key, "2^4"), (wtns, "wires"), (r1cs, "constraints")):
        code, out, _ = groth16("info", file)
        assert code == 0 and words in out
    out_files = ("--proof", tmp_path / "p", "--public", tmp_path / "u", "--backend", "reference")
    assert groth16("prove", "--zkey", key, "--wtns", wtns, "--r1cs", r1cs, *out_files)[0] == 0


def test_info_on_something_else_is_refused(groth16, tmp_path: Path) -> None:
    assert groth16("info", __file__)[0] == 2
    assert groth16("info", tmp_path / "nothing")[0] == 8


def test_a_seed_may_be_any_text_of_the_command_line(groth16, tmp_path: Path) -> None:
    """Such as bytes that are no UTF-8."""
    files = ("--zkey", tmp_path / "k", "--wtns", tmp_path / "w", "--backend", "reference")
    code, _, _ = groth16("synth", "--curve", "bn254", "--constraints", 3, "--seed", "\udcff", *files)
    assert code == 0
    made = ("--zkey", tmp_path / "m", "--backend", "reference", "--test-seed", "\udcff")
    assert groth16("setup", "--r1cs", BN / "mul.r1cs", *made)[0] == 0
