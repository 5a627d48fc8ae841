"""manifests/lock.json: the portable part of all manifests, committed beside the sources.

Like a package lock: it says what a build of these sources makes anywhere. A build never writes it unasked,
and always says how it compares. Entries are kept per architecture: a target has one artifact for each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from orchestrator.canonical import parse_json
from orchestrator.model import Manifest, Origin

SCHEMA = "freshproof/lock/1"


def entry_key(manifest: Manifest) -> str:
    """An entry's name: the target, and its architecture if it has one."""
    return f"{manifest.target}@{manifest.arch}" if manifest.arch else manifest.target


def to_text(manifests: Mapping[str, Manifest], known: Collection[str], earlier: bytes | None) -> str:
    """The lock's text: entries of ``manifests``, and those of ``earlier`` for other architectures and for
    other targets of those ``known``.

    Raises `ValueError` if ``earlier`` is not a lock.
    """
    targets = _entries(earlier) if earlier is not None else {}
    targets = {key: entry for key, entry in targets.items() if key.split("@")[0] in known}
    targets.update({entry_key(manifest): _entry(manifest) for manifest in manifests.values()})
    return json.dumps({"schema": SCHEMA, "targets": targets}, indent=1, sort_keys=True) + "\n"


def compare(manifests: Mapping[str, Manifest], data: bytes) -> list[str]:
    """How a build compares with the lock: ``matches the lock``, or a line for each target that does not.

    Raises `ValueError` if ``data`` is not a lock.
    """
    locked = _entries(data)
    lines = []
    for manifest in manifests.values():
        key = entry_key(manifest)
        if key not in locked:
            lines.append(f"not in the lock: {key}")
        else:
            difference = _difference(locked[key], _entry(manifest))
            if difference:
                lines.append(f"differs from the lock: {key}: {difference}")
    many = f"{len(manifests)} target{'' if len(manifests) == 1 else 's'}"
    return lines or ([f"matches the lock ({many})"] if manifests else [])


def _entry(manifest: Manifest) -> dict[str, Any]:
    return {
        "kind": manifest.kind,
        "toolkit": manifest.toolkit_version,
        "recipe": manifest.recipe_digest,
        "unstamped": manifest.product.unstamped_digest,
        "artifact": manifest.product.digest,
        "sources": {
            m.recipe_name: m.digest for m in manifest.closure.materials if m.origin is Origin.PROJECT
        },
    }


def _difference(locked: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first cause in a few words, from the most to the least telling."""
    if locked == now:
        return ""
    if locked["toolkit"] != now["toolkit"]:
        return f"toolkit {now['toolkit']}, locked {locked['toolkit']}"
    sources = sorted(
        name
        for name in locked["sources"].keys() | now["sources"].keys()
        if locked["sources"].get(name) != now["sources"].get(name)
    )
    if sources:
        return f"sources: {', '.join(sources)}"
    if locked["recipe"] != now["recipe"]:
        return "its command or toolkit"
    if locked["unstamped"] != now["unstamped"]:
        return "its code, though sources, command and toolkit are the same (host compiler or libraries)"
    return "its record"


def _entries(data: bytes) -> dict[str, dict[str, Any]]:
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    targets = document.get("targets")
    if not isinstance(targets, dict):
        raise ValueError("it has no targets")
    for name, entry in targets.items():
        if not _is_entry(entry):
            raise ValueError(f"the entry {name} is not complete")
    return targets


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("sources"), dict):
        return False
    texts = [entry.get(name) for name in ("kind", "toolkit", "recipe", "unstamped", "artifact")]
    return all(isinstance(text, str) for text in (*texts, *entry["sources"].values()))
