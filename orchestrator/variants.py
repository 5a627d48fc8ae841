"""Variants of a target whose code is the same: the flags in which they differ do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.model import Manifest, Target
from orchestrator.regular_file import read_file


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


_HOST_CODE = (".text", ".rodata", ".data", ".init_array")


def same_machine_code(first: Path, second: Path) -> bool:
    """Whether two files hold the same device code and the same host code, whatever their stamps are called.

    Of host code instructions, constants and data are compared, not where they lie.
    """
    codes = [_machine_code(path) for path in (first, second)]
    return codes[0] is not None and codes[0] == codes[1]


def _machine_code(path: Path) -> tuple[str | None, tuple[tuple[str, bytes], ...]] | None:
    from orchestrator.objects.contents import HOST_FORMS, walk
    from orchestrator.objects.digests import device_digest, unstamped
    from orchestrator.objects.elf import read_elf
    from orchestrator.objects.window import Malformed

    try:
        data = unstamped(read_file(path))
        elves = [read_elf(piece.data) for piece in walk(data) if piece.form in HOST_FORMS]
        sections = [(elf, section) for elf in elves for section in elf.sections]
        host = ((s.name, bytes(elf.body(s))) for elf, s in sections if s.name.startswith(_HOST_CODE))
        return device_digest(data), tuple(host)
    except (OSError, Malformed):
        return None


def device_code(path: Path) -> str | None:
    """Digest of the device code; `None` if there is none, or it cannot be read (which verify reports)."""
    from orchestrator.objects.digests import device_digest  # takes a while to import
    from orchestrator.objects.window import Malformed

    try:
        return device_digest(read_file(path))
    except (OSError, Malformed):
        return None
