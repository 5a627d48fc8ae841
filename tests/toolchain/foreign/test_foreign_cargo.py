"""The story: a `.cu` in a Rust crate, compiled by build.rs, archived, linked into a benchmark."""

import os
import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.toolchain, pytest.mark.needs("cargo")]

KERNEL = "groth16-cuda/cuda/groth16_cuda.cu"
HEADER = "groth16-cuda/include/params.cuh"


def test_a_rebuild_that_changes_nothing_is_fresh_and_said_not_to_have_compiled(restored):
    assert restored.run() == {KERNEL: "not compiled"}
    code, states, _said = restored.verify()
    assert code == 0 and set(states.values()) == {"fresh"}


def test_the_program_runs_with_its_own_output_and_exit_code(restored):
    done = restored.gate()
    assert (done.returncode, done.stdout) == (0, "proof in 88 s\n")
    assert restored.tool("gate", "--", "sh", "-c", "exit 7").returncode == 7


@pytest.mark.parametrize(
    "file, old, new",
    [
        (KERNEL, "WINDOW;", "WINDOW + 1;"),
        (HEADER, "WINDOW 4", "WINDOW 5"),
        (KERNEL, "return 88", "return 83"),
        ("groth16-cuda/src/lib.rs", "unsafe {", "unsafe { /* edited */"),
        ("prove-bench/src/main.rs", "proof in", "a proof in"),
        ("groth16-cuda/build.rs", "-O2", "-O1"),
        ("groth16-cuda/Cargo.toml", "0.1.0", "0.1.1"),
    ],
)
def test_an_edit_after_the_build_is_refused_by_name(restored, file, old, new):
    restored.edit(file, old, new)
    done = restored.gate()
    assert done.returncode == 125
    assert file in done.stdout
    assert "proof in" not in done.stdout.replace(file, "")


def test_restored_size_and_time_do_not_hide_an_edit(restored):
    restored.edit_unseen(KERNEL, "= WINDOW", "=WINDOW ")
    assert restored.run() == {KERNEL: "NOT COMPILED"}
    assert restored.gate().returncode == 125


def test_a_header_that_build_rs_does_not_track(restored):
    restored.edit(HEADER, "WINDOW 4", "WINDOW 6")
    assert restored.run() == {KERNEL: "NOT COMPILED"}
    (row,) = restored.document["sources"]
    assert "had to be" in row["reason"] and HEADER in row["reason"]
    assert restored.gate().returncode == 125


def test_an_edit_that_is_built_is_fresh(restored):
    restored.edit(KERNEL, "return 88", "return 83")
    assert restored.run() == {KERNEL: "compiled"}
    done = restored.gate()
    assert (done.returncode, done.stdout) == (0, "proof in 83 s\n")


def test_an_unrecorded_build_is_not_taken_for_the_recorded_one(restored):
    restored.edit(KERNEL, "return 88", "return 84")
    restored.alone()
    assert restored.gate().returncode == 125
    subprocess.run(["git", "checkout", "-q", "."], cwd=restored.root, check=True)
    assert restored.gate().returncode == 125


CONSULTING = """
    let tune = std::fs::read_to_string("../../tune.cfg").unwrap();
    let version = std::fs::read_to_string("include/version.h").unwrap();
    let fast = std::path::Path::new("../../fast").exists();
    println!("cargo:warning={} {} {}", tune.len(), version.len(), fast);
"""


@pytest.mark.parametrize(
    "change",
    ["tune.cfg", "fast", "zk/groth16-cuda/include/version.h"],
    ids=["read", "asked-for", "in-project"],
)
def test_what_build_rs_looked_at_is_an_input(restored, change):
    """Cargo runs it again for what it names only, so a build finds nothing to do."""
    beside = restored.root.parent
    path = beside / change
    for name, text in (("tune.cfg", "1"), ("zk/groth16-cuda/include/version.h", "// 1\n")):
        (beside / name).write_text(text)
    restored.edit("groth16-cuda/build.rs", "fn main() {", "fn main() {" + CONSULTING)
    assert restored.run() == {KERNEL: "compiled"}
    assert restored.gate().returncode == 0
    before = path.read_text() if path.exists() else None
    path.write_text("// 22\n")
    restored.run()
    said = restored.gate()
    assert said.returncode == 125
    assert path.name in said.stdout
    path.write_text(before) if before else path.unlink()
    assert restored.gate().returncode == 0


def test_an_unrecorded_build_is_told_as_one(restored):
    """The program has two names in target/: neither is a wrong copy of the other."""
    restored.edit(KERNEL, "return 88", "return 84")
    restored.alone()
    said = restored.gate().stdout
    assert "was written again, and `freshproof run` did not see it" in said
    assert "LD_LIBRARY_PATH" not in said
    assert said.count("-> build it again behind `freshproof run --`") == 1


def test_an_object_taken_out_of_the_archive(restored):
    (archive,) = restored.root.glob("target/release/build/*/out/libgroth16_cuda.a")
    subprocess.run(["ar", "d", archive, "groth16_cuda.o"], check=True)
    done = restored.gate()
    assert done.returncode == 125
    assert "libgroth16_cuda.a" in done.stdout


def test_flags_from_the_environment(restored):
    done = restored.gate(NVCC_APPEND_FLAGS="-lineinfo")
    assert done.returncode == 125
    assert "NVCC_APPEND_FLAGS" in done.stdout


def test_a_clean_that_removes_nothing_leaves_what_was_built(restored):
    assert not list(restored.root.glob("target/release/build/supraseal-c2-*"))  # what `rm -rf` would remove
    restored.edit(HEADER, "WINDOW 4", "WINDOW 7")
    assert restored.run() == {KERNEL: "NOT COMPILED"}
    code, states, _said = restored.verify()
    assert code == 5 and "stale" in states.values()


def test_two_profiles_are_told_apart(restored):
    restored.run("cargo", "build", "--offline")
    code, states, _said = restored.verify()
    assert code == 0 and len(states) == 2
    restored.edit(KERNEL, "return 88", "return 82")
    restored.run()
    code, states, _said = restored.verify()
    assert sorted(states.values()) == ["fresh", "stale"]
    assert restored.gate().returncode == 0
    assert restored.tool("gate", "--", "./target/debug/prove-bench").returncode == 125
    shutil.rmtree(restored.root / "target" / "debug")


def test_a_profile_changed_and_changed_back(restored):
    """Cargo puts the earlier program in its place again, and makes nothing."""
    manifest = restored.file("Cargo.toml")
    restored.file("Cargo.toml", manifest + "\n[profile.release]\nopt-level = 1\n")
    assert "compiled" in restored.run().values()
    assert restored.verify()[:2] == (0, {"target/release/prove-bench": "fresh"})
    restored.file("Cargo.toml", manifest)
    restored.run()
    assert restored.verify()[:2] == (0, {"target/release/prove-bench": "fresh"})
    assert sorted(row["state"] for row in restored.document["sources"]) == ["left over", "not compiled"]


def test_a_source_edited_while_the_program_runs_voids_the_run(restored):
    script = f"{restored.program[0]}; echo '// later' >> {KERNEL}"
    done = restored.tool("gate", "--", "sh", "-c", script)
    assert done.returncode == 6
    assert "void" in done.stderr and KERNEL in done.stderr
    assert done.stdout == "proof in 88 s\n"


def test_a_quoted_command_is_looked_into(restored):
    restored.edit(HEADER, "WINDOW 4", "WINDOW 8")
    assert restored.tool("gate", "--", "env", "X=1", f"{restored.program[0]} --quiet").returncode == 125


def test_cargo_bench_builds_behind_run_and_times_behind_the_gate(restored):
    bench = ("cargo", "bench", "--offline", "--bench", "speed")
    restored.run(*bench, "--no-run")
    done = restored.tool("gate", "--", *bench)
    assert (done.returncode, done.stdout) == (0, "benched: proof in 88 s\n")
    os.utime(restored.root / KERNEL)
    done = restored.tool("gate", "--", *bench)
    assert done.returncode == 6 and "void" in done.stderr, "cargo built it again before it ran it"
    restored.edit(KERNEL, "return 88", "return 81")
    assert restored.tool("gate", "--", *bench).returncode == 125
    restored.run("cargo", "clean", "-p", "groth16-cuda", "-p", "prove-bench", "--offline")
