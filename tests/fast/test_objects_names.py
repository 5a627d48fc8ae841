"""Names from outside: what they stand for, and what of them reaches a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.cli.object_tables import kernel_table, print_table
from orchestrator.objects.demangle import demangle, longest_text
from orchestrator.objects.summary import summarize

CUBIN = Path(__file__).parents[1] / "data" / "objects" / "sm_90.cubin"
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
THRUST = (
    "_ZN3cub17CUB_300001_SM_9006detail10merge_sort30DeviceMergeSortBlockSortKernelINS2_10policy_hubIN6thr"
    "ust23THRUST_300001_SM_900_NS12zip_iteratorIN4cuda3std3__45tupleIJNS6_6detail15normal_iteratorINS6_10"
    "device_ptrIiEEEENSD_INSE_IfEEEEEEEEEE9Policy600ESK_PNS0_8NullTypeESK_SO_j5less2NSB_IJifEEESN_EEvbT0_"
    "T1_T2_T3_T4_PT6_PT7_T5_NS1_7vsmem_tE"
)  # fmt: skip


def doubling(depth: int) -> str:
    """A template of pairs of pairs: each of `depth` arguments stands for two of the one before."""
    pairs = "".join(f"S{DIGITS[number + 1]}_E" for number in range(depth))
    return f"_Z2dtI1P{'IS0_' * depth}Iii" + "E" + pairs + "EvPiT_"


def test_a_name_that_doubles_a_few_times_is_read_and_bounded() -> None:
    for depth in range(1, 10):
        text = demangle(doubling(depth))
        assert text.startswith("void dt<P<P<")
        assert len(text) < longest_text(doubling(depth))


@pytest.mark.parametrize("depth", [13, 22, 30])
def test_a_name_that_stands_for_too_much_is_left_as_it_is(depth: int) -> None:
    assert demangle(doubling(depth)) == doubling(depth)


def test_a_name_of_ten_thousand_references_is_bounded_itself() -> None:
    name = "_Z1f" + "S_" * 10_000
    assert demangle(name) == name


def test_long_names_of_real_libraries_are_read() -> None:
    text = demangle(THRUST)
    assert "thrust::" in text


ESCAPE = "\x1b]0;title\x07"


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "FORCE_COLOR": "", **variables}
    command = [sys.executable, "-c", "from orchestrator.cli import main; main()", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


def test_control_codes_in_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """Of files, in results and in errors, and of kernels."""
    good = tmp_path / f"good{ESCAPE}.cubin"
    good.write_bytes(CUBIN.read_bytes().replace(b"hello", b"h\x1b[3m"))
    bad = tmp_path / f"bad{ESCAPE}.cubin"
    bad.write_bytes(b"nothing known")
    for arguments in (
        ["inspect", str(good)],
        ["inspect", "--find", "pin_abc", str(good)],
        ["inspect", str(bad)],
        ["inspect", str(tmp_path / f"missing{ESCAPE}")],
        ["diff", "--all", str(good), str(CUBIN)],
        ["audit", str(tmp_path)],
        ["audit", f"--none{ESCAPE}"],
    ):
        done = run(*arguments)
        assert b"\x1b" not in done.stdout + done.stderr, arguments
    assert b"h\\x1b[3m" in run("inspect", str(good)).stdout


def test_names_that_an_encoding_cannot_show_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xc3\xa9.cubin")
    path.write_bytes(CUBIN.read_bytes())
    done = run("inspect", str(path), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\udcff\xe9.cubin" in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_answer(unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = "from orchestrator.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "inspect", "--find", "pin_abc", str(CUBIN)],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_narrow_terminal_gets_lines_instead_of_a_table() -> None:
    (cubin,) = summarize(CUBIN.read_bytes())
    narrow = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    print_table(narrow, kernel_table([cubin]))
    assert isinstance(narrow.file, io.StringIO)
    lines = [line.rstrip() for line in narrow.file.getvalue().splitlines()]
    at = lines.index("spills")
    assert lines[at + 1].strip().startswith("arch sm_90, registers 24, spills st/ld 32/32,")
    assert max(map(len, lines)) <= 80
