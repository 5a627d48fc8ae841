"""From a product back to the steps whose products went into it, by content. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from orchestrator.foreign.made import Made
from orchestrator.foreign.steps import Tool
from orchestrator.foreign.words import read_nvcc
from orchestrator.model import Digest, Link, Observation

AGAIN = "build it again behind `freshproof run --`; if the build system does nothing, clean first"

_HASH = re.compile(r"-[0-9a-f]{16}(?=[./]|$)")


class Unknown(str):
    """Why a file's digest is not known."""

    __slots__ = ()


Now = Callable[[str], Digest | Unknown | None]
"""Digest of a file now; `None` if it is not there."""


def chain(made: Mapping[str, Made], path: str) -> tuple[Made, ...]:
    """The step that made ``path``, and those that made what went into it, the former first."""
    found: dict[str, Made] = {}
    queue = [path]
    while queue:
        name = queue.pop()
        if name in found or name not in made:
            continue
        found[name] = made[name]
        queue += [source for source, _digest in _sources(made[name], made)]
    return tuple(found.values())


def _sources(product: Made, made: Mapping[str, Made]) -> Iterator[tuple[str, Digest]]:
    """Recorded products that went into one: its inputs, and by content the members of an archive."""
    yield from product.inputs
    if product.content.members:
        inputs = {digest for _path, digest in product.inputs}
        wanted = {digest for _name, digest, _code in product.content.members} - inputs
        yield from ((m.path, m.content.digest) for m in made.values() if m.content.digest in wanted)


def members_of(product: Made, made: Mapping[str, Made], now: Now) -> Iterator[Observation]:
    """Whether what went into a product is still there and was made by recorded steps."""
    for path, recorded in product.inputs:
        yield from _input(product, path, recorded, made.get(path), now(path))
    yield from _archived(product, made)


def _input(
    product: Made, path: str, recorded: Digest, maker: Made | None, now: Digest | Unknown | None
) -> Iterator[Observation]:
    into = posixpath.basename(product.path)
    if isinstance(now, Unknown):
        yield Observation(Link.MEMBERS, "member-unreadable", path, recorded, None, str(now), AGAIN)
        return
    if maker is not None and maker.content.form == "shared library":
        recorded = maker.content.digest  # what counts is the one that will be loaded
    if maker is not None and maker.content.digest != recorded:
        if recorded in maker.earlier:
            note = f"{into} was made with an older {path}, which has been made again since"
            yield Observation(Link.MEMBERS, "member-old", path, recorded, maker.content.digest, note, AGAIN)
        else:
            note = f"{path}: no recorded step made it as it went into {into}"
            yield Observation(Link.MEMBERS, "member-unrecorded", path, recorded, None, note, AGAIN)
    elif now is None and maker is not None:
        yield Observation(Link.MEMBERS, "member", path, recorded, recorded)
    else:
        code = "member" if now == recorded else "member-changed" if now else "member-missing"
        note = f"{path}: {'changed' if now else 'is gone'} since it went into {into}"
        yield Observation(Link.MEMBERS, code, path, recorded, now or "missing", note, AGAIN)


def _archived(product: Made, made: Mapping[str, Made]) -> Iterator[Observation]:
    """Each member of an archive by its bytes."""
    if not product.content.members:
        return
    known = {digest for _path, digest in product.inputs}
    known |= {digest for m in made.values() for digest in (m.content.digest, *_inside(m, product))}
    former = {digest: m.path for m in made.values() for digest in m.earlier}
    for name, digest, has_code in product.content.members:
        subject = f"{product.path}({name})"
        if digest in known:
            yield Observation(Link.MEMBERS, "member", subject, digest, digest)
        elif digest in former:
            note = f"{subject}: is an older {former[digest]}"
            newer = made[former[digest]].content.digest
            yield Observation(Link.MEMBERS, "member-old", subject, digest, newer, note, AGAIN)
        elif product.tool is Tool.ARCHIVER or has_code:
            note = f"{subject}: was made by no recorded step"
            yield Observation(Link.MEMBERS, "member-unrecorded", subject, digest, None, note, AGAIN)


def _inside(maker: Made, product: Made) -> Iterator[Digest]:
    """Members of an archive that went into another one."""
    if maker.path != product.path and any(path == maker.path for path, _digest in product.inputs):
        yield from (digest for _name, digest, _code in maker.content.members)


def sources_of(made: Made) -> tuple[str, ...]:
    """Full paths of what a compile of nvcc compiled; none for any other step."""
    if made.tool is not Tool.NVCC:
        return ()
    names = read_nvcc(made.argv).sources
    return tuple(posixpath.normpath(posixpath.join(made.folder, name)) for name in names)


def makers_of_code(made: Mapping[str, Made], path: str) -> tuple[Made, ...]:
    """The compiles whose device code is in a product."""
    return tuple(m for m in chain(made, path) if m.content.pieces and sources_of(m))


def place_of(path: str) -> str:
    """A path without cargo's hashes: products of one crate in several hash folders have the same."""
    return _HASH.sub("-*", path)


def second_names(path: str) -> tuple[str, ...]:
    """Where cargo puts a product of its folder ``deps`` once more, without the hash."""
    folder, name = posixpath.split(path)
    stem = _HASH.sub("", name)
    if stem == name or posixpath.basename(folder) != "deps":
        return ()
    above = posixpath.dirname(folder)
    return tuple(dict.fromkeys(f"{above}/{n}" for n in (stem, stem.replace("_", "-"))))


def ends(
    made: Mapping[str, Made], stands: Callable[[str], bool] = lambda _path: False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Products with device code that no other product took in: those that count, and older ones beside them.

    Of several at the same place but for cargo's hash, the one counts that ``stands`` under its other name,
    else the one made last.
    """
    with_code = [m for m in made.values() if m.content.pieces]
    used = {path for m in with_code for path, _digest in m.inputs}
    used |= {s for m in with_code if m.content.members for s, _digest in _sources(m, made)}
    groups: dict[str, list[Made]] = {}
    for m in with_code:
        if m.path in used:
            continue
        groups.setdefault(place_of(m.path), []).append(m)
    newest = (
        m[0] if len(m) == 1 else max(reversed(m), key=lambda one: (stands(one.path), one.run))
        for m in groups.values()
    )
    counting = {m.path for m in newest}
    places_used = {place_of(path) for path in used}
    leftover = {m.path for m in with_code if m.path not in used and m.path not in counting}
    leftover |= {path for path in counting if place_of(path) in places_used}
    return tuple(sorted(counting - leftover)), tuple(sorted(leftover))
