"""`groth16 worker`: the prover's side of the protocol."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.protocol import Answer, Failure, Ready, check_answer, parse_message

ROOT = Path(__file__).parents[2]
BLS, BN = ROOT / "tests/data/bls12381", ROOT / "tests/data/bn128"


WORKER = ("prover", "worker")


class Started:
    """A worker process as the orchestrator starts it."""

    def __init__(
        self, cache: Path, *arguments: object, program: Sequence[str] = WORKER, **variables: str
    ) -> None:
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
        argv = [sys.executable, "-m", *program, *map(str, arguments)]
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


def test_a_synthetic_workload_that_cannot_make_its_circuit_says_so_to_the_orchestrator(
    tmp_path: Path,
) -> None:
    arguments = ("--curve", "bn254", "--log-domain", "3", "--binary", "0.123", "--backend", "host")
    worker = Started(tmp_path, *arguments, program=["benchmarks.synthetic"])
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == 5
    assert "names no admitted artifact host-bn254" in failure.message
    assert worker.end() == 5


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


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (("benchmarks.synthetic",), ("--curve", "bn", "--log-domain", "4", "--backend", "reference")),
        (("benchmarks.kernels", "ntt"), ("--curve", "bn", "--log-n", "4")),
        (("benchmarks.kernels", "msm"), ("--log-n", "4", "--group", "g1")),
    ],
)
def test_a_wrong_command_line_of_a_workload_reaches_the_orchestrator(
    tmp_path: Path, program: Sequence[str], arguments: Sequence[str]
) -> None:
    worker = Started(tmp_path, *arguments, program=program)
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == 2 and "--curve" in failure.message
    assert f"python -m {program[0]} --help" in failure.remedy
    assert worker.end() == 2


def test_a_workload_of_kernels_without_a_gpu_says_so_to_the_orchestrator(tmp_path: Path) -> None:
    arguments = ("--curve", "bn254", "--log-n", "4")
    worker = Started(tmp_path, *arguments, program=["benchmarks.kernels", "ntt"], CUDA_VISIBLE_DEVICES="")
    failure = parse_message(worker.answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == 8 and failure.remedy
    assert worker.end() == 8
