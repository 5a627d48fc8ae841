"""Products of a recorded build by the names that people give them."""

from __future__ import annotations

import os

from orchestrator.errors import ConfigurationError
from orchestrator.foreign.made import Build
from orchestrator.foreign.provenance import place_of, second_names
from orchestrator.foreign.receipt import full
from orchestrator.foreign.standing import standing_ends

_FEW = 8


def find_product(build: Build, name: str, folder: str) -> str | None:
    """The recorded path of the product of a name: a path from ``folder`` or from the project's top, or a file
    name, without cargo's hash too. `None` if there is none.

    Raises `ConfigurationError` for a file name that several products have.
    """
    others = {second: path for path in build.made for second in second_names(path)}
    for place in (folder, build.root):
        path = full(os.path.join(place, name))
        if path in build.made or path in others:
            return path if path in build.made else others[path]
    if "/" in name:
        return None
    counting = standing_ends(build)[0]
    for paths in (counting, tuple(build.made)):
        found = sorted(path for path in paths if name in _file_names(path))
        if len(found) > 1:
            listed = ", ".join(path.removeprefix(f"{build.root}/") for path in found[:_FEW])
            raise ConfigurationError(
                f"{name} is the name of several products: {listed}", remedy="name one by its path"
            )
        if found:
            return found[0]
    return None


def product_names(build: Build) -> tuple[str, ...]:
    """The products that count, as they may be named: relative to the project's top."""
    return tuple(path.removeprefix(f"{build.root}/") for path in standing_ends(build)[0])


def _file_names(path: str) -> frozenset[str]:
    name = os.path.basename(path)
    return frozenset({name, place_of(name).replace("-*", ""), *map(os.path.basename, second_names(path))})
