"""Several variants of one target in one build: ``kernels.wide+fast`` has the flags of both. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator.errors import ConfigurationError
from orchestrator.model import Target


def combined(name: str, known: Mapping[str, Target]) -> Target | None:
    """The target of a combined name; `None` if the name is not of that kind, or a part of it is not known.

    Raises `ConfigurationError` if it names a variant twice.
    """
    base, dot, parts = name.partition(".")
    variants = parts.split("+")
    if not dot or len(variants) < 2 or base not in known:
        return None
    targets = [known.get(f"{base}.{variant}") for variant in variants]
    chosen = [target for target in targets if target is not None]
    if len(chosen) < len(targets):
        return None
    if len(set(variants)) < len(variants):
        raise ConfigurationError(f"`{name}` names a variant twice", remedy="name each once")
    plain = known[base]
    return dataclasses.replace(
        plain,
        name=name,
        flags=plain.flags + tuple(f for target in chosen for f in target.flags[len(plain.flags) :]),
        defines=plain.defines + tuple(d for target in chosen for d in target.defines[len(plain.defines) :]),
        variant=parts,
    )


def name_of(target: str, variants: Sequence[str]) -> str:
    """The name of a target with some of its variants, such as ``kernels.wide+fast``."""
    return f"{target}.{'+'.join(variants)}" if variants else target
