"""What a running process maps, beside what it was asked to run: every target named must be there."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli import cli
from orchestrator.copies import Original
from orchestrator.errors import ConfigurationError
from orchestrator.model import Kind, State, Target, Verdict
from orchestrator.objects.contents import Form
from orchestrator.objects.digests import file_digest
from orchestrator.objects.traces import Traces
from orchestrator.processes import process_verdict

ONE = Target("one", Kind.SHARED_LIBRARY, ("one.cu",))
TWO = Target("two", Kind.SHARED_LIBRARY, ("two.cu",))
KERNELS = Target("kernels", Kind.CUBIN, ("kernels.cu",))
MEMBER = Target("member", Kind.OBJECT, ("member.cu",))


def original(folder: Path, name: str) -> Original:
    path = folder / f"{name}.so"
    path.write_bytes(name.encode() * 100)
    digest = file_digest(path.read_bytes())
    return Original(name, str(path), digest, digest, "sha256:recipe", True, Traces(Form.OTHER, digest))


@pytest.fixture
def originals(tmp_path: Path) -> Iterator[list[Original]]:
    """Two artifacts, of which this process maps the first."""
    found = [original(tmp_path, name) for name in ("one", "two")]
    with (tmp_path / "one.so").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        yield found


def judged(targets: list[Target], originals: list[Original], *, named: bool = True) -> Verdict:
    return process_verdict(targets, originals, os.getpid(), named=named)


def test_the_artifact_that_is_mapped(originals: list[Original]) -> None:
    assert judged([ONE], originals).state is State.FRESH


def test_one_of_two_is_not_enough(originals: list[Original]) -> None:
    verdict = judged([ONE, TWO], originals)
    assert verdict.state is State.UNPROVEN
    assert [(one.code, one.subject) for one in verdict.findings] == [("not-mapped", "two")]


def test_without_names_all_that_is_loaded_as_it_is_must_be_mapped(originals: list[Original]) -> None:
    assert judged([ONE, MEMBER], originals, named=False).state is State.FRESH
    for other in (TWO, KERNELS):
        (finding,) = judged([ONE, MEMBER, other], originals, named=False).findings
        assert finding.subject == other.name
    assert judged([MEMBER], originals, named=False).state is State.UNPROVEN


def test_what_is_linked_or_read_is_never_taken_as_mapped(originals: list[Original]) -> None:
    for target in (KERNELS, MEMBER):
        (finding,) = judged([target], originals).findings
        assert "is read or linked, not mapped" in finding.message


def test_a_target_that_was_never_built(originals: list[Original]) -> None:
    (finding,) = judged([ONE, TWO], originals[:1]).findings
    assert finding.subject == "two"


def test_files_of_other_targets_do_not_count(originals: list[Original]) -> None:
    assert judged([TWO], originals).state is State.UNPROVEN


def test_a_replaced_file_is_stale_whatever_else_is_mapped(originals: list[Original], tmp_path: Path) -> None:
    library = tmp_path / "one.so"
    data = library.read_bytes()
    library.unlink()
    library.write_bytes(data)
    verdict = judged([ONE], originals)
    assert verdict.state is State.STALE
    assert "replaced" in verdict.findings[0].message


@pytest.mark.parametrize("pid", ["0", "-1", "4194305"])
def test_a_process_that_is_not_there_is_a_wrong_word(pid: str) -> None:
    result = CliRunner().invoke(cli, ["gate", "--pid", pid], standalone_mode=False)
    assert isinstance(result.exception, ConfigurationError)
    assert f"no process has the number {pid}" in result.exception.what
