"""`groth16`: exit codes, messages, files whole or absent; the worker's side of the protocol."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError
from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict
from orchestrator.protocol import Answer, Failure, Ready, check_answer, parse_message
from prover import loading
from prover.cli import DETERMINISTIC, main
from prover.output import write_all

ROOT = Path(__file__).parents[2]
BLS, BN = ROOT / "tests/data/bls12381", ROOT / "tests/data/bn128"


@pytest.fixture
def groth16(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run the command in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["groth16", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return run


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
        "build",
    )
    return Admission((Verdict(names[0], State.STALE, (finding,), ()),), ())


def test_stale_code_is_refused_with_its_findings(groth16, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("orchestrator.gate.admit", refusing)
    code, _, err = groth16(*prove_arguments(BLS, tmp_path, backend="host"))
    assert code == 5
    assert "host-bls12_381 is stale: field.cuh changed" in err
    assert "freshproof build host-bls12_381" in err
    assert not (tmp_path / "p").exists()


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


# --- files together or not at all -----------------------------------------------------------------------


def test_both_files_or_none(tmp_path: Path, monkeypatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_all({first: "1", second: "2"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if target == second:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(ConfigurationError, match=r"second: cannot be written: No space"):
        write_all({first: "3", second: "4"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    with pytest.raises(ConfigurationError):
        write_all({tmp_path / "new": "5", second: "6"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "second"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "folder", Path("/dev/null"), tmp_path / "missing" / "x"):
        with pytest.raises(ConfigurationError, match="cannot be written"):
            write_all({tmp_path / "first": "1", target: "2"})
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


# --- the worker -----------------------------------------------------------------------------------------


class Started:
    """A worker process as the orchestrator starts it."""

    def __init__(self, cache: Path, *arguments: object, **variables: str) -> None:
        self.fd, theirs = os.pipe()
        env = {
            **os.environ,
            "FRESHPROOF_FD": str(theirs),
            "FRESHPROOF_NONCE": "abc",
            "FRESHPROOF_ARTIFACTS": "{}",
            "PYTHONPYCACHEPREFIX": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }
        argv = [sys.executable, "-m", "prover", "worker", *map(str, arguments)]
        self.process = subprocess.Popen(
            argv, env=env, pass_fds=(theirs,), stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        )
        os.close(theirs)
        self.answers = os.fdopen(self.fd, "rb")

    def ask(self, request: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(request + b"\n")
        self.process.stdin.flush()

    def end(self) -> int:
        self.process.communicate(timeout=30)
        self.answers.close()
        return self.process.returncode


def worker_files(backend: str = "reference") -> tuple[object, ...]:
    return ("--zkey", BLS / "mul.zkey", "--wtns", BLS / "mul.wtns", "--backend", backend)


def test_worker_serves_samples_and_says_what_it_runs(tmp_path: Path) -> None:
    worker = Started(tmp_path, *worker_files())
    ready = parse_message(worker.answers.readline())
    assert isinstance(ready, Ready) and ready.nonce == "abc" and ready.loaded == () and ready.device is None
    sources = {source.path: source.digest for source in ready.sources}
    for path in (
        "prover/__main__.py",
        "prover/groth16.py",
        "prover/reference.py",
        "prover/worker.py",
        "orchestrator/errors.py",
    ):
        assert sources[path] == "sha256:" + hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
    digest = "sha256:" + hashlib.sha256((BLS / "mul.zkey").read_bytes()).hexdigest()
    assert ready.work["key_digest"] == digest and ready.work["constraints"] == 1
    assert "numpy" in ready.versions
    for index, warmup in ((0, b"true"), (1, b"false")):
        worker.ask(b'{"op": "sample", "index": %d, "warmup": %s}' % (index, warmup))
        answer = parse_message(worker.answers.readline())
        assert isinstance(answer, Answer)
        check_answer(answer, index, 0, 1 << 63)
        assert answer.check.by.startswith("py-arkworks") and answer.spans
    worker.ask(b'{"op": "close"}')
    assert worker.end() == 0


def test_a_cold_sample_begins_with_the_key_file(tmp_path: Path) -> None:
    worker = Started(tmp_path, *worker_files(), "--cold")
    ready = parse_message(worker.answers.readline())
    assert isinstance(ready, Ready) and ready.work["timed from"] == "key file"
    for index in range(2):
        sent_ns = time.monotonic_ns()
        worker.ask(b'{"op": "sample", "index": %d, "warmup": false}' % index)
        answer = parse_message(worker.answers.readline())
        assert isinstance(answer, Answer) and answer.check.passed
        check_answer(answer, index, sent_ns, time.monotonic_ns())
        names = [span.name for span in answer.spans]
        opening = ["key read", "verification key", "code loaded", "points checked"]
        assert names[: len(opening)] == opening and "msm a_query" in names
    worker.ask(b'{"op": "close"}')
    assert worker.end() == 0


def test_a_memory_limit_for_a_backend_without_a_gpu_is_refused(tmp_path: Path) -> None:
    worker = Started(tmp_path, *worker_files(), "--gpu-memory", "24")
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == 2
    assert "the reference backend uses no GPU memory" in failure.message
    assert worker.end() == 2


def test_prove_tells_the_way_from_the_key_file_to_the_first_proof(groth16, tmp_path: Path) -> None:
    code, out, err = groth16(*prove_arguments(BLS, tmp_path, "--json"))
    cold = json.loads(out)["cold_start"]
    assert code == 0
    assert cold["total_ns"] > json.loads(out)["total_ns"]
    assert cold["spans"][0]["name"] == "key read"
    assert set(cold["before_ns"]) == {"process start", "gate"}
    assert "key file to first proof" in err and "process start (before it)" in err


def test_worker_ends_with_its_input(tmp_path: Path) -> None:
    worker = Started(tmp_path, *worker_files())
    worker.answers.readline()
    assert worker.end() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (worker_files("host"), 5, "names no admitted artifact host-bls12_381"),
        (("--zkey", BLS / "none.zkey", *worker_files()[2:]), 8, "none.zkey: no such file"),
        ((*worker_files()[:2], "--wtns", BN / "mul.wtns", *worker_files()[4:]), 2, "is for bn254"),
    ],
    ids=["not admitted", "no key", "wrong witness"],
)
def test_worker_reports_failures_with_their_exit_code(
    arguments: tuple[object, ...], code: int, words: str, tmp_path: Path
) -> None:
    worker = Started(tmp_path, *arguments)
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == code and words in failure.message
    assert worker.end() == code


def test_worker_refuses_an_unknown_request(tmp_path: Path) -> None:
    worker = Started(tmp_path, *worker_files())
    worker.answers.readline()
    worker.ask(b'{"op": "dance"}')
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and "dance" in failure.message
    assert worker.end() == 6


def test_worker_refuses_modules_that_may_have_run_from_bytecode(tmp_path: Path) -> None:
    """The trap: a .pyc whose source has the recorded size and time runs, whatever the source says."""
    subprocess.run(
        [sys.executable, "-c", "import prover.cli, prover.worker"],
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        cwd=ROOT,
    )
    worker = Started(tmp_path, *worker_files())
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == 5 and ".pyc" in failure.message
    assert worker.end() == 5


def test_worker_without_a_descriptor_says_what_it_is_for(groth16, monkeypatch) -> None:
    monkeypatch.delenv("FRESHPROOF_FD", raising=False)
    code, _, err = groth16("worker", *worker_files())
    assert code == 2 and "groth16 prove" in err
