"""Says how many tests were left to a GPU machine, so that a green run cannot hide them."""

import pytest

_left_out = pytest.StashKey[int]()


def pytest_deselected(items):
    """Count what the marker expression leaves out because it needs a GPU."""
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu:
        stash = gpu[0].config.stash
        stash[_left_out] = stash.get(_left_out, 0) + len(gpu)


def pytest_terminal_summary(terminalreporter, config):
    """One line after the tests' own summary."""
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.write_line(f"{count} tests need a GPU and were not run (`nox -s device` runs them)")
