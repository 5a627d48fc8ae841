"""Evidence about the products of recorded builds. `orchestrator.freshness.judge` decides, here as elsewhere.

A product is looked at with everything that went into it: each step's inputs, tools and surroundings, and
whether what it was made from is still what lies there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.digests import Digests, Unreadable
from orchestrator.errors import BuildFailed, Missing
from orchestrator.evidence import Observer, compare_tools, digest_tools, paths_of
from orchestrator.foreign.architectures import observe_code_for
from orchestrator.foreign.compile_record import recorded_toolchain
from orchestrator.foreign.contents import read_pieces
from orchestrator.foreign.made import Build, Made, Receipt
from orchestrator.foreign.origins import Origins
from orchestrator.foreign.packages import Packages, is_build_script
from orchestrator.foreign.plans import acts_through
from orchestrator.foreign.provenance import (
    AGAIN,
    Unknown,
    chain,
    members_of,
    place_of,
    second_names,
    sources_of,
)
from orchestrator.foreign.receipt import is_written_here, look, meaning_of, programs, variables
from orchestrator.foreign.sources import can_matter, is_unit
from orchestrator.foreign.steps import Tool
from orchestrator.foreign.store import Damaged, Store
from orchestrator.freshness import judge
from orchestrator.model import Digest, Evidence, Link, Manifest, Observation, Tools, Verdict
from orchestrator.objects.contents import Form
from orchestrator.toolchain import Toolchain

_LEFT_ALONE = (
    "the build system left it alone, and may not know of this file: {}build from clean, "
    "or let git ignore the file if it has no part in the build"
)
_LOADED = frozenset({Form.EXECUTABLE, Form.SHARED_LIBRARY, Form.CUBIN, Form.FATBIN, Form.PTX})
"""What a program can load."""
_ALWAYS = frozenset({Link.PLAN, Link.INPUTS, Link.ARTIFACT})


@dataclass(slots=True)
class Judge:
    """One look at what is recorded and at what is there now; each file is read once."""

    store: Store
    build: Build
    environ: Mapping[str, str]
    digests: Digests = field(default_factory=lambda: Digests(Path("/")))
    gpu: str = ""
    """Architecture on which the products are to run; empty if that is not asked."""
    _observer: Observer = field(init=False)
    _origins: Origins = field(init=False)
    _toolchains: dict[object, Toolchain] = field(default_factory=dict)
    _tools: dict[Toolchain, Tools] = field(default_factory=dict)
    _manifests: dict[Digest, Manifest | str] = field(default_factory=dict)
    _receipts: dict[Digest, Receipt | str] = field(default_factory=dict)
    _changes: dict[Digest, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    _listed: dict[str, frozenset[str]] = field(default_factory=dict)
    _known: dict[str, tuple[Observation, ...]] = field(default_factory=dict)
    _packages: Packages = field(init=False)

    def __post_init__(self) -> None:
        self._origins = Origins(self.store)
        self._packages = Packages(self.build.made)
        self._observer = Observer(Path("/"), self.digests, lambda _manifest, _target: ())

    def verdict(self, path: str, at: str | None = None, *, same: bool = False) -> Verdict:
        """On the product recorded at ``path``, as it lies there or ``at`` another place; ``same`` if what
        lies there was found to be that product though not byte for byte.
        """
        made = self.build.made[path]
        steps = chain(self.build.made, path)
        self._load(steps)
        own = {m.path for m in steps} | {name for m in steps for name in self._closure_paths(m)}
        rows = [self._artifact(made, path if same else at or path)]
        if self.gpu and made.content.device and made.content.form in _LOADED:
            rows.append(observe_code_for(self.gpu, made.content.archs, self.shown(at or path)))
        for step in steps:
            rows += self._of_step(step, own)
            rows += (
                self._in_words(self._told(o, step)) for o in members_of(step, self.build.made, self._now)
            )
        unique = {(o.code, o.subject, o.recorded, o.observed, o.note): o for o in rows}
        required = _ALWAYS | ({Link.MEMBERS} if made.inputs else frozenset())
        if made.content.pieces or any(map(sources_of, steps)):
            required |= {Link.TOOLCHAIN}
        return judge(Evidence(self.shown(at or path), required, tuple(unique.values())))

    def product(self, path: str) -> Verdict:
        """On the product recorded at ``path``, under the name by which people know it."""
        made = self.build.made[path]
        for name in second_names(path):
            if self.digest(name) == made.content.digest:
                return self.verdict(path, name)
        return self.verdict(path)

    def shown(self, path: str) -> str:
        """A path as people know it: relative to the project."""
        return path.removeprefix(f"{self.build.root}/")

    def unrecorded(self, path: str) -> Verdict:
        """On a file that no recorded step made."""
        note = f"{self.shown(path)}: was made by no recorded step"
        note = self.with_stamps(note, path)
        missing = Observation(Link.PLAN, "not-recorded", path, None, None, note, AGAIN)
        return judge(Evidence(self.shown(path), frozenset({Link.PLAN}), (missing,)))

    def digest(self, path: str) -> Digest | None:
        """Of a file now; `None` if it is not there or cannot be read."""
        now = self._now(path)
        return None if isinstance(now, Unknown) else now

    def holds_code(self, path: str) -> bool:
        """Whether device code is in a file."""
        return bool(read_pieces(path))

    def _load(self, steps: Iterable[Made]) -> None:
        """Read everything that will be asked for, in parallel."""
        steps = [m for m in steps if m.path not in self._known]
        manifests = {m.path: found for m in steps if isinstance(found := self._manifest(m), Manifest)}
        names = {name for m in steps for name, _digest in (*m.inputs, *m.materials, *m.programs)}
        names |= {m.path for m in steps}
        names.update(path for path in paths_of(manifests) if path.startswith("/"))
        self.digests.load(sorted(names))

    def _of_step(self, made: Made, own: set[str]) -> tuple[Observation, ...]:
        """Inputs, tools and surroundings of one step."""
        if made.path not in self._known:
            self._known[made.path] = (
                *self._surroundings(made),
                *self._compiled(made),
                *self._materials(made),
                *self._programs(made),
                *(self._doubt(made, why) for why in made.unknown),
            )
        return (*self._known[made.path], *self._project(made, own))

    def _artifact(self, made: Made, path: str) -> Observation:
        now = self._now(path)
        shown = self.shown(path)
        if isinstance(now, Unknown):
            return Observation(
                Link.ARTIFACT, "artifact-unreadable", shown, made.content.digest, None, str(now)
            )
        note = f"{shown}: {'was written again, and `freshproof run` did not see it' if now else 'is gone'}"
        if now and now != made.content.digest:
            note = self.with_stamps(note, path)
        code = "artifact" if now == made.content.digest else "artifact-changed" if now else "artifact-missing"
        return Observation(Link.ARTIFACT, code, shown, made.content.digest, now or "missing", note, AGAIN)

    def _now(self, path: str) -> Digest | Unknown | None:
        try:
            return self.digests.get(path)
        except Unreadable as error:
            return Unknown(error)

    def with_stamps(self, note: str, path: str, member: str = "") -> str:
        """A finding with what the stamps in a file say of its code. They sharpen words and decide nothing."""
        told = self._origins.sentence(path, member)
        return f"{note}; {told}" if told else note

    def _told(self, o: Observation, step: Made) -> Observation:
        """An observation about what went into ``step``, with the stamps of what did."""
        if o.code not in ("member-old", "member-unrecorded"):
            return o
        inside = o.subject.removeprefix(step.path)
        return replace(o, note=self.with_stamps(o.note, step.path, inside if inside != o.subject else ""))

    def _doubt(self, made: Made, why: str) -> Observation:
        name, why = self.shown(made.path), self.shown(why)
        note = why if why.startswith(f"{name}:") else f"{name}: {why}"
        return Observation(Link.INPUTS, "not-established", made.path, None, None, note, AGAIN)

    def _compiled(self, made: Made) -> Iterator[Observation]:
        """Closure and toolchain of a compile."""
        if not made.manifest:
            return
        manifest = self._manifest(made)
        if isinstance(manifest, str):
            yield self._doubt(made, manifest)
            return
        yield from map(self._in_words, self._observer.inputs(manifest))
        if made.tool is Tool.HOST:
            named = tuple((c.role, c.path) for c in manifest.tools.components)
            yield from map(self._in_words, compare_tools(manifest, digest_tools(named, self.digests)))
            return
        try:
            toolchain = recorded_toolchain(manifest, self._toolchains)
        except (BuildFailed, Missing) as error:
            yield Observation(Link.TOOLCHAIN, "no-toolchain", manifest.argv[0], None, None, error.what)
            return
        if toolchain not in self._tools:
            self._tools[toolchain] = digest_tools(toolchain.components, self.digests)
        yield from map(self._in_words, compare_tools(manifest, self._tools[toolchain]))

    def _in_words(self, o: Observation) -> Observation:
        """An observation with the project's own files named as people know them."""
        note = o.note.replace(f"{self.build.root}/", "")
        return replace(o, subject=self.shown(o.subject), note=note, remedy=AGAIN)

    def _materials(self, made: Made) -> Iterator[Observation]:
        """What rustc read, and where libraries were looked for in vain."""
        count = f"{len(made.materials)} files"
        if made.materials:
            yield Observation(Link.INPUTS, "materials", made.path, count, count)
        for path, recorded in made.materials:
            now = self._now(path)
            shown = self.shown(path)
            if isinstance(now, Unknown):
                yield Observation(Link.INPUTS, "input-unreadable", shown, recorded, None, str(now), AGAIN)
            elif now != recorded:
                note = f"{shown}: {'its content changed' if now else 'is gone'}"
                code = "input-changed" if now else "input-missing"
                yield Observation(Link.INPUTS, code, shown, recorded, now or "missing", note, AGAIN)
        for path in (f"{folder}/{name}" for folder, names in made.absent for name in names):
            if os.path.isfile(path):
                shown = self.shown(path)
                note = f"{shown}: would be linked now; it was not there when {self.shown(made.path)} was made"
                yield Observation(Link.INPUTS, "name-appeared", shown, "absent", "present", note, AGAIN)

    def _programs(self, made: Made) -> Iterator[Observation]:
        """The programs that took part in a step, by content."""
        for path, recorded in made.programs:
            now = self._now(path)
            if isinstance(now, Unknown):
                yield Observation(Link.TOOLCHAIN, "tool-unreadable", path, recorded, None, str(now), AGAIN)
            else:
                note = f"{path}: this tool's content changed"
                yield Observation(
                    Link.TOOLCHAIN, "tool-changed", path, recorded, now or "missing", note, AGAIN
                )

    def _surroundings(self, made: Made) -> Iterator[Observation]:
        """Variables and tools of the build beside those of now."""
        receipt = self._receipt(made.receipt)
        if isinstance(receipt, str):
            yield Observation(Link.PLAN, "no-receipt", made.path, None, None, receipt, AGAIN)
            return
        set_now, found_now = variables(self.environ, receipt.asked), programs(self.environ)
        for code, before, now, names in (
            ("variable-changed", receipt.variables, set_now, receipt.variables.keys() | set_now.keys()),
            ("program-moved", receipt.tools, found_now, receipt.tools.keys()),
        ):
            for name in sorted(names):
                was, is_now = before.get(name, "unset"), now.get(name, "unset")
                if was != is_now:
                    note = f"{name}: was {was} in the recorded build, is {is_now} now"
                    yield Observation(Link.PLAN, code, name, was, is_now, note, AGAIN)
        yield from self._given(receipt)
        count = f"{len(receipt.variables)} variables, {len(receipt.tools)} tools"
        yield Observation(Link.PLAN, "surroundings", "build", count, count)

    def _given(self, receipt: Receipt) -> Iterator[Observation]:
        """What make was told to set when the step ran, beside what it was told last in that folder."""
        last = self._receipt(self.build.receipt)
        given = last.given if isinstance(last, Receipt) else {}
        for folder, was in receipt.given.items():
            now = given.get(folder, was)
            if was != now:
                words = [f"`make{f' {text}' if text else ''}`" for text in (was, now)]
                note = f"it was made by {words[0]}, and the last build was {words[1]}"
                yield Observation(Link.PLAN, "assignment-changed", self.shown(folder), was, now, note, AGAIN)

    def _project(self, made: Made, own: set[str]) -> Iterator[Observation]:
        """The project's other files that can matter for a step."""
        closure = self._closure_paths(made)
        scripts, consulted = self._steering(), self._consulted(made.receipt)
        steering = scripts | consulted
        planned = self._changed_since_planned(made)
        for path, code, what in self._changed(made.receipt):
            if code == "file-displaced":
                if path in closure or can_matter(path, made.listed, steering):
                    note = f"{self.shown(path)} {what}"
                    yield Observation(Link.INPUTS, code, self.shown(path), None, None, note, AGAIN)
                continue
            if path in closure or path in self.build.made:
                continue
            if path in scripts and path not in consulted and not self._packages.concerns(path, made):
                continue
            if planned is not None and path not in planned and acts_through(made.plan, path):
                continue
            if made.listed and path in own and path not in steering:
                continue
            joined = code == "file-appeared" and made.mode == "join" and is_unit(path)
            if can_matter(path, made.listed, steering) or (joined and not self._was_built_since(path)):
                note, remedy = f"{self.shown(path)} {what} the recorded build", AGAIN
                if self._was_left_alone_with(path):
                    note, remedy = (
                        f"{self.shown(path)} {what} {self.shown(made.path)} was made",
                        self._again(made),
                    )
                yield Observation(Link.INPUTS, code, self.shown(path), None, None, note, remedy)

    def _again(self, made: Made) -> str:
        """How to have a product made again. Cargo and setuptools do not miss an object that is gone."""
        by_hash = place_of(made.path) != made.path or "/build/temp." in made.path
        only = (
            ""
            if by_hash
            else f"remove {self.shown(made.path)} and build again behind `freshproof run --`, or "
        )
        return _LEFT_ALONE.format(only)

    def _changed_since_planned(self, made: Made) -> frozenset[str] | None:
        """Files of the project that changed since the build system was last seen to have the plan by which a
        product was made; `None` if it was not.
        """
        if not made.listed or not made.planned or not isinstance(self._receipt(made.planned), Receipt):
            return None
        return frozenset(path for path, _code, _what in self._changed(made.planned))

    def _was_built_since(self, path: str) -> bool:
        """Whether a recorded build ran with the file there: what it then left alone does not need it."""
        last = self._receipt(self.build.receipt)
        return isinstance(last, Receipt) and path in last.files

    def _was_left_alone_with(self, path: str) -> bool:
        """Whether a recorded build ran with the file as it is now, and saw nothing to do."""
        last = self._receipt(self.build.receipt)
        return isinstance(last, Receipt) and last.files.get(path, "") == self._now(path)

    def _changed(self, name: Digest) -> tuple[tuple[str, str, str], ...]:
        """Files of the project that are not as in a receipt: path, code, in words."""
        if name not in self._changes:
            receipt = self._receipt(name)
            self._changes[name] = tuple(self._differences(receipt)) if isinstance(receipt, Receipt) else ()
        return self._changes[name]

    def _differences(self, receipt: Receipt) -> Iterator[tuple[str, str, str]]:
        for path in receipt.unsettled:
            yield path, "file-unsettled", "changed during"
        for path in receipt.displaced:
            yield path, "file-displaced", "came with a moved folder while the recorded build ran"
        now = {path for root in receipt.roots for path in self._files(root)}
        self.digests.load(sorted(now | receipt.files.keys()))
        for path, digest in receipt.files.items():
            found = self._now(path)
            if found == digest or not digest or is_written_here(path):
                continue
            says = receipt.parsed.get(path)
            if found is None or not says or meaning_of(path) != says:
                yield path, "project-changed", "changed since" if found else "was removed since"
        there = (path for path in receipt.absent if os.path.lexists(path))
        for path in sorted((now - receipt.files.keys()) | set(there)):
            yield path, "file-appeared", "was added since"

    def _files(self, root: str) -> frozenset[str]:
        if root not in self._listed:
            lists = {name for m in self.build.made.values() for name in _lists_beside(m)}
            self._listed[root] = frozenset(look([root]).keys() - self.build.made.keys() - lists)
        return self._listed[root]

    def _steering(self) -> frozenset[str]:
        """Sources of programs that the build made for its own use."""
        return frozenset(
            path for m in self.build.made.values() if is_build_script(m) for path, _digest in m.materials
        )

    def _consulted(self, name: Digest) -> frozenset[str]:
        """What build scripts looked at in the build of a receipt."""
        receipt = self._receipt(name)
        return frozenset(receipt.consulted) if isinstance(receipt, Receipt) else frozenset()

    def _closure_paths(self, made: Made) -> frozenset[str]:
        names = {path for path, _digest in (*made.inputs, *made.materials)}
        manifest = self._manifest(made) if made.manifest else ""
        if isinstance(manifest, Manifest):
            names.update(m.path for m in manifest.closure.materials)
        return frozenset(names)

    def _manifest(self, made: Made) -> Manifest | str:
        if not made.manifest:
            return ""
        if made.manifest not in self._manifests:
            try:
                self._manifests[made.manifest] = self.store.read_manifest(made.manifest)
            except Damaged as error:
                self._manifests[made.manifest] = str(error)
        return self._manifests[made.manifest]

    def _receipt(self, name: Digest) -> Receipt | str:
        if name not in self._receipts:
            try:
                self._receipts[name] = self.store.read_receipt(name)
            except Damaged as error:
                self._receipts[name] = str(error)
        return self._receipts[name]


def _lists_beside(made: Made) -> tuple[str, ...]:
    stem, _ending = os.path.splitext(made.path)
    return (f"{stem}.d", f"{made.path}.d")
