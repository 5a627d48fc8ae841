"""The disk: where everything lies below the project's root, and how files are put there.

    build/artifacts/<sha256>/<name>   immutable products, at paths that carry their digest
    build/bin/<name>                  stable links to the newest of them
    build/manifests/<target>.json     records of this machine
    build/logs/<target>.log           the whole output of a target's last command
    build/work/<unit>/                a target's private folder while its command runs
    build/cache/                      what saves time and decides nothing
    build/lock                        held while a build runs, by its commands too; shared by a benchmark

Every file appears whole or not at all: written under another name, then renamed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ConfigurationError, FreshproofError, Missing
from orchestrator.model import Digest
from orchestrator.targets import FILE, unsafe_path

_BUILD_AT_WORK = "another build is at work in this tree (or its compilers still are); waiting for it"
_BENCHMARK_AT_WORK = (
    "a benchmark is at work in this tree; waiting for it, since a build would spoil its times"
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one project."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def targets_file(self) -> Path:
        return self.root / FILE

    @property
    def lock_file(self) -> Path:
        """The committed, portable record (`build --lock`)."""
        return self.root / "manifests" / "lock.json"

    @property
    def toolchain(self) -> Path:
        """Where the toolkit from PyPI goes when there is no other."""
        return self.build / "toolchain"

    @property
    def work(self) -> Path:
        return self.build / "work"

    def manifest(self, target: str) -> Path:
        return self.root / manifest_name(target)

    def shared(self, digest: Digest) -> Path:
        """A document that several manifests name by digest."""
        return self.build / "manifests" / "shared" / f"{digest.removeprefix('sha256:')}.json"

    def log(self, target: str) -> Path:
        return self.build / "logs" / f"{target}.log"

    def cache(self, name: str) -> Path:
        return self.build / "cache" / name

    def artifact(self, digest: Digest, name: str) -> Path:
        return self.build / "artifacts" / digest.removeprefix("sha256:") / name

    def link(self, name: str) -> Path:
        """The stable name of a product."""
        return self.build / "bin" / name

    def relative(self, path: Path) -> str:
        """``path`` as manifests write it: relative to the root."""
        return str(path.relative_to(self.root))


def manifest_name(target: str) -> str:
    """Where a target's manifest lies, relative to the root."""
    return f"build/manifests/{target}.json"


def find_root(start: Path) -> Path:
    """The nearest folder at or above ``start`` that holds manifests/targets.toml.

    Raises `ConfigurationError` if there is none, or if nvcc could not be run there safely.
    """
    start = Path(os.path.realpath(start))
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            reason = unsafe_path(str(folder))
            if reason:
                raise ConfigurationError(f"the project's folder {str(folder)!r} {reason}", remedy="rename it")
            return folder
    raise ConfigurationError(
        f"no {FILE} in {start} or above it",
        remedy="go to the project's folder, write the file (`freshproof init` does), "
        "or build behind `freshproof run --`",
    )


def write_atomically(path: Path, data: bytes, mode: int = 0o644, *, durable: bool = False) -> None:
    """Put a whole file in place; a reader sees the old one or the new one.

    After a power cut it may be empty, which every reader of records takes for damaged, so that the next build
    makes it again; ``durable`` waits for the disk, for files that builds do not make again. Raises `Missing`
    when the disk is full or the folder cannot be written.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(path)
        try:
            with open(temporary, "wb", opener=lambda p, flags: os.open(p, flags, mode)) as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def keep_if_possible(path: Path, data: bytes) -> None:
    """Write what only saves time, such as a cache: a disk that does not take it is no fault.

    A question makes no folder for products where no build has made one.
    """
    if path.parent.parent.is_dir():
        with contextlib.suppress(Missing):
            write_atomically(path, data)


def link_atomically(link: Path, to: str) -> None:
    """Let a symbolic link hold ``to``, replacing the old one in one step."""
    with explained(link):
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(link)
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(to)
        temporary.replace(link)


def _beside(path: Path) -> Path:
    """A name in the same folder that no other process or thread uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")


def room_left(folder: Path) -> int:
    """Bytes that can still be written to the disk of ``folder``."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def fresh_folder(path: Path) -> None:
    """An empty folder at ``path``, whatever was there before."""
    with explained(path):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)


@contextlib.contextmanager
def exclusive(workspace: Workspace, waiting: Callable[[str], None]) -> Iterator[int]:
    """Hold the project's build lock; yields its descriptor, which commands inherit.

    Since commands hold it too, the compilers of a build that was killed are waited for, not raced against.
    ``waiting`` is told once if another build or a benchmark holds it.
    """
    with _lock_file(workspace) as descriptor:
        if not _locked(descriptor, fcntl.LOCK_EX):
            # Only benchmarks share the lock, so one that can be shared is held by a benchmark.
            timed = _locked(descriptor, fcntl.LOCK_SH)
            waiting(_BENCHMARK_AT_WORK if timed else _BUILD_AT_WORK)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor


@contextlib.contextmanager
def undisturbed(workspace: Workspace, waiting: Callable[[str], None]) -> Iterator[None]:
    """Let no build of this tree begin, so that it neither slows nor changes what is timed.

    ``waiting`` is told once if a build is at work.
    """
    with _lock_file(workspace) as descriptor:
        if not _locked(descriptor, fcntl.LOCK_SH):
            waiting(_BUILD_AT_WORK)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


HELD = "FRESHPROOF_TREE_HELD"
"""Names the tree whose build lock an ancestor of this process holds for it."""


@contextlib.contextmanager
def _lock_file(workspace: Workspace) -> Iterator[int]:
    """The lock; within a command for which an ancestor holds it, another one, which its parts share."""
    within = os.environ.get(HELD) == str(workspace.root)
    path = workspace.build / ("lock-within" if within else "lock")
    with explained(path):
        _make_folder(workspace.build)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folder(build: Path) -> None:
    """Make the folder of all products, which git is to pass over; one that is there stays as it is."""
    try:
        build.mkdir()
    except FileExistsError:
        build.mkdir(exist_ok=True)  # fails where it is no folder
    else:
        (build / ".gitignore").write_text("*\n")


def _locked(descriptor: int, how: int) -> bool:
    """Take the lock if that needs no waiting; whether it was taken."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a refusal of the disk about ``path`` into `Missing` with a remedy."""
    try:
        yield
    except OSError as error:
        raise _disk_error(path, error) from error


def _disk_error(path: Path, error: OSError) -> FreshproofError:
    remedies = {
        errno.ENOSPC: "free some space, then try again: nothing half-written counts",
        errno.EDQUOT: "free some of your quota, then try again",
        errno.EROFS: "work in a copy of the tree that can be written",
        errno.EACCES: "make the folder writable, or work in a copy of the tree",
    }
    remedy = remedies.get(error.errno or 0, "see to the folder named, then try again")
    return Missing(f"cannot write {path}: {error.strerror}", remedy=remedy)
