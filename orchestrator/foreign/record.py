"""Turns a build that was observed into its record: each product with its step, inputs and closure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.digests import Digests, Unreadable
from orchestrator.directives_memory import DirectivesMemory
from orchestrator.errors import ConfigurationError
from orchestrator.foreign.compile_record import CompileRecorder
from orchestrator.foreign.consulted import consulted
from orchestrator.foreign.contents import read_content, read_pieces
from orchestrator.foreign.descriptions import asked_variables, descriptions, given
from orchestrator.foreign.events import Event
from orchestrator.foreign.lists import parse_rules
from orchestrator.foreign.made import Build, Content, Made, Pairs, Receipt
from orchestrator.foreign.outputs import TICK_NS, Output, find_outputs, vanished
from orchestrator.foreign.plans import Planner
from orchestrator.foreign.provenance import chain
from orchestrator.foreign.reads import Reads, Unclosed
from orchestrator.foreign.receipt import Seen, is_below, source_root, take, variables
from orchestrator.foreign.steps import DEVICE_TOOLS, Step, Tool
from orchestrator.foreign.store import Damaged, Store
from orchestrator.lookup import group_by_folder
from orchestrator.meanwhile import ChangedMeanwhile, check_ways
from orchestrator.model import Digest

_FORMER = 20
"""How many earlier products of a path are remembered."""
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/proc", "/dev")


@dataclass(frozen=True, slots=True)
class Observed:
    """A build that is over."""

    command: tuple[str, ...]
    folder: str
    code: int
    events: tuple[Event, ...]
    lost: tuple[str, ...]
    began_ns: int
    before: Seen
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Read:
    """What a step read beside its inputs."""

    files: Pairs
    manifest: str
    """Name of the manifest of a compile by nvcc or a host compiler, which has its closure; else empty."""
    listed: bool
    """Whether that is all of it."""


@dataclass(slots=True)
class Recorder:
    """Makes the record of one build."""

    store: Store
    earlier: Build
    digests: Digests = field(init=False)
    _reads: Reads = field(init=False)
    _directives: DirectivesMemory = field(init=False)
    _compiles: CompileRecorder = field(init=False)
    _pieces: dict[str, tuple[Digest, ...]] = field(default_factory=dict)
    _contents: dict[str, Content] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.digests = Digests(Path("/"), self.store.cache("digests.json"))
        self._reads = Reads()
        self._directives = DirectivesMemory(self.store.cache("directives.json"))
        self._compiles = CompileRecorder(self.digests, self._reads, self._directives)

    def record(self, observed: Observed) -> tuple[Build, tuple[Output, ...]]:
        """The record with this build in it, and what this build made."""
        outputs = find_outputs(observed.events)
        made = _still_needed(self.earlier.made)
        run_number = self.earlier.run + 1
        with self._reads:
            self._reads.expect(output.step for output in outputs)
            receipt = self._receipt(observed, outputs)
            name = self.store.write_receipt(receipt)
            for output in outputs:
                fresh = self._made(output, receipt, observed, made)
                if fresh is not None:
                    made[output.path] = replace(fresh, receipt=name, run=run_number)
        made = _still_needed(made)
        self._plan(observed, outputs, made, name)
        lost = observed.lost
        if not any(m.content.pieces for m in made.values()):
            lost += tuple(vanished(observed.events))
        build = Build(
            root=str(self.store.root),
            command=observed.command,
            folder=observed.folder,
            code=observed.code,
            run=run_number,
            lost=lost,
            receipt=name,
            made=made,
        )
        self.store.write(build)
        self.digests.save()
        self._directives.save()
        return build, outputs

    def _plan(
        self, observed: Observed, outputs: Sequence[Output], made: dict[str, Made], receipt: Digest
    ) -> None:
        """Note what the build systems would run for each product, and where that is what made it."""
        new = {o.path: o.step for o in outputs if o.path in made}
        old = {path: m for path, m in made.items() if m.plan and path not in new}
        if not new and receipt == self.earlier.receipt:
            return
        planner = Planner(observed.events)
        asked = [(planner.tree_of(step), path) for path, step in new.items()]
        planner.load((*asked, *((m.plan[1], path) for path, m in old.items())))
        for path, step in new.items():
            made[path] = replace(made[path], plan=planner.of_step(step, path))
        for path, m in old.items() if observed.code == 0 else ():
            if planner.now(m.plan, path) == m.plan:
                made[path] = replace(m, planned=receipt)

    def _receipt(self, observed: Observed, outputs: Sequence[Output]) -> Receipt:
        root = str(self.store.root)
        products = {name for o in outputs for name in (o.path, o.step.lists) if name} | set(self.earlier.made)
        settled = take([root], observed.before, observed.began_ns, products, self.digests, observed.environ)
        for other, used_ns in _other_roots(root, outputs).items():
            more = take([other], None, used_ns, products, self.digests, observed.environ)
            settled = replace(
                settled,
                files={**settled.files, **more.files},
                parsed={**settled.parsed, **more.parsed},
                unsettled=(*settled.unsettled, *more.unsettled),
                roots=(*settled.roots, *more.roots),
            )
        settled = self._described(settled, observed)
        asked = asked_variables(observed.events)
        settled = replace(
            settled,
            asked=asked,
            variables=variables(observed.environ, asked),
            given={**self._given_before(), **given(observed.events)},
        )
        ran = {os.path.basename(name) for e in observed.events for name in (e.program, *e.argv[:1])}
        return replace(settled, tools={name: path for name, path in settled.tools.items() if name in ran})

    def _given_before(self) -> Mapping[str, str]:
        try:
            return self.store.read_receipt(self.earlier.receipt).given if self.earlier.receipt else {}
        except Damaged:
            return {}

    def _described(self, receipt: Receipt, observed: Observed) -> Receipt:
        """The receipt with the files that described the build to its programs, and what those looked at."""
        files, absent = dict(receipt.files), []
        passing = [folder for folder in (tempfile.gettempdir(),) if not is_below(receipt.roots[0], [folder])]
        looked_at = tuple(
            path
            for path in consulted(observed.events, observed.environ, passing)
            if not os.path.isdir(path) and not _written_since(path, observed.began_ns)
        )
        for path in (*descriptions(observed.events, observed.environ), *looked_at):
            if path in files:
                continue
            try:
                digest = self.digests.current(path)
            except Unreadable:
                digest = None
            if digest is None:
                absent.append(path)
            else:
                files[path] = digest
        return replace(receipt, files=files, absent=tuple(absent), consulted=looked_at)

    def _made(
        self, output: Output, receipt: Receipt, observed: Observed, known: Mapping[str, Made]
    ) -> Made | None:
        step, path = output.step, output.path
        try:
            content = self._contents[path] = read_content(path)
        except ConfigurationError:
            return None
        doubts = [output.doubt] if output.doubt else []
        if step.ended_badly:
            doubts.append(f"the {step.tool} that made it {step.ended_badly}")
        inputs = self._inputs(step, receipt, observed, known, doubts)
        read = self._read(step, path, content, doubts)
        inputs += tuple((name, digest) for name, digest in read.files if name in known and name != path)
        if step.tool not in (Tool.NVCC, *DEVICE_TOOLS):
            inputs += self._by_content(path, content, inputs, known, doubts)
        if content.sealed:
            doubts.append(f"{path}: {content.sealed}")
        before = known.get(path)
        return Made(
            path=path,
            tool=step.tool,
            mode=step.mode,
            argv=step.event.argv,
            folder=step.event.folder,
            content=content,
            inputs=inputs,
            materials=() if read.manifest else read.files,
            listed=read.listed,
            manifest=read.manifest,
            programs=() if read.manifest else self._programs(step, doubts),
            unknown=tuple(dict.fromkeys(doubts)),
            receipt="",
            run=0,
            made_ns=step.ended_ns or os.stat(path).st_mtime_ns,
            absent=group_by_folder(step.tried),
            milliseconds=((step.ended_ns or step.event.started_ns) - step.event.started_ns) // 1_000_000,
            earlier=_former(before, content),
            before=(before.content.normalised, before.content.device) if before else None,
        )

    def _inputs(
        self,
        step: Step,
        receipt: Receipt,
        observed: Observed,
        known: Mapping[str, Made],
        doubts: list[str],
    ) -> Pairs:
        """Files that were put together, with digests; what is doubtful about them goes to ``doubts``."""
        found = []
        same = {m.content.digest: m.path for m in known.values()}
        compiles_too = bool(step.sources)
        doubts += [f"{word}: what this named is no longer to be found" for word in step.unresolved]
        for path in step.objects:
            try:
                written = os.stat(path).st_mtime_ns
                digest = self.digests.current(path)
            except (OSError, Unreadable):
                written, digest = 0, None
            if path in step.outputs:
                continue
            passing = path in step.passing or (compiles_too and path in step.internal)
            own = passing and path not in known
            if digest is None:
                if not own:
                    doubts.append(f"{path}: is gone, so what went into the product is not known")
            elif written > step.event.started_ns + TICK_NS:
                if not own or not path.endswith(".o"):
                    doubts.append(f"{path}: was written after the step that used it began")
            elif path not in known and digest in same:
                found.append((same[digest], digest))  # a copy
            else:
                found.append((path, digest))
                if path not in known:
                    doubts += self._unexplained(path, written, receipt, observed)
        return tuple(found)

    def _unexplained(self, path: str, written: int, receipt: Receipt, observed: Observed) -> Iterable[str]:
        """What is doubtful about an input that no recorded step made."""
        if path in receipt.files:
            return
        if is_below(path, receipt.roots) or (written >= observed.began_ns and not path.startswith("/usr/")):
            yield f"{path}: was made by no recorded step"
        elif self._pieces_of(path) and not _in_toolkit(path):
            yield f"{path}: holds device code that no recorded step made"

    def _read(self, step: Step, path: str, content: Content, doubts: list[str]) -> Read:
        """What a step read beside its inputs."""
        if step.tool in (Tool.NVCC, Tool.HOST) and step.sources:
            try:
                found = self._compiles.manifest(step, path, content)
            except Unclosed as error:
                doubts.append(str(error))
                return Read((), "", False)
            files = tuple((m.path, m.digest) for m in found.closure.materials)
            return Read(files, self.store.write_manifest(found), True)
        names = _listed(step) if step.sources else ()
        return Read(self._materials(step, names or (), doubts), "", names is not None)

    def _materials(self, step: Step, names: Iterable[str], doubts: list[str]) -> Pairs:
        """Files that a step read."""
        read = [os.path.normpath(os.path.join(step.event.folder, name)) for name in names]
        found = []
        for name in read:
            try:
                digest, changed = self.digests.get(name), os.stat(name).st_ctime_ns
            except (OSError, Unreadable):
                digest, changed = None, 0
            if digest is None:
                doubts.append(f"{name}: is gone since it was read")
                continue
            if changed > step.reads_ns:
                doubts.append(f"{name}: was written, moved or touched while the build ran")
            found.append((name, digest))
        try:
            check_ways(self.digests, read, step.reads_ns, shared=True)
        except ChangedMeanwhile as error:
            doubts.append(str(error))
        return tuple(found)

    def _programs(self, step: Step, doubts: list[str]) -> Pairs:
        """The programs that took part in a step."""
        found = []
        for name in step.programs:
            try:
                digest = self.digests.get(name)
            except Unreadable:
                digest = None
            if digest is None:
                doubts.append(f"{name}: this program is gone since it ran")
            else:
                found.append((name, digest))
        return tuple(found)

    def _by_content(
        self, path: str, content: Content, inputs: Pairs, known: Mapping[str, Made], doubts: list[str]
    ) -> Pairs:
        """Recorded products whose device code is in a product though none of its inputs has it: it came as
        text, as bin2c and xxd write it. What has no such source is a doubt.
        """
        there = {piece for name, _digest in inputs for piece in self._pieces_of(name, known)}
        members = {digest for _name, digest, _code in content.members}  # also those that were there before
        there |= {piece for m in known.values() if m.content.digest in members for piece in m.content.pieces}
        strange = set(content.pieces) - there
        found = []
        for made in known.values() if strange else ():
            of_it = any(name == path for name, _digest in made.inputs)
            if made.path != path and not of_it and not strange.isdisjoint(made.content.pieces):
                strange -= set(made.content.pieces)
                found.append((made.path, made.content.digest))
        if strange:
            doubts.append("it holds device code that none of its inputs has")
        return tuple(found)

    def _pieces_of(self, path: str, known: Mapping[str, Made] | None = None) -> tuple[Digest, ...]:
        if path in self._contents:
            return self._contents[path].pieces
        if known and path in known:
            return known[path].content.pieces
        if path not in self._pieces:
            self._pieces[path] = read_pieces(path)
        return self._pieces[path]


def _listed(step: Step) -> tuple[str, ...] | None:
    """Names of what rustc read, as it wrote them down; `None` if it did not."""
    if step.lists is None:
        return None
    try:
        if os.stat(step.lists).st_mtime_ns + TICK_NS < step.event.started_ns:
            return None
        return parse_rules(Path(step.lists).read_bytes())
    except (OSError, ValueError):
        return None


def _still_needed(made: Mapping[str, Made]) -> dict[str, Made]:
    """Records of files that are there, and of what went into them."""
    there = [path for path in made if os.path.lexists(path)]
    return {m.path: m for path in there for m in chain(made, path)}


def _former(before: Made | None, content: Content) -> tuple[Digest, ...]:
    if before is None:
        return ()
    row = (before.content.digest, *before.earlier)
    return tuple(d for d in dict.fromkeys(row) if d != content.digest)[:_FORMER]


def _other_roots(root: str, outputs: Iterable[Output]) -> dict[str, int]:
    """Projects outside of the main one whose sources were compiled (path and git dependencies), with the
    time of their first use: the build itself may have fetched them before that.
    """
    found: dict[str, int] = {}
    for output in outputs:
        step = output.step
        names = [os.path.dirname(os.path.join(step.event.folder, source)) for source in step.sources]
        if step.tool is Tool.RUSTC:
            names.append(step.event.environment.get("CARGO_MANIFEST_DIR", root))
        for folder in set(map(os.path.realpath, names)):
            if not os.path.isdir(folder) or is_below(folder, (root, *_SYSTEM)):
                continue
            other = source_root(folder)
            if not is_below(other, [root]):
                found[other] = min(found.get(other, step.event.started_ns), step.event.started_ns)
    return found


def _written_since(path: str, began_ns: int) -> bool:
    """Whether the build itself wrote a file."""
    try:
        return os.stat(path).st_mtime_ns >= began_ns
    except OSError:
        return False


def _in_toolkit(path: str) -> bool:
    """Whether a file lies below a folder that has an nvcc in its bin."""
    folder = os.path.dirname(os.path.realpath(path))
    while folder != "/":
        if os.path.isfile(os.path.join(folder, "bin", "nvcc")):
            return True
        folder = os.path.dirname(folder)
    return False
