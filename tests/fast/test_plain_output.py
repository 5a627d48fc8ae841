"""Codes for a terminal: none where the user wants none, in results, progress and errors."""

import os
import pty
import select
import sys
from pathlib import Path

import pytest

OBJECTS = Path(__file__).parents[1] / "data" / "objects"


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """Everything that a command writes to a terminal, as it comes."""
    pid, descriptor = pty.fork()
    if not pid:
        environ = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
        environ |= {"TERM": "xterm-256color", "COLUMNS": "200", **variables}
        os.execve(sys.executable, [sys.executable, "-m", "orchestrator", *arguments], environ)
    said = b""
    while select.select([descriptor], [], [], 60)[0]:
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(descriptor)
    os.waitpid(pid, 0)
    return said.decode()


COMMANDS = {
    "results": ("inspect", str(OBJECTS / "relocatable.cubin")),
    "progress": ("audit", str(OBJECTS)),
    "difference": ("diff", "--all", str(OBJECTS / "relocatable.cubin"), str(OBJECTS / "rdc.o")),
    "help": ("--help",),
    "error": ("inspect", "/nowhere"),
    "usage": ("nothing",),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}], ids=str)
def test_no_code_reaches_a_terminal_that_is_to_get_none(name, variables):
    said = on_a_terminal(*COMMANDS[name], **variables)
    assert said
    assert "\x1b" not in said


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": ""}], ids=str)
def test_elsewhere_results_are_styled(variables):
    assert "\x1b[1m" in on_a_terminal(*COMMANDS["results"], **variables)
