"""The readers, digests and commands on what a real nvcc makes in its many modes."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from compiles import MAIN, NVCC, PART, nvcc
from small_project import freshproof

from orchestrator.objects.contents import Form, walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.digests import device_digest, file_digest, normalised_digest
from orchestrator.objects.elf import read_elf
from orchestrator.objects.registration import read_registrations
from orchestrator.objects.search import search, text_pattern
from orchestrator.objects.summary import summarize

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "objects" / "sample.cu"

MODES: dict[str, list[list[str]]] = {
    "whole.o": [["-c", "-arch=sm_90", "sample.cu", "-o", "whole.o"]],
    "debug.o": [["-c", "-G", "-g", "-arch=sm_90", "sample.cu", "-o", "debug.o"]],
    "lines.o": [["-c", "-lineinfo", "-arch=sm_90", "sample.cu", "-o", "lines.o"]],
    "rdc.o": [["-c", "-rdc=true", "-arch=sm_90", "sample.cu", "-o", "rdc.o"]],
    "lto.o": [["-c", "-dlto", "-arch=sm_90", "sample.cu", "-o", "lto.o"]],
    "many.fatbin": [
        ["-fatbin", *(f"-gencode=arch=compute_{n},code=sm_{n}" for n in ("75", "80", "90a", "120f")),
         "-gencode=arch=compute_120,code=compute_120", "sample.cu", "-o", "many.fatbin"]
    ],
    "size.fatbin": [["-fatbin", "--compress-mode=size", "-arch=sm_90", "sample.cu", "-o", "size.fatbin"]],
    "speed.fatbin": [["-fatbin", "--compress-mode=speed", "-arch=sm_90", "sample.cu", "-o", "speed.fatbin"]],
    "none.fatbin": [["-fatbin", "--compress-mode=none", "-arch=sm_90", "sample.cu", "-o", "none.fatbin"]],
    "shared.so": [["-shared", "-Xcompiler=-fPIC", "-arch=sm_90", "sample.cu", "-o", "shared.so"]],
    "parts.a": [
        ["-c", "-rdc=true", "-arch=sm_90", "main.cu", "-o", "main.o"],
        ["-c", "-rdc=true", "-arch=sm_90", "part.cu", "-o", "part.o"],
        ["-lib", "main.o", "part.o", "-o", "parts.a"],
    ],
    "linked.o": [["-dlink", "-arch=sm_90", "main.o", "part.o", "-o", "linked.o"]],
    "program": [["-arch=sm_90", "main.o", "part.o", "-o", "program"]],
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of each mode."""
    folder = tmp_path_factory.mktemp("modes")
    shutil.copy(SAMPLE, folder / "sample.cu")
    (folder / "main.cu").write_text(MAIN)
    (folder / "part.cu").write_text(PART)
    for commands in MODES.values():
        for command in commands:
            nvcc(folder, *command)
    return folder


def wheels_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("inspect_wheels", ROOT / "benchmarks" / "inspect_wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["inspect_wheels"] = module
    spec.loader.exec_module(module)
    return module


COMPARISON = wheels_script()
CUOBJDUMP = COMPARISON.find_cuobjdump()


@pytest.mark.skipif(CUOBJDUMP is None, reason="cuobjdump is not here: pip install nvidia-cuda-cuobjdump")
@pytest.mark.parametrize("name", MODES)
def test_cuobjdump_sees_the_same(built: Path, name: str) -> None:
    path = built / name
    ours = COMPARISON.seen_by_us(path)
    theirs = COMPARISON.seen_by_cuobjdump(CUOBJDUMP, path, ours.device_functions)
    assert theirs.entries
    assert COMPARISON.differences(ours, theirs) == []


@pytest.mark.skipif(CUOBJDUMP is None, reason="cuobjdump is not here: pip install nvidia-cuda-cuobjdump")
def test_cuobjdump_sees_the_same_after_link_time_optimisation(built: Path, tmp_path: Path) -> None:
    """The machine code is made by the device link, which needs libnvvm beside nvcc."""
    command = [NVCC, "-dlto", "-arch=sm_90", "main.cu", "part.cu", "-o", str(tmp_path / "program")]
    run = subprocess.run(command, cwd=built, capture_output=True, text=True, timeout=300, check=False)
    if "library load error" in run.stderr:
        pytest.skip("this toolkit has no libnvvm for the device link")
    assert run.returncode == 0, run.stderr
    ours = COMPARISON.seen_by_us(tmp_path / "program")
    theirs = COMPARISON.seen_by_cuobjdump(CUOBJDUMP, tmp_path / "program", ours.device_functions)
    assert ("nvvm", "sm_90") in theirs.entries
    assert COMPARISON.differences(ours, theirs) == []


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_ptxas_says_the_same(tmp_path: Path, arch: str) -> None:
    """Registers, stack frame, spills: ``-Xptxas -v`` against the bytes of the cubin."""
    told = nvcc(tmp_path, "-cubin", f"-arch={arch}", "-Xptxas=-v", str(SAMPLE), "-o", "sample.cubin")
    expected = {}
    for block in told.split("Compiling entry function ")[1:]:
        frame = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", block
        )
        registers = re.search(r"Used (\d+) registers", block)
        assert frame
        assert registers
        expected[block.split("'")[1]] = (int(registers[1]), *(int(number) for number in frame.groups()))
    kernels = read_cubin((tmp_path / "sample.cubin").read_bytes()).kernels
    assert {k.name: (k.registers, k.frame, k.spill_stores, k.spill_loads) for k in kernels} == expected
    assert expected["spills"][2] > 0


BOUNDS = """
extern "C" __global__ void __launch_bounds__(256, BLOCKS, 4) bounded(int *p) { *p = 1; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int *p) { *p = 2; }
extern "C" __global__ void __maxnreg__(64) limited(int *p) { *p = 3; }
"""


def test_launch_bounds(tmp_path: Path) -> None:
    """A cubin holds no least number of blocks: only the limit of registers that came of it differs."""
    (tmp_path / "bounds.cu").write_text(BOUNDS)
    for blocks in ("2", "3"):
        nvcc(tmp_path, "-fatbin", "-arch=sm_90", f"-DBLOCKS={blocks}", "bounds.cu", "-o", f"{blocks}.fatbin")
    two, three = (
        {
            one.name: one
            for piece in summarize((tmp_path / f"{blocks}.fatbin").read_bytes())
            for one in piece.functions
        }
        for blocks in ("2", "3")
    )
    assert {name: (f.max_threads, f.cluster, f.max_cluster, f.max_registers) for name, f in two.items()} == {
        "bounded": ((256, 1, 1), None, 4, 128),
        "clustered": (None, (2, 1, 1), None, 255),
        "limited": (None, None, None, 64),
    }
    assert replace(three["bounded"], max_registers=128) == two["bounded"]
    assert three["bounded"].max_registers == 80
    (text,) = [piece for piece in summarize((tmp_path / "3.fatbin").read_bytes()) if piece.ptx_entries]
    assert {
        one.name: (one.max_threads, one.min_blocks, one.cluster, one.max_cluster, one.max_registers)
        for one in text.ptx_entries
    } == {
        "bounded": ((256, 1, 1), 3, None, 4, None),
        "clustered": (None, None, (2, 1, 1), None, None),
        "limited": (None, None, None, None, 64),
    }


@pytest.mark.parametrize("mode", ["whole.o", "debug.o", "lines.o", "rdc.o", "lto.o", "shared.so", "program"])
def test_built_twice(built: Path, tmp_path: Path, mode: str) -> None:
    """T49: the file may differ, the normalised and the device digest do not."""
    first = (built / mode).read_bytes()
    again = tmp_path / "again"
    for command in MODES[mode]:
        nvcc(built, *command[:-1], str(again))
    second = again.read_bytes()
    assert normalised_digest(first) == normalised_digest(second)
    assert device_digest(first) == device_digest(second)


def test_an_edit_of_host_code_alone(built: Path, tmp_path: Path) -> None:
    """T56: the device code is the same, and yet it is another object."""
    source = (built / "main.cu").read_text()
    (tmp_path / "main.cu").write_text(source.replace("return 0", "return 3"))
    (tmp_path / "before.cu").write_text(source)
    for name in ("before", "main"):
        nvcc(tmp_path, "-c", "-rdc=true", "-arch=sm_90", f"{name}.cu", "-o", f"{name}.o")
    before, after = ((tmp_path / f"{name}.o").read_bytes() for name in ("before", "main"))
    assert normalised_digest(before) != normalised_digest(after)
    # internal names hash the source's path, which is why digests of devices leave it out
    assert device_digest(before) == device_digest(after)


def test_flags_without_effect(tmp_path: Path) -> None:
    """T52: the compiler's note tells the flags, the machine code is the same."""
    variants = {"plain": [], "said": ["-Xptxas=-O3"], "limit": ["-maxrregcount=64"]}
    for name, flags in variants.items():
        nvcc(tmp_path, "-cubin", "-arch=sm_90", *flags, str(SAMPLE), "-o", f"{name}.cubin")
    plain, said, limit = ((tmp_path / f"{name}.cubin").read_bytes() for name in variants)
    assert file_digest(plain) != file_digest(said)
    assert device_digest(plain) == device_digest(said) != device_digest(limit)
    told = freshproof(tmp_path, "diff", "plain.cubin", "said.cubin")
    assert told.stdout == "0 of 4 kernels changed; other: sm_90 .note.nv.tkinfo changed\n"
    told = freshproof(tmp_path, "diff", "plain.cubin", "limit.cubin")
    assert "register limit 255 -> 64" in told.stdout


def test_text_in_compressed_device_code(built: Path) -> None:
    """T51: `strings` does not see it."""
    for name in ("size.fatbin", "rdc.o", "debug.o"):
        data = (built / name).read_bytes()
        assert b"pin_abc" not in data
        assert search(data, text_pattern("pin_abc")).hits, name


def test_stripping_leaves_the_device_code(built: Path, tmp_path: Path) -> None:
    shutil.copy(built / "shared.so", tmp_path / "stripped.so")
    subprocess.run(["strip", "--strip-all", "stripped.so"], cwd=tmp_path, check=True)
    whole, stripped = (built / "shared.so").read_bytes(), (tmp_path / "stripped.so").read_bytes()
    assert device_digest(whole) == device_digest(stripped)


def test_a_thin_archive(built: Path, tmp_path: Path) -> None:
    shutil.copy(built / "whole.o", tmp_path / "whole.o")
    subprocess.run(["ar", "rcT", "thin.a", "whole.o"], cwd=tmp_path, check=True)
    shown = freshproof(tmp_path, "inspect", "--json", "thin.a")
    assert shown.returncode == 0
    forms = [piece["form"] for piece in json.loads(shown.stdout)["files"][0]["pieces"]]
    assert forms == ["archive", "object", "cubin", "ptx"]
    (tmp_path / "whole.o").unlink()
    gone = freshproof(tmp_path, "inspect", "thin.a")
    assert gone.returncode == 2
    assert "whole.o" in gone.stderr


@pytest.mark.parametrize("name", ["whole.o", "rdc.o", "linked.o", "shared.so", "program"])
def test_registrations_lead_to_containers(built: Path, name: str) -> None:
    """The records of `.nvFatBinSegment`, through relocations in objects and addresses in linked files."""
    data = (built / name).read_bytes()
    records = read_registrations(read_elf(data))
    assert records
    assert {data[record.container : record.container + 4] for record in records if record.container} == {
        b"\x50\xed\x55\xba"
    }
    assert all(record.container for record in records)
    linked = {"whole.o": {1}, "rdc.o": {1}, "linked.o": {2}, "shared.so": {1, 2}, "program": {1, 2}}
    assert {record.version for record in records} == linked[name]


def test_a_program_is_told_from_a_library(built: Path) -> None:
    """Both are ET_DYN."""
    assert next(walk((built / "program").read_bytes())).form is Form.EXECUTABLE
    assert next(walk((built / "shared.so").read_bytes())).form is Form.SHARED_LIBRARY


def test_find_says_where_and_answers_by_exit_code(built: Path) -> None:
    found = freshproof(built, "inspect", "--find", "pin_abc", "rdc.o")
    assert found.returncode == 0
    assert "__nv_relfatbin entry 1 (sm_90) .nv.global.init, $str" in found.stdout
    absent = freshproof(built, "inspect", "--find", "/pin_(xyz|abd)/", "rdc.o")
    assert (absent.returncode, absent.stdout) == (1, "")
    sealed = freshproof(built, "inspect", "--find", "pin_xyz", "lto.o")
    assert sealed.returncode == 3
    assert "obfuscated" in sealed.stderr
    wrong = freshproof(built, "inspect", "--find", "/(/", "rdc.o")
    assert wrong.returncode == 2


def test_inspect_in_plain_text(built: Path) -> None:
    shown = freshproof(built, "inspect", "many.fatbin", "program")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    for word in ("sm_75", "sm_90a", "sm_120f", "compute_120", "void add<float>(float*, float const*, int)"):
        assert word in shown.stdout
    assert "executable" in shown.stdout


def test_diff_answers_by_exit_code(built: Path, tmp_path: Path) -> None:
    same = freshproof(built, "diff", "whole.o", "whole.o")
    assert (same.returncode, same.stdout.strip()) == (0, "identical, byte by byte")
    edited = tmp_path / "sample.cu"
    edited.write_text(SAMPLE.read_text().replace("pin_abc", "pin_abd"))
    nvcc(tmp_path, "-c", "-arch=sm_90", "sample.cu", "-o", "edited.o")
    different = freshproof(built, "diff", "whole.o", str(tmp_path / "edited.o"))
    assert different.returncode == 1
    assert "1 of 4 kernels changed" in different.stdout
    assert "- 'pin_abc %d\\n'" in different.stdout
    as_json = freshproof(built, "diff", "--json", "whole.o", str(tmp_path / "edited.o"))
    changed = [k["name"] for k in json.loads(as_json.stdout)["kernels"] if k["change"] != "same"]
    assert set(changed) == {"hello"}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("inspect", "nowhere.o"), "nowhere.o"),
        (("inspect", "."), "is a folder"),
        (("inspect", "/dev/null"), "is no regular file"),
        (("inspect", "main.cu"), "main.cu: none of the kinds"),
        (("inspect", "cut.o"), "cut.o: "),
        (("diff", "whole.o", "cut.o"), "cut.o: "),
    ],
)
def test_a_wrong_file_is_named_without_a_traceback(built: Path, command: tuple[str, ...], told: str) -> None:
    (built / "cut.o").write_bytes((built / "whole.o").read_bytes()[:-100])
    run = freshproof(built, *command)
    assert run.returncode == 2
    assert told in run.stderr
    assert "Traceback" not in run.stderr
