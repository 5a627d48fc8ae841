"""Names from outside: what they stand for, and what of them reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import orchestrator.cli.gate as gate_module
import orchestrator.cli.verify as verify_module
from orchestrator.cli import cli
from orchestrator.cli.object_tables import kernel_table
from orchestrator.cli.terminal import print_table
from orchestrator.model import Admission, Finding, Link, State, Verdict
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


ODD = os.fsdecode(b"two\nlines\t\x1b[31m\xff[bold].cubin")
PLAIN = r"two\nlines\t\x1b[31m\udcff[bold].cubin"


def is_plain(output: bytes) -> bool:
    """Every line of it could be printed: no line is the rest of a name."""
    return all(line.isprintable() and not line.startswith("lines") for line in output.decode().split("\n"))


def test_a_name_with_a_line_feed_stays_on_its_line(tmp_path: Path) -> None:
    """Of files, in every command about files, as text and as JSON, in results and in errors."""
    odd = tmp_path / ODD
    odd.write_bytes(CUBIN.read_bytes())
    (tmp_path / "cut").mkdir()
    cut = tmp_path / "cut" / ODD
    cut.write_bytes(CUBIN.read_bytes()[:-8])
    for arguments in (
        ["inspect", "--digests", "--texts", str(odd)],
        ["inspect", str(cut), str(cut), str(tmp_path)],
        ["inspect", "--find", "pin_abc", str(odd)],
        ["inspect", "--find", ODD, str(odd)],
        ["diff", "--all", str(odd), str(CUBIN)],
        ["diff", str(odd), str(cut)],
        ["audit", str(tmp_path)],
        ["audit", str(tmp_path / "cut")],
        ["audit", str(tmp_path), "--program", str(odd)],
        ["audit", f"--{ODD}"],
        ["gate", f"--{ODD}"],
        ["gate", ODD],
        ["verify", ODD],
    ):
        done = run(*arguments)
        assert is_plain(done.stdout + done.stderr), (arguments, done)
        assert PLAIN.encode() in done.stdout + done.stderr or arguments[0] == "diff", (arguments, done)
        told = run(*arguments, "--json")
        assert is_plain(told.stdout + told.stderr), (arguments, told)
        json.loads(told.stdout)
    (file,) = json.loads(run("inspect", "--json", str(odd)).stdout)["files"]
    assert os.fsencode(file["path"]) == os.fsencode(odd)


@pytest.mark.parametrize("command", ["verify", "gate"])
def test_findings_about_such_names_stay_on_their_lines(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding(State.STALE, Link.INPUTS, "input-changed", ODD, ODD, None, f"{ODD}: changed", ODD)
    verdict = Verdict(ODD, State.STALE, (finding,), ())
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "targets.toml").write_text("schema = 1\n")
    monkeypatch.chdir(tmp_path)
    for module in (gate_module, verify_module):
        monkeypatch.setattr(module, "admit", lambda *_: Admission((verdict,), ()))
    shown = CliRunner().invoke(cli, [command], standalone_mode=False).stdout
    assert all(line.isprintable() and not line.startswith("lines") for line in shown.split("\n"))
    assert shown.count(PLAIN) == 4
    told = json.loads(CliRunner().invoke(cli, [command, "--json"], standalone_mode=False).stdout)
    assert told["targets"][0]["findings"][0]["subject"] == ODD


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
