"""Manifests: one canonical JSON document per successful action, and the digests of action and recipe.

Pure. A document that is not of the schema gives `ValueError`; whoever reads one treats that as unproven.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.canonical import digest_bytes, digest_document, encode
from orchestrator.model import (
    Action,
    Closure,
    Component,
    Digest,
    Kind,
    Manifest,
    Material,
    Member,
    Origin,
    Product,
)
from orchestrator.plan import recipe_environment

SCHEMA = "freshproof/manifest/1"
_ACTION = "freshproof/action/1"
_RECIPE = "freshproof/recipe/1"


def action_digest(action: Action, closure: Closure, toolchain: Sequence[Component]) -> Digest:
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
            "absent": {folder: names for folder, names in closure.absent},
            "toolchain": {c.role: [c.path, c.digest] for c in toolchain},
        }
    )


def recipe_digest(
    action: Action, closure: Closure, members: Sequence[Member], toolchain: Sequence[Component]
) -> Digest:
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
            "toolkit": {c.role: c.digest for c in toolchain if c.portable},
        }
    )


def to_bytes(manifest: Manifest) -> bytes:
    """The canonical document, ended by a line feed."""
    closure, product = manifest.closure, manifest.product
    return encode(
        {
            "schema": SCHEMA,
            "target": manifest.target,
            "kind": manifest.kind,
            "arch": manifest.arch,
            "argv": manifest.argv,
            "environment": dict(manifest.environment),
            "generated": dict(manifest.generated),
            "materials": [[m.path, m.digest, m.origin, m.recipe_name] for m in closure.materials],
            "absent": {folder: names for folder, names in closure.absent},
            "unknown": closure.unknown,
            "members": [[m.target, m.digest, m.recipe_digest] for m in manifest.members],
            "toolchain": [[c.role, c.path, c.digest] for c in manifest.toolchain],
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
    ) + b"\n"  # fmt: skip


def from_bytes(data: bytes) -> Manifest:
    """Read a manifest. Raises `ValueError` for anything that `to_bytes` does not write."""
    document = json.loads(data)
    try:
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema is {document['schema']!r}, not {SCHEMA!r}")
        return _read(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a manifest: {error}") from None


def _read(document: Mapping[str, Any]) -> Manifest:
    product = document["product"]
    return Manifest(
        target=_text(document["target"]),
        kind=Kind(document["kind"]),
        arch=None if document["arch"] is None else _text(document["arch"]),
        argv=_texts(document["argv"]),
        environment=_pairs(document["environment"]),
        generated=_pairs(document["generated"]),
        closure=Closure(
            materials=tuple(
                Material(_text(path), _text(digest), Origin(origin), _text(name))
                for path, digest, origin, name in document["materials"]
            ),
            absent=tuple((_text(f), _texts(names)) for f, names in sorted(document["absent"].items())),
            unknown=_texts(document["unknown"]),
        ),
        members=tuple(
            Member(_text(target), _text(digest), _text(recipe))
            for target, digest, recipe in document["members"]
        ),
        toolchain=tuple(
            Component(_text(role), _text(path), _text(digest)) for role, path, digest in document["toolchain"]
        ),
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
