"""The command line: the only place that prints or exits.

Commands load lazily, so that ``freshproof --help`` and a no-op build start fast.
"""

from __future__ import annotations

import difflib
import importlib
import io
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TextIO, cast

import click

from orchestrator import __version__
from orchestrator.cli.failure import (
    Output,
    asks_for_json,
    error_document,
    error_lines,
    is_full,
    lacks,
    leave_full_output,
    leave_stream,
    open_standard_streams,
    usage_lines,
)
from orchestrator.errors import BrokenRun, FreshproofError

INTERRUPTED = 130
CLOSED_PIPE = 141
"""Exit code when standard output was closed by its reader, as in ``| head``: that of SIGPIPE in a shell."""

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Main commands": {
        "build": "Build what is not fresh, and record what was built from what.",
        "verify": "Check that what is built is what your sources make.",
        "bench": "Time workloads whose code is proven fresh.",
        "watch": "Rebuild what a saved file affects, until interrupted.",
        "run": "Run any build, and record what made what from what.",
    },
    "More commands": {
        "attribute": "Say which of several variants costs or gains what.",
        "audit": "Find every copy of your targets' code, and which one would run.",
        "compare": "Say whether one thing is faster than another.",
        "clean": "Remove artifacts, records and logs; say what was removed.",
        "diff": "Compare two builds: kernels, host code, texts.",
        "gate": "Run a command only if the targets are proven fresh.",
        "init": "Write a first targets.toml from the .cu files found here.",
        "inspect": "Show what is in files that hold CUDA code.",
    },
}
"""The help page: commands with their short help, so that it shows without importing them.

Each is a module of this package that defines ``command``, with the same short help.
"""


class LazyGroup(click.Group):
    """A group whose commands live one to a module and are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help page."""
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"orchestrator.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; a mistyped name is answered with the one that may be meant."""
        names = self.list_commands(ctx)
        near = [] if args[0] in names else difflib.get_close_matches(args[0], names, n=1)
        if near and not args[0].startswith("-"):
            raise click.UsageError(f"No such command '{args[0]}'. Did you mean '{near[0]}'?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One block a section, the main verbs first."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="freshproof")
def cli() -> None:
    """Prove that the GPU binary you benchmark is the source you wrote, then time it."""


def main() -> NoReturn:
    """The command ``freshproof``."""
    run_command(cli)


def run_command(command: click.Command) -> NoReturn:
    """Run a command; turn typed errors into messages and exit codes, never into tracebacks."""
    open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup a hang-up is ignored, and stays so
            signal.signal(number, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that a terminal cannot show are no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code(command)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stream(1)
        code = CLOSED_PIPE
    except OSError as error:
        code = leave_full_output(error) if is_full(error) else _own_fault()
    except Exception:
        code = _own_fault()
    sys.exit(code)


def _own_fault() -> int:
    """An exception that no part expected. Python would end with exit code 1, which is an answer here."""
    traceback.print_exc()
    print("error: this is a fault of the program itself; nothing that it said counts", file=sys.stderr)
    return BrokenRun.exit_code


class _Interruption(BaseException):
    """An interruption that passes through click, which would add an empty line to what others read."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


def _interruptible(invoke: Callable[[click.Context], Any]) -> Callable[[click.Context], Any]:
    """What click runs as a command, so that an interruption is told by its exit code."""

    def run(context: click.Context) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as error:
            if not isinstance(error, _Ended) and sys.stderr.isatty():
                click.echo(err=True)  # the terminal shows ^C
            raise _Interruption(error.exit_code if isinstance(error, _Ended) else INTERRUPTED) from None

    return run


class _Ended(KeyboardInterrupt):
    """A request to end, which is taken as Ctrl-C is: what was started is ended, nothing is half-written."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def _end(number: int, _frame: object) -> None:
    raise _Ended(number)


def _exit_code(command: click.Command) -> int:
    stream = sys.stdout
    output = Output(stream)
    as_json = asks_for_json(sys.argv[1:])
    if as_json:
        sys.stdout = cast("TextIO", output)
    given = sys.stdout
    invoke = command.invoke
    command.invoke = _interruptible(invoke)  # type: ignore[method-assign, assignment]
    try:
        code = command.main(standalone_mode=False)
    except _Interruption as interruption:
        return interruption.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        ended = error if isinstance(error, _Ended) else error.__cause__
        return ended.exit_code if isinstance(ended, _Ended) else INTERRUPTED
    except click.ClickException as error:
        print("\n".join(usage_lines(error)), file=sys.stderr)
        _tell_program(output, as_json, error.format_message(), "see --help", error.exit_code)
        return error.exit_code
    except FreshproofError as error:
        print("\n".join(error_lines(error)), file=sys.stderr)
        _tell_program(output, as_json, str(error), error.remedy, error.exit_code)
        return error.exit_code
    except (MemoryError, OSError) as error:
        lacking = lacks(error)
        if lacking is None:
            raise
        print("\n".join(error_lines(lacking)), file=sys.stderr)
        _tell_program(output, as_json, str(lacking), lacking.remedy, lacking.exit_code)
        return lacking.exit_code
    except SystemExit:
        if sys.stdout is not given:  # click's answer to a closed pipe: exit code 1, a "no" here
            raise BrokenPipeError from None
        raise
    finally:
        sys.stdout = stream
        command.invoke = invoke  # type: ignore[method-assign]
    return code if isinstance(code, int) else 0


def _tell_program(output: Output, as_json: bool, what: str, remedy: str, exit_code: int) -> None:
    """The error as a document, if one was asked for and none was written that says it."""
    if as_json and not output.used:
        print(error_document(what, remedy, exit_code), file=output.stream)
