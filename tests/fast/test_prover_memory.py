"""Work that this machine's memory cannot hold is refused before it begins, with need and have."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import Missing
from orchestrator.protocol import Failure, parse_message
from prover import memory
from prover.backends import KeyScalars
from prover.params import BN254
from prover.setup import key_bytes, seeded_trapdoor, write_test_key
from prover.synth import N_PUBLIC, Shape, synthesize

ROOT = Path(__file__).parents[2]
BLS = ROOT / "tests" / "data" / "bls12381"
MEMINFO = "MemTotal:  8000 kB\nMemAvailable:  4000 kB\nSwapFree:  1000 kB\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine with 5,000 kB to be had, where nothing else limits the process unless the test says so."""

    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/meminfo", MEMINFO)
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return write


def test_free_memory_and_swap_can_be_had(world) -> None:
    assert memory.available() == (5000 << 10, "on this machine")
    memory.require_memory(5000 << 10, "it")
    with pytest.raises(Missing) as caught:
        memory.require_memory(10**9, "a key")
    assert caught.value.what == (
        "1.00 GB of memory are needed at least for a key; 0.01 GB can be had on this machine"
    )
    assert caught.value.remedy


def test_a_limit_counts_without_what_is_used(world, monkeypatch: pytest.MonkeyPatch) -> None:
    world("proc/self/status", "Name:\tx\nVmSize:\t  1000 kB\n")
    for limit, left in ((3000, 2000), (500, 0)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, n=limit: (n << 10, n << 10))
        have, where = memory.available()
        assert have == left << 10 and "ulimit -v" in where


def test_the_tightest_control_group_counts_without_its_caches(world) -> None:
    world("proc/self/cgroup", "1:cpu:/\n0::/outer/inner\n")
    world("groups/outer/memory.max", "3000000\n")
    world("groups/outer/memory.current", "2500000\n")
    world("groups/outer/memory.stat", "anon 1\nactive_file 100000\ninactive_file 200000\n")
    world("groups/outer/inner/memory.max", "max\n")
    world("groups/outer/inner/memory.current", "1\n")
    have, where = memory.available()
    assert have == 800_000 and "control group" in where


def test_where_nothing_is_told_nothing_is_refused(world, tmp_path: Path) -> None:
    (tmp_path / "proc" / "meminfo").unlink()
    memory.require_memory(1 << 60, "it")


def test_errors_of_memory_are_told_apart(world) -> None:
    found = memory.shortage(MemoryError("Unable to allocate 2 GiB"))
    assert found is not None and "Unable to allocate 2 GiB" in found.what and found.exit_code == 8
    assert memory.shortage(OSError(errno.ENOMEM, "Cannot allocate memory")) is not None
    assert memory.shortage(OSError(errno.EACCES, "no")) is None
    assert memory.shortage(ValueError()) is None


# --- what is needed -------------------------------------------------------------------------------------


class Zeros:
    """A generator whose points are all zero: only sizes matter here."""

    def key_scalars(self, system, trapdoor) -> KeyScalars:
        def zeros(n: int) -> np.ndarray:
            return np.zeros((n, 32), np.uint8)

        w, public = system.n_wires, system.n_public + 1
        domain = 1 << (system.n_constraints + system.n_public).bit_length()
        return KeyScalars(zeros(w), zeros(w), zeros(public), zeros(w - public), zeros(domain))

    def double_montgomery(self, coefs):
        return coefs.copy()

    def multiples_g1(self, scalars):
        return np.zeros((len(scalars), 64), np.uint8)

    def multiples_g2(self, scalars):
        return np.zeros((len(scalars), 128), np.uint8)

    def dense_wires(self, c, w_i, w_j, w_k, d):
        return c


@pytest.mark.parametrize("binary", [0.0, 0.5])
def test_what_is_asked_for_is_a_lower_bound_of_what_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: float
) -> None:
    """And no idle one: above half of it."""
    asked: list[int] = []
    monkeypatch.setattr("prover.setup.require_memory", lambda need, what: asked.append(need))
    shape = Shape(BN254, 20_000, binary)
    tracemalloc.start()
    try:
        system, words = synthesize(shape, Zeros())
        kept = tracemalloc.get_traced_memory()[0]
        write_test_key(tmp_path / "k", system, seeded_trapdoor(BN254, "0"), Zeros())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shape.n_wires == system.n_wires == len(words)
    assert shape.n_entries == len(system.a.rows) + len(system.b.rows)
    assert shape.system_bytes <= kept <= 2 * shape.system_bytes
    counts = {"n_wires": shape.n_wires, "n_public": N_PUBLIC, "n_constraints": 20_000}
    assert asked == [key_bytes(BN254, **counts, n_entries=shape.n_entries)]
    need = shape.system_bytes + asked[0]
    assert need <= peak <= 2 * need


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`groth16` with 4 GB of addresses."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, 4 * 10**9))

    argv = [sys.executable, "-m", "prover", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, preexec_fn=limit)


def test_a_circuit_too_large_for_the_limit_is_refused_at_once(tmp_path: Path) -> None:
    files = ("--zkey", tmp_path / "k", "--wtns", tmp_path / "w", "--backend", "reference")
    done = limited("synth", "--curve", "bn254", "--log-domain", 24, *files)
    assert done.returncode == 8 and "Traceback" not in done.stderr
    assert "16777213 constraints" in done.stderr and "can be had under the limit of 4.00 GB" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_key_too_large_to_be_mapped_is_a_message(tmp_path: Path) -> None:
    """A file with a hole of 8 GB, as sparse as it is."""
    key = tmp_path / "k.zkey"
    with key.open("wb") as file:
        file.write(b"zkey")
        file.truncate(8 * 10**9)
    done = limited("info", key)
    assert done.returncode == 8 and "Traceback" not in done.stderr
    assert "k.zkey: 8.00 GB of addresses are needed to map it" in done.stderr


def test_a_worker_without_memory_says_so_to_the_orchestrator(groth16, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr("prover.worker.Session.open", fail)
    ours, theirs = os.pipe()
    monkeypatch.setenv("FRESHPROOF_FD", str(theirs))
    files = ("--zkey", BLS / "mul.zkey", "--wtns", BLS / "mul.wtns", "--backend", "reference")
    code, _, _ = groth16("worker", *files)
    with os.fdopen(ours, "rb") as answers:
        failure = parse_message(answers.readline())
    assert isinstance(failure, Failure) and failure.exit_code == code == 8
    assert "Unable to allocate 9 GiB" in failure.message and failure.remedy
