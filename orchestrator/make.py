"""Makes one target: runs its command, takes in its closure, stamps the product and records it.

A target is recorded only when its command succeeded, left a usable dependency list, and none of the files
that it read changed meanwhile. Whatever happens in between, kill -9 included, leaves the earlier record and
artifact, or none.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import manifest as records
from orchestrator import stamp
from orchestrator.canonical import digest_bytes
from orchestrator.closure import ClosureReader
from orchestrator.digests import Digests, Unreadable
from orchestrator.directives_memory import DirectivesMemory
from orchestrator.errors import BuildFailed, Missing
from orchestrator.kinds import is_stamped
from orchestrator.meanwhile import ChangedMeanwhile
from orchestrator.model import Action, Closure, Component, Digest, Kind, Manifest, Member, Product, Tools
from orchestrator.objects.window import Malformed
from orchestrator.openable import check_openable
from orchestrator.plan import output, stable_link, work_folder
from orchestrator.process import Ended, Runner
from orchestrator.recorded import Records
from orchestrator.regular_file import special
from orchestrator.targets import FILE, unit_of
from orchestrator.toolchain import Toolchain
from orchestrator.workspace import Workspace, fresh_folder, link_atomically, room_left, write_atomically

_CLOCK_SECONDS = 0.5
"""By which the clock may drift from the monotonic one during a command; change times rest on it."""

_LITTLE_ROOM = 1 << 20
"""With fewer bytes left on the disk, that is why a command failed, whatever it says: cicc and ptxas end in a
segmentation fault there.
"""


@dataclass(frozen=True, slots=True)
class Means:
    """What an action is carried out with."""

    toolchain: Toolchain
    tools: Tools
    """The toolchain's files with the digests that they had before."""
    members: tuple[Member, ...]
    """The targets used, as they are now."""


@dataclass(slots=True)
class Maker:
    """Makes targets of one project; may be used from several threads."""

    workspace: Workspace
    digests: Digests
    records: Records
    lock: int
    """Descriptor of the build lock, which commands inherit."""
    note: Callable[[str], None]
    runner: Runner = field(default_factory=Runner)
    directives: DirectivesMemory = field(init=False)
    _closures: ClosureReader = field(init=False)

    def __post_init__(self) -> None:
        self.directives = DirectivesMemory(self.workspace.cache("directives.json"))
        self._closures = ClosureReader(self.workspace.root, self.digests, self.directives)

    def make(self, action: Action, means: Means) -> Manifest:
        """Run the command, once more if its inputs changed meanwhile, and record it.

        Raises `BuildFailed`, or `Missing` if a tool is, or room on the disk.
        """
        try:
            manifest = self._make(action, means)
        except BuildFailed as error:
            self._check_room(error)
            raise
        finally:
            shutil.rmtree(self.workspace.root / work_folder(action.target), ignore_errors=True)
        self.point_to(action, manifest.product.path)
        return manifest

    def _make(self, action: Action, means: Means) -> Manifest:
        name = action.target.name
        ended, closure = self._run_undisturbed(action, means)
        recipe = records.recipe_digest(action, closure, means.members, means.tools)
        product = self._put(action, *self._take(action, recipe))
        manifest = Manifest(
            target=name,
            kind=action.target.kind,
            arch=action.arch,
            argv=action.argv,
            environment=action.environment,
            generated=tuple(sorted((g.path, digest_bytes(g.text.encode())) for g in action.generated)),
            closure=closure,
            members=means.members,
            tools=means.tools,
            toolkit_version=means.toolchain.version,
            action_digest=records.action_digest(action, closure, means.tools),
            recipe_digest=recipe,
            product=product,
            seconds=ended.seconds,
            log=self.workspace.relative(self.workspace.log(name)),
        )
        self.records.write(manifest)
        return manifest

    def remake(self, action: Action, means: Means) -> bytes:
        """Run the command in an empty folder and give the product, stamped; record nothing."""
        _ended, closure = self._run_undisturbed(action, means)
        return self._take(action, records.recipe_digest(action, closure, means.members, means.tools))[1]

    def point_to(self, action: Action, product: str) -> bool:
        """Set the stable link right if it is not; whether it was not."""
        link = f"{self.workspace.root}/{stable_link(action.product_name)}"
        to = f"../{product.removeprefix('build/')}"
        try:
            right = os.readlink(link) == to  # noqa: PTH115  (a thousand of them)
        except OSError:
            right = False
        if not right:
            link_atomically(Path(link), to)
        return not right

    def _run_undisturbed(self, action: Action, means: Means) -> tuple[Ended, Closure]:
        """Run the command until nothing that it read changed meanwhile; twice at most."""
        name = action.target.name
        self._check_sources(action)
        for attempt in (1, 2):
            started_ns = self._prepare(action)
            clocks = time.time() - time.monotonic()
            ended = self._run(action)
            try:
                if abs(time.time() - time.monotonic() - clocks) > _CLOCK_SECONDS:
                    raise ChangedMeanwhile("the computer's clock was set while the command ran")
                closure = self._closures.read(action, means.toolchain, started_ns, last=attempt == 2)
                self._check_tools(means.tools.components)
                return ended, closure
            except ChangedMeanwhile as change:
                self.note(f"{name}: {change}" + ("; building it again" if attempt == 1 else ""))
                last = change
        raise BuildFailed(
            f"{name}: not recorded, since its inputs keep changing:",
            details=str(last),
            remedy="build again when the files are at rest",
        )

    def _check_room(self, error: BuildFailed) -> None:
        """Raise `Missing` with the words of ``error`` if a full disk is behind it."""
        left = room_left(self.workspace.root)
        if left < _LITTLE_ROOM or os.strerror(errno.ENOSPC) in str(error):
            full = f"the disk is full: {left // 1024} KiB are left for {self.workspace.root}"
            raise Missing(
                error.what,
                details="\n".join(filter(None, (error.details, full))),
                remedy="free some space, then build again: nothing half-written counts",
            ) from error

    def _check_sources(self, action: Action) -> None:
        """Raise `BuildFailed` for a source that is not there, and for what the command would wait for."""
        for source in action.target.sources:
            path = self.workspace.root / source
            if not path.is_file() and not special(path):
                raise BuildFailed(
                    f"{action.target.name}: there is no file {source}",
                    remedy=f"correct `sources` at {FILE}:{action.target.sources_line}, or add the file",
                )
        check_openable(self.workspace.root, action, self._closures.directives_now)

    def _prepare(self, action: Action) -> int:
        """Empty private folder with the generated files; returns the file system's time now, in nanoseconds.

        Waits for the next tick of its clock if an input was written in this one: an edit before the command
        and one after its start could not be told apart.
        """
        root = self.workspace.root
        work = root / work_folder(action.target)
        fresh_folder(work)
        (work / "keep").mkdir()
        (work / "tmp").mkdir()
        for generated in action.generated:
            (root / generated.path).write_text(generated.text, encoding="utf-8")
        recent = max(_change_time(root / name) for name in (*action.target.sources, *action.members))
        mark = work / "started"
        while True:
            mark.write_bytes(b"")
            started = mark.stat().st_ctime_ns
            if started > recent or recent > time.time_ns():
                return started
            time.sleep(0.002)

    def _run(self, action: Action) -> Ended:
        """Run the command once; its output is kept either way."""
        name = action.target.name
        ended = self.runner.run(action.argv, dict(action.environment), self.workspace.root, (self.lock,))
        log = self.workspace.log(name)
        command = " ".join(action.argv).encode("utf-8", "surrogateescape")
        write_atomically(log, command + b"\n\n" + ended.said)
        if b"unrecognized option '--dependency-file" in ended.said:
            raise Missing(
                f"{name}: the linker does not tell what it read; GNU ld 2.35 or newer, lld or mold does",
                remedy="install newer binutils, and put them first on the PATH",
            )
        if ended.code != 0:
            said = ended.said.decode("utf-8", "replace").rstrip() or "it printed nothing"
            how = f"exit status {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
            raise BuildFailed(
                f"{name}: nvcc ended with {how}:",
                details=said,
                remedy=f"{_hint(said)}the whole log: {self.workspace.relative(log)}",
            )
        self._check_preprocessed(action)
        return ended

    def _check_preprocessed(self, action: Action) -> None:
        """What a preprocessor writes names its source at least; nothing at all compiles to nothing at all."""
        for path in (self.workspace.root / work_folder(action.target) / "keep").glob("*.ii"):
            if path.stat().st_size == 0:
                raise BuildFailed(
                    f"{action.target.name}: the preprocessor ended well and wrote nothing ({path.name})",
                    remedy="a wrapper around the host compiler may be at fault; see the log",
                )

    def _check_tools(self, components: Sequence[Component]) -> None:
        """The toolchain after the command: one that changed while it ran made nobody knows what."""
        for component in components:
            try:
                now = self.digests.current(component.path)
            except Unreadable:
                now = None
            if now != component.digest:
                raise BuildFailed(
                    f"{component.path} changed while it was in use",
                    remedy="build again when the installation is done",
                )

    def _take(self, action: Action, recipe: Digest) -> tuple[bytes, bytes]:
        """The product as compiled, and stamped."""
        target = action.target
        try:
            data = (self.workspace.root / output(target)).read_bytes()
            if not is_stamped(target):
                return data, data
            return data, stamp.write_stamp(data, unit_of(target.name), recipe)
        except OSError as error:
            raise BuildFailed(
                f"{target.name}: nvcc succeeded and wrote no product: {error.strerror}",
                remedy="a wrapper around nvcc may be at fault; see the log",
            ) from None
        except (ValueError, Malformed) as error:
            raise BuildFailed(
                f"{target.name}: the product cannot be stamped: {error}", remedy="see the log for warnings"
            ) from None

    def _put(self, action: Action, data: bytes, stamped: bytes) -> Product:
        """Put the product at the path of its digest."""
        digest = digest_bytes(stamped)
        path = self.workspace.artifact(digest, action.product_name)
        write_atomically(path, stamped, mode=0o555 if action.target.kind is Kind.EXECUTABLE else 0o444)
        return Product(self.workspace.relative(path), digest, digest_bytes(data), len(stamped))


def _change_time(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0


def _hint(said: str) -> str:
    """What to do about a message that does not say it."""
    if "Unresolved extern" in said:
        return (
            "device functions of other files need objects with -rdc=true in `flags`, a device-link that uses "
            "them, and a program that uses all; "
        )
    return ""
