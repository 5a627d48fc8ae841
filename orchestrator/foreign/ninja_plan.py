"""What ninja would run for each of its outputs, from its own answers: ``-t compdb``, ``-t graph``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from orchestrator.canonical import digest_document, parse_json
from orchestrator.model import Digest

_NODE = re.compile(r'^"(0x[0-9a-f]+)" \[label="(.*)"(, shape=ellipse)?\]$')
_EDGE = re.compile(r'^"(0x[0-9a-f]+)" -> "(0x[0-9a-f]+)"(?: \[label=".*"| \[arrowhead=none.*)?\]?$')
_SCRIPT = re.compile(r"\bcmake\S* (?:\S+ )*-P ")


def read_commands(compdb: bytes) -> dict[str, str]:
    """The command behind each output, files of further words in their place. Raises `ValueError`."""
    rows = parse_json(compdb)
    try:
        return {row["output"]: row["command"] for row in rows}
    except (TypeError, KeyError):
        raise ValueError("not a compilation database of ninja") from None


def plans(commands: Mapping[str, str], graph: str, outputs: Iterable[str]) -> dict[str, Digest]:
    """For each output a digest of its command and of all commands that make what it depends on.

    Left out is an output without a command of its own, since ninja names one output of a command that makes
    several, and what a script of CMake takes part in: what that does is in no command.
    """
    names: dict[str, str] = {}
    above: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for line in graph.splitlines():
        if node := _NODE.match(line):
            names[node[1]] = "" if node[3] else node[2]
        elif edge := _EDGE.match(line):
            above.setdefault(edge[2], set()).add(edge[1])
            below.setdefault(edge[1], set()).add(edge[2])
    nodes = {name: node for node, name in names.items() if name}
    found = {}
    for output in outputs:
        if output in nodes and commands.get(output):
            reached = _reach(nodes[output], above)
            together = {node for one in reached if not names.get(one) for node in below.get(one, ())}
            ran = sorted({names.get(n, "") for n in reached | together} & commands.keys())
            if not any(_SCRIPT.search(commands[name]) for name in ran):
                found[output] = digest_document([[name, commands[name]] for name in ran])
    return found


def _reach(start: str, above: Mapping[str, set[str]]) -> set[str]:
    reached, queue = {start}, [start]
    while queue:
        new = above.get(queue.pop(), set()) - reached
        reached |= new
        queue += new
    return reached
