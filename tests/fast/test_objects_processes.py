"""What a running process maps, beside what it was asked to run: every target named must be there."""

from __future__ import annotations

import dataclasses
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator import mapped_files, processes
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


def replace_the_file(folder: Path) -> None:
    (folder / "one.so").unlink()
    (folder / "one.so").write_bytes(b"another")


def test_a_replaced_file_is_judged_by_what_is_mapped(originals: list[Original], tmp_path: Path) -> None:
    """The bytes of the artifact are mapped, whatever lies at its path now; then the artifact is another."""
    replace_the_file(tmp_path)
    if mapped_files.read_mapped(os.getpid(), mapping_of("one.so")) is None:
        pytest.skip("this user cannot read mapped files")
    assert judged([ONE], originals).state is State.FRESH
    newer = dataclasses.replace(originals[0], digest="sha256:newer", unstamped="sha256:newer")
    verdict = judged([ONE], [newer])
    assert verdict.state is State.STALE
    assert "replaced or deleted since it was loaded" in verdict.findings[0].message


def test_a_replaced_file_that_cannot_be_read_is_stale(
    originals: list[Original], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_the_file(tmp_path)
    monkeypatch.setattr(processes, "read_mapped", lambda *_: None)
    verdict = judged([ONE], originals)
    assert verdict.state is State.STALE
    assert "replaced" in verdict.findings[0].message


def test_a_deleted_file_of_another_name_that_cannot_be_read_is_unproven(
    originals: list[Original], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 5000)
    with other.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, EXECUTABLE):
        other.unlink()
        monkeypatch.setattr(processes, "read_mapped", lambda *_: None)
        found = processes.survey_processes(originals).mapped
        (one,) = [one for one in found if one.pid == os.getpid() and one.path == str(other)]
        assert (one.state, one.target) == (State.UNPROVEN, "")
        assert "cannot be read: unproven" in one.fault
        assert judged([ONE], originals).state is State.UNPROVEN


def test_a_name_with_a_line_feed_is_one_mapping(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"two\nlines\x1b\xff (deleted)")
    odd.write_bytes(b"x" * 5000)
    with odd.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        found = [m for m in mapped_files.mappings_of(os.getpid()) or () if "lines" in m.path]
        assert [m.path for m in found] == [str(odd).removesuffix(" (deleted)")]


EXECUTABLE = mmap.PROT_READ | mmap.PROT_EXEC


def mapping_of(name: str) -> mapped_files.Mapping:
    (found,) = [m for m in mapped_files.mappings_of(os.getpid()) or () if Path(m.path).name == name]
    return found


@pytest.mark.parametrize("pid", ["0", "-1", "4194305"])
def test_a_process_that_is_not_there_is_a_wrong_word(pid: str) -> None:
    result = CliRunner().invoke(cli, ["gate", "--pid", pid], standalone_mode=False)
    assert isinstance(result.exception, ConfigurationError)
    assert f"no process has the number {pid}" in result.exception.what
