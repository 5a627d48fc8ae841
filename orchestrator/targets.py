"""targets.toml: parse and check it; every error names the file, the line and the key.

Pure: text in, `Project` out. The schema is described in manifests/README.md.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator import names as naming
from orchestrator.combination import combined
from orchestrator.errors import ConfigurationError
from orchestrator.kinds import RULES
from orchestrator.model import Expectations, Kind, Project, Target, Workload
from orchestrator.options import handed_on
from orchestrator.owned_flags import find_owned
from orchestrator.toml_table import FILE, Table
from orchestrator.tomlline import Lines

__all__ = ["FILE", "SCHEMA", "owned_flag", "parse_targets", "select", "unit_of", "unsafe_path"]

SCHEMA = 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_ARCH = re.compile(r"auto|native|sm_[0-9]{2,3}[af]?")
_SHELL = re.compile(r"[$`\"\\\x00-\x1f\x7f]")
"""nvcc hands names to ``sh`` between double quotes, where these characters act."""


@functools.lru_cache(maxsize=4)
def parse_targets(text: str) -> Project:
    """Read targets.toml. Raises `ConfigurationError` with the line and key of the first fault."""
    document = _load(text)
    root = Table(Lines(text), (), document)
    root.only("schema", "project", "target", "workload")
    if document.get("schema") != SCHEMA or type(document["schema"]) is not int:
        raise root.fail("schema", f"must be {SCHEMA}", f"write schema = {SCHEMA} at the top")
    project = root.table("project")
    project.only("name", "source-roots")
    roots = project.strings("source-roots") or (".",)
    for path in roots:
        _check_path(project, "source-roots", path)
    tables = {table.name: table for table in root.tables("target")}
    written = [t for table in tables.values() for t in _targets(table)]
    names = [t.name for t in written]
    targets = tuple(replace(t, uses=_meant(tables[_base(t)], names, t.name)) for t in written)
    _check_units(tables, targets)
    _check_uses(tables, targets)
    workloads = tuple(_workload(table, names) for table in root.tables("workload"))
    roots_line = project.lines.find(project.path, "source-roots")
    return Project(project.string("name") or "project", roots, targets, workloads, roots_line)


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, remedy = f"not valid TOML: {error}", "correct the line named"
    except RecursionError:
        what, remedy = "nested too deeply", "correct the arrays or tables in it"
    except ValueError as error:  # a number or a date that Python cannot hold
        what, remedy = f"holds a value that cannot be read: {error}", "correct it"
    raise ConfigurationError(f"{FILE}: {what}", remedy=remedy)


@functools.cache
def unit_of(name: str) -> str:
    """The target's name as an identifier: names its stamp symbol and its private folder."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def select(project: Project, names: Sequence[str]) -> tuple[Target, ...]:
    """The targets named (``*``: see `names.matching`), or all; the targets that they use come before them.

    A name may combine variants (see `combination`). Raises `ConfigurationError` for one that is not defined.
    """
    known = {t.name: t for t in project.targets}
    known |= {name: one for name in names if (one := _combined(name, known)) is not None}
    chosen: dict[str, Target] = {}

    def add(name: str) -> None:
        if name in chosen:
            return
        for used in known[name].uses:
            add(used)
        chosen[name] = known[name]

    for name in naming.chosen(names, tuple(known), "target", f" in {FILE}") if names else known:
        add(name)
    return tuple(chosen.values())


def _combined(name: str, known: Mapping[str, Target]) -> Target | None:
    """A combination of variants; its stamp's symbol and its folder must be no other target's."""
    target = combined(name, known)
    if target is not None:
        for other in known:
            if unit_of(other) == unit_of(name):
                raise ConfigurationError(
                    f"`{name}` and `{other}` have one name for the compiler", remedy="rename the variant"
                )
    return target


def _targets(table: Table) -> tuple[Target, ...]:
    """One target and its variants; a variant adds flags and definitions to the target's own."""
    base = _target(table)
    variants = []
    for variant in table.tables("variants"):
        variant.only("flags", "defines")
        _check_name(variant)
        name = variant.name
        variants.append(
            Target(
                name=f"{base.name}.{name}",
                kind=base.kind,
                sources=base.sources,
                arch=base.arch,
                include=base.include,
                flags=base.flags + _flags(variant),
                defines=base.defines + variant.strings("defines"),
                uses=base.uses,
                variant=name,
                expect=base.expect,
                line=variant.line,
                sources_line=base.sources_line,
            )
        )
    return (base, *variants)


def _target(table: Table) -> Target:
    table.only("kind", "sources", "arch", "include", "flags", "defines", "uses", "expect", "variants")
    _check_name(table)
    kind = _kind(table)
    sources, uses = table.strings("sources"), table.strings("uses")
    _check_makings(table, kind, len(sources), len(uses))
    for key in ("sources", "include"):
        for path in table.strings(key):
            _check_path(table, key, path)
    return Target(
        name=table.name,
        kind=kind,
        sources=sources,
        arch=_arch(table, kind, bool(sources)),
        include=table.strings("include"),
        flags=_flags(table),
        defines=table.strings("defines"),
        uses=uses,
        expect=_expectations(table.table("expect")),
        line=table.line,
        sources_line=table.lines.find(table.path, "sources"),
    )


def _kind(table: Table) -> Kind:
    value = table.string("kind")
    names = [k.value for k in Kind]
    if value not in names:
        raise table.fail("kind" if value else None, f"kind is {value!r}", f"one of: {', '.join(names)}")
    return Kind(value)


def _one(kind: Kind) -> str:
    """The kind with its article."""
    return f"an {kind}" if kind.value[0] in "aeo" else f"a {kind}"


def _check_makings(table: Table, kind: Kind, sources: int, uses: int) -> None:
    """The numbers of sources and used targets that the kind is made from."""
    rule = RULES[kind]
    if sources > int(rule.sources):
        remedy = "compile each to an `object`, and name these in `uses`" if rule.uses else "one target each"
        raise table.fail("sources", f"{sources} sources for {_one(kind)}", remedy)
    if uses and not rule.uses:
        raise table.fail("uses", f"{_one(kind)} uses no other target", "remove `uses`")
    if not sources and not uses:
        needed = " or ".join((["sources"] if rule.sources else []) + (["uses"] if rule.uses else []))
        raise table.fail(None, f"{_one(kind)} made from nothing", f"give it `{needed}`")
    if sources and uses and not rule.both:
        raise table.fail(
            "uses", f"{_one(kind)} has either sources or uses", "compile the source to an `object`"
        )


def _arch(table: Table, kind: Kind, compiled: bool) -> str | None:
    """The architecture; without a word about it ``auto``, unless the flags choose several."""
    host = not RULES[kind].device or (kind is Kind.SHARED_LIBRARY and compiled)
    if host:
        if "arch" in table.values:
            raise table.fail("arch", f"this {kind} has no device code of its own", "remove `arch`")
        return None
    generates = any(f.split("=")[0] in ("-gencode", "--generate-code") for f in table.strings("flags"))
    value = table.string("arch", None if generates else "auto")
    if value is not None and generates:
        raise table.fail("arch", "both `arch` and -gencode", "keep one of them")
    if value is not None and not _ARCH.fullmatch(value):
        raise table.fail("arch", f"not an architecture: {value!r}", 'write "auto", "native" or "sm_90"')
    return value


def _flags(table: Table) -> tuple[str, ...]:
    flags = table.strings("flags")
    found = owned_flag(flags)
    if found:
        raise table.fail("flags", f"`{found[0]}` cannot be set here", found[1])
    if "" in flags:
        raise table.fail("flags", "an empty flag", "remove it")
    return flags


def owned_flag(flags: Sequence[str]) -> tuple[str, str] | None:
    """The first of ``flags`` that is the tool's to set, and why; `None` if there is none."""
    found = find_owned(flags)
    if found:
        return found
    for flag in flags:
        if flag.startswith("-o") and not flag.startswith("-opt"):  # with its value in one word
            return flag, "the output's path carries its digest"
    if "-wrapper" in handed_on(flags):
        return "-wrapper", "programs run by a wrapper of gcc's cannot be followed"
    return None


def _expectations(table: Table) -> Expectations:
    table.only(
        "kernels", "symbols", "archs", "no-spills", "max-registers", "max-code-bytes",
        "texts-present", "texts-absent",
    )  # fmt: skip
    return Expectations(
        kernels=table.strings("kernels"),
        symbols=table.strings("symbols"),
        archs=table.strings("archs"),
        no_spills=table.boolean("no-spills", False),
        max_registers=table.integer("max-registers", least=1),
        max_code_bytes=table.integer("max-code-bytes", least=1),
        texts_present=table.strings("texts-present"),
        texts_absent=table.strings("texts-absent"),
    )


def _workload(table: Table, targets: Sequence[str]) -> Workload:
    table.only("command", "uses", "samples", "warmups", "worker", "default")
    command = table.strings("command")
    if not command:
        raise table.fail("command", "no command", 'write command = ["program", "argument"]')
    return Workload(
        name=table.name,
        command=command,
        uses=_meant(table, targets),
        samples=table.integer("samples", 5, 1) or 5,
        warmups=table.integer("warmups", 1) or 0,
        worker=table.boolean("worker", True),
        default=table.boolean("default", True),
        line=table.line,
    )


def _meant(table: Table, names: Sequence[str], itself: str = "") -> tuple[str, ...]:
    """The targets that ``uses`` names; ``*`` never means the target ``itself``."""
    found: dict[str, None] = {}
    for asked in table.strings("uses"):
        meant = naming.matching(asked, (name for name in names if name != itself or "*" not in asked))
        if not meant:
            raise table.fail("uses", naming.nothing(asked, "target"), naming.nearest(asked, names, "target"))
        found.update(dict.fromkeys(meant))
    return tuple(found)


def _base(target: Target) -> str:
    """The name of the table: without the variant's."""
    return target.name.split(".", 1)[0]


_LONGEST = 100
"""Characters of a name: with its ending it becomes the name of files, which may have 255 bytes."""


def _check_name(table: Table) -> None:
    if len(table.name) > _LONGEST:
        raise table.fail(None, f"a name of {len(table.name)} characters", f"{_LONGEST} at most")
    if not _NAME.fullmatch(table.name):
        raise table.fail(None, f"not a name: {table.name!r}", "letters, digits, `-` and `_` only")


def _check_path(table: Table, key: str, path: str) -> None:
    reason = unsafe_path(path)
    if reason:
        raise table.fail(key, f"{path!r} {reason}", "rename the file or folder")


def unsafe_path(path: str) -> str:
    """Why nvcc must not be given this path, or an empty text."""
    if not path:
        return "is empty"
    if path.startswith(("-", "@")):
        return f"begins with `{path[0]}`, which nvcc takes for an option"
    found = _SHELL.search(path)
    return f"holds {found.group()!r}, which nvcc's shell would act on" if found else ""


def _check_units(tables: Mapping[str, Table], targets: Sequence[Target]) -> None:
    """Two names may not share an identifier: their stamps and folders would clash."""
    seen: dict[str, str] = {}
    for target in targets:
        other = seen.setdefault(unit_of(target.name), target.name)
        if other != target.name:
            what = f"differs from `{other}` only in punctuation"
            raise tables[_base(target)].fail(None, what, "rename one of them")


def _check_uses(tables: Mapping[str, Table], targets: Sequence[Target]) -> None:
    """Every used target is of a kind that can be used, and none uses itself, however indirectly."""
    known = {t.name: t for t in targets}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        target = known[name]
        table = tables[_base(target)]
        if name in trail:
            raise table.fail("uses", f"a circle: {' -> '.join((*trail, name))}", "break it")
        for used in target.uses:
            kinds = RULES[target.kind].uses
            if known[used].kind not in kinds:
                raise table.fail(
                    "uses",
                    f"{_one(target.kind)} cannot use `{used}`, which is {_one(known[used].kind)}",
                    f"it uses targets of these kinds: {', '.join(sorted(kinds))}",
                )
            visit(used, (*trail, name))

    for name in known:
        visit(name, ())
