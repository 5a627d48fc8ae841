"""The command line: the only place that prints or exits.

Commands load lazily, so that ``freshproof --help`` and a no-op build start fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import ClassVar, NoReturn

import click

from orchestrator import __version__
from orchestrator.errors import FreshproofError


class LazyGroup(click.Group):
    """A group whose commands live one to a module and are imported when asked for."""

    sections: ClassVar[dict[str, dict[str, str]]] = {
        "Main commands": {
            "build": "orchestrator.cli.build",
            "verify": "orchestrator.cli.verify",
            "bench": "orchestrator.cli.bench",
            "watch": "orchestrator.cli.watch",
        },
        "More commands": {
            "clean": "orchestrator.cli.clean",
            "diff": "orchestrator.cli.diff",
            "gate": "orchestrator.cli.gate",
            "inspect": "orchestrator.cli.inspect",
        },
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help page."""
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command; each defines ``command``."""
        for section in self.sections.values():
            if cmd_name in section:
                command: click.Command = importlib.import_module(section[cmd_name]).command
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One block a section, the main verbs first."""
        for title, section in self.sections.items():
            rows = [
                (name, cmd.get_short_help_str(limit=80))
                for name in section
                if (cmd := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="freshproof")
def cli() -> None:
    """Prove that the GPU binary you benchmark is the source you wrote, then time it."""


def main() -> NoReturn:
    """The command ``freshproof``."""
    run_command(cli)


def run_command(command: click.Command) -> NoReturn:
    """Run a command; turn typed errors into messages and exit codes, never into tracebacks."""
    try:
        code = command.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except FreshproofError as error:
        print(f"error: {error.what}", file=sys.stderr)
        if error.remedy:
            print(f"  -> {error.remedy}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)
