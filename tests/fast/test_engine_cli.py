"""The command line: its help page, and what starts with it."""

import importlib
import json
import subprocess
import sys

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


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(cli, ["biuld"])
    assert result.exit_code == 2
    assert "biuld" in result.output
