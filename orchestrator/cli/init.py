"""``freshproof init``: a first targets.toml from the CUDA sources of a project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from orchestrator.cli.safe_text import one_line
from orchestrator.errors import AnswerIsNo, ConfigurationError
from orchestrator.first_targets import write_targets
from orchestrator.targets import FILE, parse_targets
from orchestrator.workspace import write_atomically

_HEADERS = (".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc")
_PASSED_OVER = frozenset({"build", "node_modules", "__pycache__", "_deps", "target"})


@click.command(short_help="Write a first targets.toml from the .cu files found here.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(as_json: bool) -> None:
    """Look for .cu files in this folder and below, and write manifests/targets.toml for them.

    Kinds are guessed: a source with main() becomes an executable, one with only extern "C" kernels a cubin,
    any other an object. Exit code 1 if there is no .cu file, 2 if the file exists already.
    """
    root = Path.cwd()
    file = root / FILE
    if os.path.lexists(file):
        raise ConfigurationError(f"{FILE} exists already", remedy="edit it, or move it away first")
    sources, headers, unread = _find(root)
    if not sources:
        raise AnswerIsNo(f"no .cu file in {root} or below", remedy="go to the folder that holds them")
    text = write_targets(root.name, sources, headers)
    project = parse_targets(text)
    write_atomically(file, text.encode(), durable=True)
    if as_json:
        targets = [{"target": t.name, "kind": t.kind, "sources": t.sources} for t in project.targets]
        document = {"schema": "freshproof/init/1", "file": FILE, "targets": targets, "unread": unread}
        click.echo(json.dumps(document))
        return
    for target in project.targets:
        click.echo(one_line(f"  {target.kind:<12} {target.name:<24} {' '.join(target.sources)}"))
    for path in unread:
        click.echo(one_line(f"  left out: {path} cannot be read"))
    count = len(project.targets)
    click.echo(f"wrote {FILE} with {count} target{'' if count == 1 else 's'}; next: freshproof build")


def _find(root: Path) -> tuple[dict[str, str], list[str], list[str]]:
    """CUDA sources with their text, headers, and sources that cannot be read, relative to ``root``."""
    sources: dict[str, str] = {}
    headers, unread = [], []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders if not s.startswith(".") and s not in _PASSED_OVER)
        inside = os.path.relpath(folder, root)
        for name in sorted(names):
            path = name if inside == "." else f"{inside}/{name}"
            if name.endswith(".cu"):
                text = _text(root / path)
                if text is None:
                    unread.append(path)
                else:
                    sources[path] = text
            elif name.endswith(_HEADERS):
                headers.append(path)
    return sources, headers, unread


def _text(path: Path) -> str | None:
    """A source's text; `None` for a pipe, a link to nothing, or what may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else None
    except OSError:
        return None
