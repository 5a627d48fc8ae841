"""Manifests: one canonical JSON document per successful action, and the digests of action and recipe.

What many targets share, the toolchain and the common part of their closures, stands in documents of its own
that a manifest names by digest. Pure. A document that is not of the schema gives `ValueError`; whoever reads
one treats that as unproven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.canonical import digest_bytes, digest_document, encode, parse_json, seal, unseal
from orchestrator.model import (
    Absent,
    Action,
    Closure,
    Common,
    Component,
    Digest,
    Kind,
    Manifest,
    Material,
    Member,
    Origin,
    Product,
    Tools,
)
from orchestrator.plan import recipe_environment

SCHEMA = "freshproof/manifest/1"
_ACTION = "freshproof/action/1"
_RECIPE = "freshproof/recipe/1"


def make_common(materials: Sequence[Material], absent: Absent) -> Common:
    """The common part of a closure, with its digest."""
    document = {"materials": _material_rows(materials), "absent": dict(absent)}
    return _common(digest_document(document), tuple(materials), absent)


def make_tools(components: Iterable[Component]) -> Tools:
    """The files of a toolchain, with their digest."""
    components = tuple(components)
    return Tools(digest_bytes(_tool_bytes(components)), components)


def action_digest(action: Action, closure: Closure, tools: Tools) -> Digest:
    """Digest of everything that can change the product on this machine."""
    return digest_document(
        {
            "schema": _ACTION,
            "kind": action.target.kind,
            "arch": action.arch,
            "argv": action.argv,
            "environment": dict(action.environment),
            "generated": {g.path: digest_bytes(g.text.encode()) for g in action.generated},
            "materials": {m.path: m.digest for m in closure.materials},
            "absent": dict(closure.absent),
            "common": closure.common.digest,
            "toolchain": tools.digest,
        }
    )


def recipe_digest(action: Action, closure: Closure, members: Sequence[Member], tools: Tools) -> Digest:
    """Digest of the portable part: no machine paths, no host compiler, no libc. It becomes the stamp."""
    return digest_document(
        {
            "schema": _RECIPE,
            "kind": action.target.kind,
            "arch": action.arch,
            "argv": action.recipe_argv,
            "environment": recipe_environment(action.environment),
            "generated": {g.path: digest_bytes(g.text.encode()) for g in action.generated},
            "materials": {m.recipe_name: m.digest for m in closure.materials if m.recipe_name},
            "members": [[m.target, m.recipe_digest] for m in members],
            "toolkit": _toolkit_digest(closure.common, tools, at_link=_compiles_at_link(action)),
        }
    )


_known_toolkits: dict[tuple[Digest, Digest, bool], Digest] = {}


def _compiles_at_link(action: Action) -> bool:
    """Whether nvlink makes machine code from LTO-IR, for which it loads libnvvm."""
    return any("lto" in word for word in action.recipe_argv)


def _toolkit_digest(common: Common, tools: Tools, *, at_link: bool) -> Digest:
    """Of the toolkit's tools and headers by content; remembered, since most targets share both."""
    key = common.digest, tools.digest, at_link
    if key not in _known_toolkits:
        headers = {m.recipe_name: m.digest for m in common.materials if m.recipe_name}
        programs = {
            c.role: c.digest
            for c in tools.components
            if c.portable or (at_link and c.role.startswith("libnvvm/"))
        }
        _known_toolkits[key] = digest_document([headers, programs])
    return _known_toolkits[key]


def shared_documents(manifest: Manifest) -> dict[Digest, bytes]:
    """The documents that a manifest names by digest."""
    common = manifest.closure.common
    document = {"materials": _material_rows(common.materials), "absent": dict(common.absent)}
    return {
        common.digest: encode(document),
        manifest.tools.digest: _tool_bytes(manifest.tools.components),
    }


def to_bytes(manifest: Manifest) -> bytes:
    """The canonical document, sealed."""
    closure, product = manifest.closure, manifest.product
    return seal(
        {
            "schema": SCHEMA,
            "target": manifest.target,
            "kind": manifest.kind,
            "arch": manifest.arch,
            "argv": manifest.argv,
            "environment": dict(manifest.environment),
            "generated": dict(manifest.generated),
            "materials": _material_rows(closure.materials),
            "absent": dict(closure.absent),
            "common": closure.common.digest,
            "unknown": closure.unknown,
            "members": [[m.target, m.digest, m.recipe_digest] for m in manifest.members],
            "toolchain": manifest.tools.digest,
            "toolkit_version": manifest.toolkit_version,
            "action_digest": manifest.action_digest,
            "recipe_digest": manifest.recipe_digest,
            "product": {
                "path": product.path,
                "digest": product.digest,
                "unstamped_digest": product.unstamped_digest,
                "size": product.size,
            },
            "milliseconds": round(manifest.seconds * 1000),
            "log": manifest.log,
        }
    )


class _Unread(ValueError):
    """A shared document that cannot be used, in words that say so."""


@dataclass(slots=True)
class Reader:
    """Reads manifests; a document that several of them share is read once."""

    open_shared: Callable[[Digest], bytes]
    """Gives the bytes of a shared document; an `OSError` counts as unreadable."""
    _commons: dict[Digest, Common] = field(default_factory=dict)
    _tools: dict[Digest, Tools] = field(default_factory=dict)

    def read(self, data: bytes) -> Manifest:
        """A manifest. Raises `ValueError` for anything that `to_bytes` does not write."""
        document = unseal(data)
        if document.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {document.get('schema')!r}, not {SCHEMA!r}")
        try:
            return self._manifest(document)
        except _Unread:
            raise
        except KeyError as error:
            raise ValueError(f"it has no {error}") from None
        except (ValueError, TypeError, AttributeError, OverflowError):
            raise ValueError("one of its values is not of the kind that this release writes") from None

    def _manifest(self, document: Mapping[str, Any]) -> Manifest:
        product = document["product"]
        return Manifest(
            target=_text(document["target"]),
            kind=Kind(document["kind"]),
            arch=None if document["arch"] is None else _text(document["arch"]),
            argv=_texts(document["argv"]),
            environment=_pairs(document["environment"]),
            generated=_pairs(document["generated"]),
            closure=Closure(
                materials=_materials(document["materials"]),
                absent=_absent(document["absent"]),
                common=self._common(_text(document["common"])),
                unknown=_texts(document["unknown"]),
            ),
            members=tuple(
                Member(_text(target), _text(digest), _text(recipe))
                for target, digest, recipe in document["members"]
            ),
            tools=self._read_tools(_text(document["toolchain"])),
            toolkit_version=_text(document["toolkit_version"]),
            action_digest=_text(document["action_digest"]),
            recipe_digest=_text(document["recipe_digest"]),
            product=Product(
                path=_text(product["path"]),
                digest=_text(product["digest"]),
                unstamped_digest=_text(product["unstamped_digest"]),
                size=int(product["size"]),
            ),
            seconds=int(document["milliseconds"]) / 1000,
            log=_text(document["log"]),
        )

    def _common(self, digest: Digest) -> Common:
        if digest not in self._commons:
            document = self._shared(digest)
            self._commons[digest] = _common(
                digest, _materials(document["materials"]), _absent(document["absent"])
            )
        return self._commons[digest]

    def _read_tools(self, digest: Digest) -> Tools:
        if digest not in self._tools:
            components = tuple(
                Component(_text(role), _text(path), _text(content))
                for role, path, content in self._shared(digest)
            )
            self._tools[digest] = Tools(digest, components)
        return self._tools[digest]

    def _shared(self, digest: Digest) -> Any:
        try:
            data = self.open_shared(digest)
        except OSError as error:
            raise _Unread(f"the document {digest} that it names: {error.strerror}") from None
        if digest_bytes(data) != digest:
            raise _Unread(f"the document {digest} that it names is damaged")
        return parse_json(data)


def _common(digest: Digest, materials: tuple[Material, ...], absent: Absent) -> Common:
    return Common(digest, materials, absent, sum(len(names) for _folder, names in absent))


def _material_rows(materials: Iterable[Material]) -> list[list[str]]:
    return [[m.path, m.digest, m.origin, m.recipe_name] for m in materials]


def _tool_bytes(components: Iterable[Component]) -> bytes:
    return encode([[c.role, c.path, c.digest] for c in components])


_ORIGINS = {str(origin): origin for origin in Origin}


def _materials(rows: Iterable[Any]) -> tuple[Material, ...]:
    return tuple(
        Material(_text(path), _text(digest), _ORIGINS[origin], _text(name))
        for path, digest, origin, name in rows
    )


def _absent(folders: Mapping[str, Any]) -> Absent:
    return tuple((_text(folder), _texts(names)) for folder, names in sorted(folders.items()))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(map(_text, values))


def _pairs(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, _text(value)) for name, value in values.items()))
