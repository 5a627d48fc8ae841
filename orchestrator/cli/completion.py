"""Names that a shell offers when Tab is pressed: targets and workloads of the project around."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from orchestrator.errors import FreshproofError
from orchestrator.model import Project
from orchestrator.situation import read_project
from orchestrator.workspace import Workspace, find_root


def target_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Targets that were not named yet."""
    return _names(lambda project: (target.name for target in project.targets), ctx, incomplete)


def target_and_product_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Targets and products of a recorded build that were not named yet."""
    from orchestrator.foreign.admission import open_record
    from orchestrator.foreign.names import product_names

    found = target_names(ctx, param, incomplete)
    try:
        recorded = open_record(Path.cwd())
    except FreshproofError:
        return found
    products = product_names(recorded[1]) if recorded else ()
    named = {word for words in ctx.params.values() if isinstance(words, tuple) for word in words}
    return [*found, *(name for name in products if name.startswith(incomplete) and name not in named)]


def variant_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Variants of targets that were not named yet."""
    return _names(
        lambda project: (target.name for target in project.targets if target.variant), ctx, incomplete
    )


def workload_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Workloads that were not named yet."""
    return _names(lambda project: (workload.name for workload in project.workloads), ctx, incomplete)


def _names(of: Callable[[Project], Iterable[str]], ctx: click.Context, incomplete: str) -> list[str]:
    try:
        project = read_project(Workspace(find_root(Path.cwd())))
    except FreshproofError:
        return []  # a shell that completes has no place for an error
    named = {word for words in ctx.params.values() if isinstance(words, tuple) for word in words}
    return [name for name in of(project) if name.startswith(incomplete) and name not in named]
