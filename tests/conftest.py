"""Tests that this machine cannot run are left out and counted, so that a green run cannot hide them."""

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

_left_out = pytest.StashKey[Counter]()
_FOLDERS = (Path(sys.executable).parent, Path.home() / ".cargo" / "bin")
"""Where programs may be beside the PATH."""


def pytest_collection_modifyitems(config, items):
    """Leave out tests whose marker `needs` names a program that is not here."""
    kept, left_out = [], []
    for item in items:
        needed = [program for marker in item.iter_markers("needs") for program in marker.args]
        (kept if all(map(_is_here, needed)) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_deselected(items):
    """Count what is left out, by what it needs; tests that the user left out need nothing."""
    for item in items:
        needed = {p for marker in item.iter_markers("needs") for p in marker.args if not _is_here(p)}
        if item.get_closest_marker("gpu"):
            needed.add("a GPU")
        counts = item.config.stash.setdefault(_left_out, Counter())
        counts.update([" and ".join(sorted(needed))] if needed else [])


def pytest_terminal_summary(terminalreporter, config):
    """One line a need, after the tests' own summary."""
    for need, count in config.stash.get(_left_out, Counter()).items():
        how = " (`nox -s device` runs them)" if need == "a GPU" else ""
        terminalreporter.write_line(f"{count} tests need {need} and were not run{how}")


def _is_here(program: str) -> bool:
    places = (None, *map(str, _FOLDERS))
    return any(shutil.which(program, path=place) is not None for place in places)
