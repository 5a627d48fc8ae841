"""Situations in which builds have been stale, each with a real nvcc: stale ones are refused and named, fresh
ones are left alone.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.build import Result
from orchestrator.errors import BuildFailed, ConfigurationError, Missing
from orchestrator.gate import admit

pytestmark = pytest.mark.toolchain


def test_nothing_changed_nothing_is_built_and_the_gate_admits(tree):
    assert tree.results() == {"k": "fresh", "host": "fresh"}
    assert tree.findings() == {"k": set(), "host": set()}


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("src/k.cu", "+ H +", "- H +", {"k"}),
        ("inc/a.cuh", "A 1", "A 2", {"k", "host"}),
        ("inc/deep/c.cuh", "C 3", "C 4", {"k", "host"}),
        ("inc/h.cuh", "H 4", "H 5", {"k"}),
        ("inc/forced.cuh", "F 5", "F 6", {"k"}),
        ("src/other.cu", "7", "8", {"k"}),
        ("src/k.cu", "return 1", "return 2", {"k"}),
        ("src/unread.cuh", "U", "V", set()),
    ],
)
def test_an_edit_with_its_time_stamp_restored_is_stale_and_named(tree, file, old, new, stale):
    """Headers by -I, three levels deep, by a macro, by -include; another .cu; host-only code; one unread."""
    tree.edit(file, old, new)
    found = tree.findings()
    assert {t for t, f in found.items() if f} == stale
    assert all(found[t] == {("input-changed", file)} for t in stale)
    (verdict, *_) = [*(v for v in admit(tree.root, [], tree.environ).verdicts if v.findings), None]
    if verdict:
        (finding,) = verdict.findings
        assert finding.recorded.startswith("sha256:")
        assert finding.observed.startswith("sha256:")


def test_a_rebuild_after_an_edit_gives_the_bytes_of_a_clean_build(tree, tmp_path):
    tree.edit("inc/deep/c.cuh", "C 3", "C 9")
    assert tree.results() == {"k": "built", "host": "built"}
    assert set().union(*tree.findings().values()) == set()
    clean = type(tree)(tmp_path / "elsewhere" / "with space")
    for name in tree.SOURCES:
        clean.write(name, (tree.root / name).read_text())
    assert clean.results() == {"k": "built", "host": "built"}
    assert clean.bytes_of("k.cubin") == tree.bytes_of("k.cubin")
    assert clean.bytes_of("host.so") == tree.bytes_of("host.so")


def test_a_host_only_edit_is_stale_though_the_machine_code_stays(tree):
    tree.edit("src/k.cu", "return 1", "return 2")
    (outcome,) = tree.build("k").outcomes
    assert (outcome.result, outcome.same_code) == (Result.BUILT, True)
    assert outcome.reason == "input changed: src/k.cu"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first/a.cuh", "#define A 1\n#define C 3\n"),
        ("src/a.cuh", "#define A 1\n#define C 3\n"),
        ("first/deep/c.cuh", "#define C 9\n"),
        ("first/h.cuh", "#define H 9\n"),
        ("inc/maybe.cuh", "\n"),
        ("cuda_runtime.h", "\n"),
    ],
)
def test_a_name_that_was_looked_for_and_appears_is_stale(tree, name, text):
    """In a folder that did not exist, beside the includer, for __has_include, for nvcc's own -include."""
    tree.write(name, text)
    assert ("name-appeared", name) in tree.findings("k")["k"]
    assert tree.results("k")["k"] != "fresh"


def test_a_file_that_nothing_looks_for_may_appear(tree):
    tree.write("inc/deep/new.cuh", "\n")
    tree.write("first/unrelated.h", "\n")
    assert tree.findings() == {"k": set(), "host": set()}


def test_an_input_that_is_gone_is_stale_and_the_build_fails_with_the_compilers_words(tree):
    (tree.root / "inc" / "b.cuh").unlink()
    assert ("input-missing", "inc/b.cuh") in tree.findings("k")["k"]
    (outcome,) = tree.build("k").outcomes
    assert outcome.result is Result.FAILED
    assert "b.cuh: No such file or directory" in outcome.message
    assert tree.findings("k")["k"] >= {("input-missing", "inc/b.cuh")}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"sm_90"', '"sm_80"', "arch-changed"),
        ('"-DHDR=<h.cuh>"]', '"-DHDR=<h.cuh>", "-G"]', "flags-changed"),
        ('"forced.cuh", "-DHDR', '"forced.cuh", "-DN", "-DHDR', "flags-changed"),
        ('["first", "inc"]', '["inc", "first"]', "flags-changed"),
    ],
)
def test_a_changed_plan_is_stale_and_shows_both_sides(tree, old, new, code):
    tree.write("manifests/targets.toml", tree.TARGETS.replace(old, new, 1))
    (verdict,) = admit(tree.root, ["k"], tree.environ).verdicts
    assert code in {f.code for f in verdict.findings}
    for finding in verdict.findings:
        assert finding.recorded != finding.observed


@pytest.mark.parametrize("name", ["NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"])
def test_nvccs_own_variables_are_part_of_the_action(tree, name):
    tree.environ[name] = "-DEXTRA=1"
    assert tree.findings("k")["k"] == {("environment-changed", name)}
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()
    del tree.environ[name]
    assert tree.findings("k")["k"] == {("environment-changed", name)}


def test_other_variables_have_no_effect(tree):
    """Each would break or change the compile if it reached the tools."""
    for name in ("PTXAS_FLAGS", "NVVM_FLAGS", "CUDAFE_FLAGS", "INCLUDES", "SYSTEM_INCLUDES", "CPATH"):
        tree.environ[name] = "--no-such-option"
    assert tree.findings("k")["k"] == set()
    (outcome,) = tree.build("k", force=True).outcomes
    assert (outcome.result, outcome.same_code) == (Result.BUILT, True)


def test_a_damaged_artifact_is_refused_with_both_digests_and_built_again(tree):
    path = (tree.root / "build" / "bin" / "k.cubin").resolve()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    (verdict,) = admit(tree.root, ["k"], tree.environ).verdicts
    finding = verdict.findings[0]
    assert finding.code == "artifact-changed"
    assert finding.recorded != finding.observed
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()


def test_an_older_artifact_in_its_place_is_refused(tree):
    now = (tree.root / "build" / "bin" / "k.cubin").resolve()
    older = now.read_bytes()
    tree.edit("inc/h.cuh", "H 4", "H 5")
    tree.build("k")
    newer = (tree.root / "build" / "bin" / "k.cubin").resolve()
    assert newer != now
    newer.chmod(0o644)
    newer.write_bytes(older)
    assert ("artifact-changed", str(newer.relative_to(tree.root))) in tree.findings("k")["k"]


def test_a_kernel_that_must_be_there_and_is_not_fails_the_build_and_the_gate(tree):
    tree.write("manifests/targets.toml", tree.TARGETS.replace('["k"]', '["k", "k2"]'))
    (outcome,) = tree.build("k").outcomes
    assert outcome.result is Result.FAILED
    assert "k2" in outcome.message
    assert tree.findings("k")["k"]


def test_two_builds_of_one_source_are_the_same_bytes(tree):
    before = {name: tree.bytes_of(name) for name in ("k.cubin", "host.so")}
    assert {o.same_code for o in tree.build(force=True).outcomes} == {True}
    assert {name: tree.bytes_of(name) for name in before} == before


def test_the_stamp_is_in_the_artifact(tree):
    digits = tree.manifest("k")["recipe_digest"].removeprefix("sha256:")
    assert f"freshproof:{digits}\0".encode() in tree.bytes_of("k.cubin")
    digits = tree.manifest("host")["recipe_digest"].removeprefix("sha256:")
    assert f"freshproof:{digits}\0".encode() in tree.bytes_of("host.so")


def test_an_edited_wrapper_is_stale_and_named(tree):
    path = tree.wrapper('exec "$REAL" "$@"')
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()
    path.write_text(path.read_text() + "# other\n")
    assert tree.findings("k")["k"] == {("tool-changed", str(path))}


def test_another_nvcc_in_front_of_the_path_is_stale(tree):
    tree.wrapper('exec "$REAL" "$@"')
    codes = {code for code, _subject in tree.findings("k")["k"]}
    assert {"nvcc-changed", "tool-set-changed"} <= codes


@pytest.mark.parametrize("left", ["", "o : \\\n"])
def test_a_wrapper_that_swallows_the_dependency_list_is_never_no_dependencies(tree, left):
    work = "build/work/k/compile.d"
    tree.wrapper(f'"$REAL" "$@"; code=$?; [ -e {work} ] && printf "{left}" > {work}; exit $code')
    (outcome,) = tree.build("k").outcomes
    assert outcome.result is Result.FAILED
    assert "dependency list" in outcome.message
    assert tree.findings("k")["k"]


def test_a_source_edited_while_nvcc_runs_is_not_recorded_as_fresh(tree):
    """The first time is built again; when it goes on, the build fails."""
    tree.wrapper(f'{tree.ASKING}\n"$REAL" "$@"; code=$?; echo >> inc/h.cuh; exit $code')
    (outcome,) = tree.build("k").outcomes
    assert outcome.result is Result.FAILED
    assert "inc/h.cuh" in outcome.message
    assert tree.findings("k")["k"]


def test_a_header_swapped_and_put_back_while_nvcc_runs_is_built_again(tree):
    tree.wrapper(
        f"{tree.ASKING}\n"
        '[ -e swapped ] && exec "$REAL" "$@"\n'
        "mv inc/h.cuh kept; echo '#define H 99' > inc/h.cuh\n"
        '"$REAL" "$@"; code=$?; mv kept inc/h.cuh; touch swapped; exit $code',
    )
    notes = []
    from orchestrator.build import Progress

    (outcome,) = tree.build("k", progress=Progress(note=notes.append)).outcomes
    assert outcome.result is Result.BUILT
    assert any("inc/h.cuh" in note for note in notes)
    assert tree.findings("k")["k"] == set()
    assert outcome.same_code


def test_a_file_taken_in_by_the_assembler_or_an_options_file_is_an_input(tree):
    tree.write("inc/table.bin", "abcd")
    tree.write("options.txt", "-DOPT=1")
    tree.write("inc/macros.s", ".set one, 1\n")
    tree.write(
        "src/host.cu",
        'asm(".incbin \\"inc/table.bin\\"");\nasm(".include \\"inc/macros.s\\"");\n'
        'extern "C" int f() { return OPT; }\n',
    )
    tree.write("manifests/targets.toml", tree.TARGETS + 'flags = ["-Xcompiler", "@options.txt"]\n')
    assert tree.results("host")["host"] == "built"
    assert tree.findings("host")["host"] == set()
    tree.edit("inc/table.bin", "b", "x")
    tree.edit("options.txt", "1", "2")
    tree.edit("inc/macros.s", "1", "2")
    assert tree.findings("host")["host"] == {
        ("input-changed", "inc/macros.s"),
        ("input-changed", "inc/table.bin"),
        ("input-changed", "options.txt"),
    }


def test_a_dependency_that_has_vanished_is_unproven_and_not_built_over_and_over(tree):
    """A wrapper generates a header in a temporary folder and removes it."""
    tree.wrapper(
        f"{tree.ASKING}\n"
        'mkdir -p gone; echo "#define A 1" > gone/t.cuh; "$REAL" "$@" -include gone/t.cuh; code=$?\n'
        "rm -r gone; exit $code",
    )
    tree.write("src/k.cu", 'extern "C" __global__ void k(int *p) { *p = F; }\n')
    assert tree.results("k")["k"] == "unproven"
    assert tree.results("k")["k"] == "unproven"
    (outcome,) = tree.build("k").outcomes
    assert outcome.seconds == 0
    assert "gone/t.cuh" in outcome.reason
    assert {code for code, _subject in tree.findings("k")["k"]} == {"input-unfollowed"}


def test_a_compiler_that_dies_or_says_nothing_is_a_failure(tree):
    top = tree.own_toolkit()
    ptxas = top / "bin" / "ptxas"
    ptxas.unlink()
    for text in ("kill -9 $$", "exit 0"):
        ptxas.write_text(f"#!/bin/sh\n{text}\n")
        ptxas.chmod(0o755)
        (outcome,) = tree.build("k").outcomes
        assert outcome.result is Result.FAILED
        assert outcome.message


def test_a_name_with_a_command_in_it_runs_nothing(tree):
    name = "$(touch X).cu"
    shutil.copy(tree.root / "src" / "k.cu", tree.root / "src" / name)
    tree.write("manifests/targets.toml", tree.TARGETS.replace("src/k.cu", f"src/{name}"))
    with pytest.raises(ConfigurationError, match="shell"):
        tree.build("k")
    assert not (tree.root / "X").exists()


def test_headers_with_odd_names_are_followed(tree):
    for name in ("a b.cuh", "$(touch X).cuh", "d'q.cuh", "h#.cuh", "ü.cuh"):
        tree.write(f"inc/{name}", f"// {name}\n")
        source = (tree.root / "src" / "host.cu").read_text()
        tree.write("src/host.cu", f'#include "{name}"\n{source}')
    (tree.root / os.fsdecode(b"inc/\xff.cuh")).write_text("\n")
    with (tree.root / "src" / "host.cu").open("ab") as file:
        file.write(b'#include "\xff.cuh"\n')
    assert tree.results("host")["host"] == "built"
    assert tree.findings("host")["host"] == set()
    assert not list(tree.root.rglob("X"))
    tree.edit("inc/$(touch X).cuh", "//", "/*")
    assert tree.findings("host")["host"] == {("input-changed", "inc/$(touch X).cuh")}


def test_no_nvcc_or_no_compiler_is_said_with_what_to_do(tree, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "nvcc").symlink_to(Path("/usr/local/cuda/bin/nvcc"))
    from orchestrator import toolchain

    with pytest.raises(Missing, match=r"C\+\+ compiler") as caught:
        toolchain.discover(toolchain.Nvcc(f"{Path(tree.NVCC)}", "test"), str(empty), ())
    assert "g++" in caught.value.remedy


def test_a_toolchain_that_does_not_answer_is_refused_by_the_gate_not_a_crash(tree):
    tree.wrapper("exit 3")
    assert {code for code, _subject in tree.findings("k")["k"]} == {"cannot-plan"}
    with pytest.raises(BuildFailed):
        tree.build("k")


def test_a_build_killed_at_any_moment_leaves_the_next_one_right(tree):
    tree.edit("inc/h.cuh", "H 4", "H 6")
    for wait in (0.15, 0.3, 0.5, 0.8):
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "build"],
            cwd=tree.root, env={**os.environ, **tree.environ}, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(wait)
        process.kill()
        process.wait()
        assert set(tree.findings()) == {"k", "host"}
    assert set(tree.results().values()) <= {"built", "fresh"}
    assert tree.findings() == {"k": set(), "host": set()}
    assert list((tree.root / "build" / "manifests").glob(".*")) == []


def test_what_makes_the_driver_run_other_code_is_refused(tree):
    tree.environ["CUDA_FORCE_PTX_JIT"] = "1"
    assert tree.findings() == {"k": {("loader-variable", "CUDA_FORCE_PTX_JIT")}, "host": set()}


def test_variants_have_artifacts_of_their_own(tree):
    tree.write(
        "manifests/targets.toml", tree.TARGETS + '[target.host.variants.other]\ndefines = ["UNREAD=1"]\n'
    )
    assert tree.results() == {"k": "fresh", "host": "fresh", "host.other": "built"}
    assert tree.manifest("host.other")["product"]["path"] != tree.manifest("host")["product"]["path"]
    assert tree.findings("host.other") == {"host.other": set()}
