"""The command line: its help page, and what starts with it."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli import SECTIONS, cli


def test_help_leads_with_the_main_verbs_and_names_every_command_once():
    page = CliRunner().invoke(cli, ["--help"]).output
    names = [name for section in SECTIONS.values() for name in section]
    places = [page.index(f"\n  {name} ") for name in names]
    assert places == sorted(places)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("name", "summary"), [item for s in SECTIONS.values() for item in s.items()])
def test_the_help_page_says_what_each_command_says_itself(name, summary):
    assert importlib.import_module(f"orchestrator.cli.{name}").command.short_help == summary


def imported(*arguments):
    """Modules that a run of the command line imports."""
    code = (
        "import json, sys\nfrom orchestrator.cli import cli\n"
        f"try: cli({list(arguments)!r}, standalone_mode=False)\n"
        "except Exception: pass\n"
        "print(json.dumps(list(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_and_build_import_nothing_heavy():
    heavy = {"numpy", "scipy", "rich", "elftools", "watchdog", "psutil", "py_ecc"}
    assert not imported("--help") & {*heavy, "orchestrator.build"}
    assert not imported("build", "--help") & {*heavy, "orchestrator.verify"}
    assert not imported("gate", "--help") & heavy


def test_reading_an_artifact_for_the_gate_imports_nothing_heavy():
    code = "import sys, orchestrator.verify; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(cli, ["biuld"])
    assert result.exit_code == 2
    assert "biuld" in result.output


def typed(*arguments, cwd, stdout=subprocess.PIPE):
    """A run of the command line as a program of its own."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_a_mistyped_command_is_answered_with_the_one_that_may_be_meant():
    assert "Did you mean 'build'?" in CliRunner().invoke(cli, ["bulid"]).output
    assert "Did you mean" not in CliRunner().invoke(cli, ["zzz"]).output


def test_the_usage_of_run_shows_the_command_behind_it():
    assert "run [OPTIONS] -- COMMAND..." in CliRunner().invoke(cli, ["run", "--help"]).output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("build", "--json"), 2),
        (("bench", "--json"), 2),
        (("verify", "--json"), 2),
        (("gate", "--json"), 2),
        (("clean", "--json", "--wrong"), 2),
        (("gate", "--json", "--", "true"), 125),
    ],
)
def test_an_error_is_a_document_when_json_was_asked_for(tmp_path, arguments, code):
    done = typed(*arguments, cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (document["schema"], document["exit_code"]) == ("freshproof/error/1", code)
    assert document["error"]
    assert document["remedy"]
    assert done.returncode == code
    assert "rror" in done.stderr


def test_without_json_and_behind_two_dashes_standard_output_stays_empty(tmp_path):
    for arguments in (("build",), ("gate", "--", "true", "--json")):
        assert typed(*arguments, cwd=tmp_path).stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("build", "--json"), ("build", "--help")])
def test_a_full_disk_behind_standard_output_is_a_message(tmp_path, arguments):
    with Path("/dev/full").open("w") as full:
        done = typed(*arguments, cwd=tmp_path, stdout=full)
    assert done.returncode == 8
    assert "cannot write the output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("typed_so_far", "offered"),
    [
        ("build k-", {"k-a", "k-b"}),
        ("build k-a k-", {"k-b"}),
        ("gate k-b k", {"k-a"}),
        ("bench quick", {"quick"}),
        ("watch --bench q", {"quick"}),
        ("verify nothing", set()),
    ],
)
def test_a_shell_is_offered_targets_and_workloads(tmp_path, typed_so_far, offered):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/targets.toml").write_text(
        'schema = 1\n[project]\nname = "p"\nsource-roots = ["."]\n'
        + "".join(f'[target.k-{n}]\nkind = "cubin"\nsources = ["{n}.cu"]\narch = "sm_90"\n' for n in "ab")
        + '[workload.quick]\ncommand = ["true"]\nuses = ["k-a"]\n'
    )
    words = f"freshproof {typed_so_far}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environ = {**os.environ, **asked, "_FRESHPROOF_COMPLETE": "bash_complete"}
    code = "from orchestrator.cli import main; import sys; sys.argv[0] = 'freshproof'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {line.removeprefix("plain,") for line in done.stdout.split()} == offered


INTERNAL = {"action", "recipe", "foreign", "stamps", "step"}
"""Documents of which only the digest is kept, and the tool's own notes on builds by other systems."""


def test_every_schema_is_described():
    root = Path(__file__).parents[2]
    described = (root / "manifests" / "README.md").read_text()
    written = "".join(path.read_text() for path in (root / "orchestrator").rglob("*.py"))
    schemas = {
        s for s in re.findall(r'"(freshproof/[a-z-]+/[0-9]+)"', written) if s.split("/")[1] not in INTERNAL
    }
    assert len(schemas) > 10
    assert {schema for schema in schemas if f"`{schema}`" not in described} == set()


@pytest.mark.parametrize("name", [name for section in SECTIONS.values() for name in section])
def test_every_command_speaks_json(name):
    command = importlib.import_module(f"orchestrator.cli.{name}").command
    assert "--json" in [option for parameter in command.params for option in parameter.opts]
