"""Variants of a target whose device code is the same: the flags in which they differ do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.model import Manifest, Target


def same_code(root: Path, targets: Sequence[Target], manifests: Mapping[str, Manifest]) -> list[list[str]]:
    """Groups of names, of one target and its variants each, with the same device code.

    A target that was not built, or has no device code, is in none.
    """
    families: dict[str, list[str]] = {}
    for target in targets:
        if target.name in manifests:
            families.setdefault(target.name.split(".", 1)[0], []).append(target.name)
    groups = []
    for names in families.values():
        if len(names) > 1:
            by_code: dict[str, list[str]] = {}
            for name in names:
                code = device_code(root / manifests[name].product.path)
                if code is not None:
                    by_code.setdefault(code, []).append(name)
            groups += [same for same in by_code.values() if len(same) > 1]
    return groups


def device_code(path: Path) -> str | None:
    """Digest of the device code; `None` if there is none, or it cannot be read (which verify reports)."""
    from orchestrator.objects.digests import device_digest  # takes a while to import
    from orchestrator.objects.window import Malformed

    try:
        return device_digest(path.read_bytes())
    except (OSError, Malformed):
        return None
