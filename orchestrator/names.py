"""Names of targets and workloads, as they are asked for: one, or with ``*`` several. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from orchestrator.errors import ConfigurationError


def matching(asked: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that are meant, in their order; ``*`` stands for any characters but a dot.

    So ``kernels-*`` leaves out the variants of what it names; ``kernels.*`` names the variants.
    """
    if "*" not in asked:
        return tuple(name for name in names if name == asked)
    pattern = re.compile("[^.]*".join(map(re.escape, asked.split("*"))))
    return tuple(name for name in names if pattern.fullmatch(name))


def chosen(asked: Sequence[str], names: Sequence[str], kind: str, where: str = "") -> tuple[str, ...]:
    """All names that are meant, each once. Raises `ConfigurationError` for what means none.

    ``kind``: what the names are of, such as ``target``.
    """
    found: dict[str, None] = {}
    for one in asked:
        meant = matching(one, names)
        if not meant:
            raise ConfigurationError(nothing(one, kind) + where, remedy=nearest(one, names, kind))
        found.update(dict.fromkeys(meant))
    return tuple(found)


def nothing(asked: str, kind: str) -> str:
    """Says that a name means nothing."""
    return f"no {kind} matches `{asked}`" if "*" in asked else f"no {kind} is called `{asked}`"


def nearest(asked: str, names: Iterable[str], kind: str) -> str:
    """The name that may have been meant, else all there are."""
    known = list(names)
    near = difflib.get_close_matches(asked, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"{kind}s: {', '.join(known) or 'none'}"
