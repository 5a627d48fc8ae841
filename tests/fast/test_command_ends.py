"""How a command ends when the world around it fails: its streams, its memory, its files, its patience."""

import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import sys
import click
from orchestrator.cli import run_command
from orchestrator.cli.terminal import result_console

@click.command()
@click.option("--json", "as_json", is_flag=True)
def command(as_json):
{body}

run_command(command)
"""


def start(body: str, *arguments: str, **options) -> subprocess.Popen:
    """A process that runs the body as a command of this program."""
    program = PRELUDE.format(body=textwrap.indent(textwrap.dedent(body), "    "))
    return subprocess.Popen([sys.executable, "-c", program, *arguments], **options)


def ended(process: subprocess.Popen) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


@pytest.mark.parametrize(
    "line", ["print('x' * 10**6)", "click.echo('x' * 10**6)", "result_console().print('x' * 10**6)"]
)
def test_a_reader_that_left_is_no_answer(line):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(line, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert ended(process) == (141, "")


@pytest.mark.parametrize("line", ["click.echo('yes')", "result_console().print('yes')", "sys.stdout.flush()"])
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_stream_that_the_caller_closed_changes_no_answer(line, closed):
    process = start(f"{line}; return 3", preexec_fn=lambda: os.close(closed))
    assert process.wait(timeout=60) == 3


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    file = tmp_path / "f"
    body = f"""
    with open({str(file)!r}, "w") as f:
        print("for people", flush=True)
        f.write("for the file")
    """
    assert start(body, preexec_fn=lambda: os.close(1)).wait(timeout=60) == 0
    assert file.read_text() == "for the file"


def test_out_of_memory_is_said_and_no_traceback():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    code, err = ended(start("bytearray(4 << 30)", preexec_fn=limit, stderr=subprocess.PIPE))
    assert code == 8
    assert "out of memory" in err and "the limit is 1,024 MiB" in err and "Traceback" not in err


def test_too_many_open_files_are_said_and_no_traceback():
    body = "kept = [open('/dev/null') for _ in range(100)]"

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    code, err = ended(start(body, preexec_fn=limit, stderr=subprocess.PIPE))
    assert code == 8
    assert "the limit is 40 a process" in err and "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_request_to_end_lets_the_command_clean_up(number):
    body = """
    import time
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned", flush=True)
    """

    def hear():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    process = start(body, preexec_fn=hear, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, b"cleaned\n")
    assert b"Traceback" not in err


@pytest.mark.parametrize("package", ["orchestrator", "prover"])
def test_an_interruption_while_the_command_loads_is_no_traceback(package):
    program = f"""
import sys
from importlib.abc import MetaPathFinder

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{package}.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from {package}.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("error", ["RuntimeError('odd')", "ValueError('odd')", "OSError(22, 'odd')"])
def test_a_fault_of_the_program_is_no_answer(error):
    """Python's own exit code for it is 1, which says no."""
    code, said = ended(start(f"raise {error}", stderr=subprocess.PIPE))
    assert code == 6
    assert "odd" in said and "a fault of the program itself" in said
