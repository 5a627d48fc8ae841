"""Targets and recorded builds judged together: gate and verify ask the same question."""

import json
import mmap
import os
import time

import pytest
from click.testing import CliRunner

import orchestrator.cli.gate as gate_module
import orchestrator.cli.verify as verify_module
from orchestrator.cli import cli
from orchestrator.foreign.admission import Checked, decide
from orchestrator.foreign.loaded import older_processes
from orchestrator.foreign.made import Build
from orchestrator.foreign.store import Store
from orchestrator.model import Admission, Admitted, Kind, Link, State, Verdict

CUBIN = Admitted("k", Kind.CUBIN, "build/k.cubin", "sha256:k", "", "sha256:m", "sm_90")
OWN = Admission((Verdict("k", State.FRESH, (), ((Link.INPUTS, 1),)),), (CUBIN,))
EMPTY = Build("/p", ("true",), "/p")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a target that is fresh, and the record of a build that made nothing."""
    Store(tmp_path).write(Build(str(tmp_path), ("true",), str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    for module in (gate_module, verify_module):
        monkeypatch.setattr(module, "admit", lambda root, names: OWN)
    monkeypatch.setattr(verify_module, "_details", lambda *_: {})
    monkeypatch.setattr(verify_module, "observe_copies", lambda *_: {})
    return tmp_path


def with_targets(project):
    (project / "manifests").mkdir()
    (project / "manifests/targets.toml").write_text("schema = 1\n")


@pytest.mark.parametrize("command", ["gate", "verify"])
def test_where_a_recorded_build_made_nothing_the_targets_decide_and_that_is_said(project, command):
    with_targets(project)
    result = CliRunner().invoke(cli, [command], standalone_mode=False)
    assert result.return_value == 0
    assert "(`true`) made no CUDA code; the targets decide" in result.output


@pytest.mark.parametrize("command", ["gate", "verify"])
def test_without_targets_an_empty_record_is_refused_with_a_finding(project, command):
    result = CliRunner().invoke(cli, [command, "--json"], standalone_mode=False)
    assert result.return_value == 5
    (target,) = json.loads(result.stdout)["targets"]
    (finding,) = target["findings"]
    assert finding["code"] == "nothing-recorded"
    assert finding["remedy"]


def test_a_command_behind_an_empty_record_starts(project):
    with_targets(project)
    assert CliRunner().invoke(cli, ["gate", "--", "true"], standalone_mode=False).return_value == 0


def test_a_record_that_was_hidden_from_is_not_empty():
    hidden = Build("/p", ("make",), "/p", lost=("a static program",))
    decided = decide(OWN, Checked((), (), hidden))
    assert not decided.admitted
    assert "a static program" in decided.verdicts[-1].findings[0].message


@pytest.mark.parametrize("own", [None, Admission((), ())])
@pytest.mark.parametrize("checked", [None, Checked((), (), EMPTY)])
def test_a_refusal_is_never_silent(own, checked):
    decided = decide(own, checked)
    assert not decided.admitted
    assert all(finding.remedy for finding in decided.verdicts[0].findings)
    assert decided.verdicts[0].findings


def test_an_admitted_artifact_needs_no_other_builds_record(tmp_path):
    path = str(tmp_path / "k.so")
    own = Admission(OWN.verdicts, (Admitted("k", Kind.SHARED_LIBRARY, path, "d", "s", "m", None),))
    unrecorded = Verdict("k.so", State.UNPROVEN, (), ())
    assert decide(own, Checked(((path, unrecorded),), (), EMPTY)).admitted
    assert not decide(own, Checked(((path + "x", unrecorded),), (), EMPTY)).admitted


def test_a_process_older_than_what_it_maps(tmp_path):
    """A library that was written over in its place keeps its name in the process's maps."""
    library = tmp_path / "libk.so"
    library.write_bytes(b"x" * 4096)
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        now = time.time_ns()
        assert os.getpid() in {pid for pid, _name, _path in older_processes({str(library): now})}
        assert not list(older_processes({str(library): 0}))
        assert not list(older_processes({str(tmp_path / "other.so"): now}))
