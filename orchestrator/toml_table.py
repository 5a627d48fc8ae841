"""One table of targets.toml, read key by key; every error names the file, the line and the key. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator import foreach
from orchestrator.errors import ConfigurationError
from orchestrator.tomlline import Lines

FILE = "manifests/targets.toml"


@dataclass(frozen=True, slots=True)
class Table:
    """One table with what an error message needs: where it is and how it is called."""

    lines: Lines
    path: tuple[str, ...]
    """As it is written."""
    values: Mapping[str, Any]
    name: str = ""
    """The last part of the path; of a table made by ``foreach``, with its names replaced."""

    def fail(self, key: str | None, what: str, remedy: str) -> ConfigurationError:
        line = self.lines.find(self.path, key)
        where = ".".join(self.path + ((key,) if key else ())) or "file"
        made = f" (as `{self.name}`)" if self.path and self.name != self.path[-1] else ""
        return ConfigurationError(f"{FILE}:{line}: {where}{made}: {what}", remedy=remedy)

    def only(self, *allowed: str) -> None:
        """Refuse keys outside ``allowed``, with the nearest known name."""
        for key in self.values:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(allowed)}"
                raise self.fail(key, "unknown key", hint)

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(key, "must be a list of strings", f'write {key} = ["..."]')
        if any("\0" in v for v in value):
            raise self.fail(key, "holds a NUL character", "remove it: no command can carry it")
        return tuple(value)

    def string(self, key: str, default: str | None = None) -> str | None:
        value = self.values.get(key, default)
        if value is not None and not isinstance(value, str):
            raise self.fail(key, "must be a string", f'write {key} = "..."')
        return value

    def integer(self, key: str, default: int | None = None, least: int = 0) -> int | None:
        value = self.values.get(key, default)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.fail(key, f"must be a whole number, {least} or more", f"write {key} = {least}")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, "must be true or false", f"write {key} = true")
        return value

    def table(self, key: str) -> Table:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.fail(key, "must be a table", f"write [{'.'.join((*self.path, key))}]")
        return Table(self.lines, (*self.path, key), value, key)

    def tables(self, key: str) -> tuple[Table, ...]:
        """The tables below ``key``, by name; one with a ``foreach`` stands for as many as that says."""
        outer = self.table(key)
        made: dict[str, Table] = {}
        for table in (one for name in outer.values for one in outer.table(name)._each()):
            if table.name in made:
                other = self.lines.find(made[table.name].path, None)
                hint = "give each its own; every name of a `foreach` belongs in the name of its table"
                raise table.fail(None, f"a second `{table.name}`; the first: line {other}", hint)
            made[table.name] = table
        return tuple(made.values())

    def _each(self) -> list[Table]:
        if foreach.KEY not in self.values:
            return [self]
        values = {key: value for key, value in self.values.items() if key != foreach.KEY}
        try:
            chosen = foreach.bindings(self.values[foreach.KEY])
        except foreach.Unusable as error:
            raise self.fail(foreach.KEY, error.what, error.remedy) from None
        try:
            return [
                replace(
                    self,
                    values=foreach.substitute(values, binding),
                    name=foreach.substitute(self.name, binding),
                )
                for binding in chosen
            ]
        except foreach.Unusable as error:
            *within, key = error.path or (None,)
            path = (*self.path, *within)
            raise replace(self, path=path, name=path[-1]).fail(key, error.what, error.remedy) from None

    @property
    def line(self) -> int:
        return self.lines.find(self.path, None)
