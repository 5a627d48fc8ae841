"""Edits of one cargo package beside crates that do not depend on it."""

import shutil

import pytest

pytestmark = [pytest.mark.toolchain, pytest.mark.needs("cargo")]

KERNEL = "groth16-cuda/cuda/groth16_cuda.cu"
MANIFEST = "[package]\nname = 'other'\nversion = '0.1.0'\n"


def test_an_edit_of_a_build_script_leaves_crates_alone_that_do_not_need_it(story_files, bare):
    crate = {"Cargo.toml": MANIFEST, "src/lib.rs": "pub fn one() -> i32 { 1 }\n"}
    build = ("cargo", "build", "--release", "--offline")
    project = bare(
        {f"other/{name}": text for name, text in crate.items()}, build, ("target/release/prove-bench",)
    )
    shutil.copytree(story_files, project.root, dirs_exist_ok=True)
    dependencies = "[dependencies]\n"
    project.edit("prove-bench/Cargo.toml", dependencies, f"{dependencies}other = {{ path = '../other' }}\n")
    project.edit("Cargo.toml", '"prove-bench"', '"prove-bench", "other"')
    project.edit("prove-bench/src/main.rs", "fn main() {", "fn main() {\n    assert_eq!(other::one(), 1);")
    project.run()
    assert project.gate().returncode == 0
    project.edit("groth16-cuda/build.rs", "fn main() {", "fn main() {\n    // an edit")
    assert project.gate().returncode == 125
    assert project.run() == {KERNEL: "compiled"}
    done = project.gate()
    assert done.returncode == 0, done.stdout
    project.file("other/Cargo.toml", project.file("other/Cargo.toml") + "# a comment\n")
    assert project.gate().returncode == 0, "cargo does not see it, and has no need to"
    project.file("other/Cargo.toml", project.file("other/Cargo.toml") + "edition = '2021'\n")
    assert project.gate().returncode == 125
