"""What build scripts of cargo looked at while they decided what to run. Pure.

Cargo runs a build script again only for what the script names to it (``rerun-if-changed``). What it reads
beside that decides about its products all the same: flags in a file, a file that is there or not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from orchestrator.foreign.events import Event

_OF_THE_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var",
)  # fmt: skip


def consulted(events: Iterable[Event], environ: Mapping[str, str], passing: Iterable[str]) -> tuple[str, ...]:
    """Full paths that build scripts opened or asked about, but for those of the system, of cargo's own
    folders and of the folders that cargo gave them to write to. ``passing`` are further ones to leave out.
    """
    home = environ.get("HOME", "/")
    own = (environ.get("CARGO_HOME") or f"{home}/.cargo", environ.get("RUSTUP_HOME") or f"{home}/.rustup")
    found: dict[str, None] = {}
    for event in events:
        apart = tuple(f"{folder}/" for folder in (*_OF_THE_SYSTEM, *own, *passing, *_target_folder(event)))
        names = (posixpath.normpath(name) for name in event.opened)
        found.update((name, None) for name in names if not f"{name}/".startswith(apart))
    return tuple(found)


def _target_folder(event: Event) -> tuple[str, ...]:
    """Cargo's, of which TARGET/release/build/NAME-HASH/out is a build script's own part."""
    out = event.environment.get("OUT_DIR", "")
    for _ in range(4):
        out = posixpath.dirname(out)
    return (out,) if len(out) > 1 else ()
