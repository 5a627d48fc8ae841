"""Takes the receipt of a build: the project's files before and after it, by content.

Files that git tracks, or does not track and does not ignore; without git, the tree less folders of products.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from orchestrator.canonical import digest_bytes
from orchestrator.digests import Digests, Unreadable
from orchestrator.foreign.descriptions import configured_from
from orchestrator.foreign.made import Receipt
from orchestrator.foreign.meaning import has_meaning, meaning
from orchestrator.foreign.sources import MARKERS, is_build_folder, is_product_name
from orchestrator.foreign.variables import is_watched
from orchestrator.model import Digest

_PROGRAMS = (
    "nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "ar", "ranlib", "cargo", "rustc",
    "cmake", "ninja", "make", "python3",
)  # fmt: skip
_BINARY = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")
_DESCRIPTIONS = ("Cargo.toml", "CMakeLists.txt", "Makefile", "makefile", "build.ninja", "setup.py",
                 "pyproject.toml", "meson.build")  # fmt: skip

Seen = dict[str, tuple[int, int, int, int]]
"""Files with inode, size, modification and change time."""


def project_root(folder: str) -> str:
    """The folder of git's working tree around ``folder``, else ``folder`` itself; of a folder in which CMake
    builds, that of the sources.
    """
    source = configured_from(folder)
    if source:
        folder = source
    top = git_top(folder)
    return top if top and not _is_ignored(folder) else folder


def git_top(folder: str) -> str:
    """The top of git's working tree around ``folder``; empty outside of one."""
    said = _git(folder, "rev-parse", "--show-toplevel")
    return os.path.realpath(os.fsdecode(said).rstrip("\n")) if said else ""


def source_root(folder: str) -> str:
    """The project that a folder of sources belongs to: a git tree, else the highest folder in an unbroken
    row that describes a build, else the folder.
    """
    found = at = folder
    if project_root(folder) != folder:
        return project_root(folder)
    for _ in range(8):
        if any(os.path.isfile(os.path.join(at, name)) for name in _DESCRIPTIONS):
            found = at
        at = os.path.dirname(at)
    return found


def look(roots: Iterable[str]) -> Seen:
    """The files of projects as they are now, without reading them; not what this process itself writes to."""
    seen: Seen = {}
    own = _written_here()
    for root in roots:
        for path in _files(root):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if (status.st_dev, status.st_ino) not in own:
                seen[path] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return seen


def take(
    roots: Iterable[str],
    before: Seen | None,
    began_ns: int,
    products: Iterable[str],
    digests: Digests,
    environ: Mapping[str, str],
) -> Receipt:
    """The receipt of a build that is over. ``before`` is what `look` saw; folders that were not looked at are
    judged by the change times of their files. ``products`` are what the build was seen to make.
    """
    roots = tuple(roots)
    made = frozenset(products)
    after = {path: state for path, state in look(roots).items() if path not in made}
    digests.load(after)
    files: dict[str, str] = {}
    unsettled, displaced = [], []
    for path, state in after.items():
        try:
            digest = digests.get(path)
        except Unreadable:
            digest = None
        earlier = None if before is None else before.get(path)
        if digest is None or (state != earlier if earlier else before is None and state[3] >= began_ns):
            unsettled.append(path)
        if before is not None and (earlier is None or earlier[0] != state[0]) and state[3] < began_ns:
            displaced.append(path)
        files[path] = digest or ""
    files |= dict.fromkeys(filter(is_written_here, (p for root in roots for p in _files(root))), "")
    if before is not None:
        inside = tuple(f"{root}/" for root in roots)
        gone = (p for p in before if p not in after and p not in made and p.startswith(inside))
        unsettled += [path for path in gone if not os.path.lexists(path)]
    return Receipt(
        files,
        tuple(sorted(unsettled)),
        variables(environ),
        (),
        programs(environ),
        roots,
        tuple(sorted(displaced)),
        parsed={path: said for path in files if (said := meaning_of(path))},
    )


def meaning_of(path: str) -> Digest:
    """Of what a description of a build says; empty for other files, and for one that cannot be read."""
    try:
        return (
            digest_bytes(meaning(path, Path(path).read_text("utf-8")).encode()) if has_meaning(path) else ""
        )
    except (OSError, ValueError):
        return ""


def _written_here() -> frozenset[tuple[int, int]]:
    """Device and inode of the files to which this process's standard output and error go."""
    found = []
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            found += [(status.st_dev, status.st_ino)] if stat.S_ISREG(status.st_mode) else []
    return frozenset(found)


def is_written_here(path: str) -> bool:
    """Whether a file is this process's own standard output or error."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in _written_here()


def variables(environ: Mapping[str, str], asked: Iterable[str] = ()) -> dict[str, str]:
    """Those that can change what is built, as they are set. Of make's flags only what they assign: how many
    jobs run changes nothing, and make sets the rest anew for what it starts.
    """
    found = {name: value for name, value in environ.items() if is_watched(name)}
    found |= {name: digest_bytes(os.fsencode(environ[name])) for name in asked if name in environ}
    if "MAKEFLAGS" in found:
        words = found.pop("MAKEFLAGS").split()
        assigned = " ".join(word for word in words if "=" in word and not word.startswith("-"))
        found |= {"MAKEFLAGS": assigned} if assigned else {}
    return found


def programs(environ: Mapping[str, str]) -> dict[str, str]:
    """What the PATH gives for each name."""
    path = environ.get("PATH", os.defpath)
    return {name: found for name in _PROGRAMS if (found := shutil.which(name, path=path))}


def _files(root: str) -> Iterator[str]:
    """Full paths of a project's own files."""
    tracked = None if _is_ignored(root) else _git(root, "ls-files", "-z", "--recurse-submodules")
    if tracked is None:
        yield from _walk(root)
        return
    for name in filter(None, tracked.split(b"\0")):
        yield os.path.join(root, os.fsdecode(name))
    others = _git(root, "ls-files", "-z", "-o", "--exclude-standard") or b""
    marked: dict[str, bool] = {root: False}
    for name in filter(None, others.split(b"\0")):
        path = os.path.join(root, os.fsdecode(name))
        if not _is_marked(os.path.dirname(path), marked) and _is_source(path):
            yield path


def _walk(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        if folder != root and not MARKERS.isdisjoint(names):
            folders[:] = []
            continue
        folders[:] = sorted(name for name in folders if not is_build_folder(name))
        yield from (path for name in names if _is_source(path := os.path.join(folder, name)))


def _is_marked(folder: str, known: dict[str, bool]) -> bool:
    """Whether a folder lies in one that holds products."""
    if folder not in known:
        known[folder] = (
            is_build_folder(os.path.basename(folder))
            or any(os.path.exists(os.path.join(folder, name)) for name in MARKERS)
            or _is_marked(os.path.dirname(folder), known)
        )
    return known[folder]


def _is_source(path: str) -> bool:
    """Whether a file that nobody tracks may be a source: it is no binary and has no name of a product."""
    if is_product_name(path):
        return False
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return not file.read(8).startswith(_BINARY)
    except OSError:
        return True


def _is_ignored(folder: str) -> bool:
    return _git(folder, "check-ignore", "-q", folder) is not None


def _git(folder: str, *words: str) -> bytes | None:
    """What git says; `None` without git or outside of a working tree."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "LD_"))}
    try:
        command = ["git", "-c", "core.fsmonitor=false", "-C", folder, *words]
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Whether ``path`` lies in one of ``roots``."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def full(path: str | Path) -> str:
    """A path without links in its folders."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
