"""Every failure that ends a command, one class per exit code.

A failed verification is a value (`orchestrator.model.Verdict`); only the shell turns it into `Refused`.
Each error says what happened, where, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class FreshproofError(Exception):
    """Base of all errors shown to a user without a traceback.

    ``what`` states the fault with the file, line or byte it concerns, on one line: a line feed in it is one
    of a name. ``details`` are lines of another program or of a list; ``remedy`` says what to do next.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, details: str = "", remedy: str = "") -> None:
        super().__init__(f"{what}\n{details}" if details else what)
        self.what = what
        self.details = details
        self.remedy = remedy


class AnswerIsNo(FreshproofError):
    """The question was decided, and the answer is no: different, not found, proof invalid."""

    exit_code = 1


class ConfigurationError(FreshproofError):
    """The command line, targets.toml or an input file is wrong."""

    exit_code = 2


class Undecided(FreshproofError):
    """Not enough evidence to decide: inconclusive or contaminated."""

    exit_code = 3


class Incomparable(FreshproofError):
    """Two records were made under conditions that cannot be compared."""

    exit_code = 4


class Refused(FreshproofError):
    """The gate found something stale or unproven."""

    exit_code = 5


class BrokenRun(FreshproofError):
    """A run that cannot count: a result failed its check, no samples, torn data."""

    exit_code = 6


class BuildFailed(FreshproofError):
    """A build step failed; carries the tool's own message."""

    exit_code = 7


class Missing(FreshproofError):
    """Something needed is not there: a compiler, a GPU, a library, an architecture."""

    exit_code = 8
