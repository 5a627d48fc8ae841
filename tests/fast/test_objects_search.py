"""audit on a disk: what is read, what could not be, and what code without kernels proves."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli import cli
from orchestrator.objects.contents import Form
from orchestrator.objects.traces import Traces, is_linked

OBJECTS = Path(__file__).parents[1] / "data" / "objects"


def audit(*arguments: object) -> tuple[object, str]:
    result = CliRunner().invoke(cli, ["audit", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


@pytest.fixture(autouse=True)
def no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_that_cannot_be_read_leaves_the_answer_open(tmp_path: Path) -> None:
    shutil.copy(OBJECTS / "sm_90.cubin", tmp_path / "good.cubin")
    code, shown = audit(tmp_path)
    assert (code, shown.splitlines()[-1][:19]) == (0, "1 file with code: 0"[:19])
    (tmp_path / "cut.cubin").write_bytes((OBJECTS / "sm_90.cubin").read_bytes()[:-8])
    code, shown = audit(tmp_path)
    assert code == 3
    assert shown.splitlines()[-1].endswith("; 1 could not be read")


def test_a_library_that_would_not_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.loader._Search._folders", lambda *_: [])
    code, shown = audit("--json", "--program", sys.executable, tmp_path)
    unresolved = json.loads(shown)["unresolved"]
    assert code == 3
    assert unresolved and all(one["path"] is None for one in unresolved)


def test_code_without_functions_proves_no_link() -> None:
    """Each unit without kernels has the same empty device code."""
    part, program = Traces(Form.OBJECT, "sha256:1"), Traces(Form.EXECUTABLE, "sha256:2")
    part.holds_code = program.holds_code = True
    assert is_linked(program, part) is None
