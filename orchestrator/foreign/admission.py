"""Whether what other build systems built may be used: for a whole project, and for one command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import ConfigurationError, Refused
from orchestrator.foreign.installed import differs_in_rpath_only
from orchestrator.foreign.judge import Judge
from orchestrator.foreign.loaded import (
    is_program,
    libraries_of,
    named_files,
    older_processes,
    replaced_files,
)
from orchestrator.foreign.made import Build, Made
from orchestrator.foreign.names import find_product, product_names
from orchestrator.foreign.provenance import AGAIN, second_names
from orchestrator.foreign.receipt import git_top, is_below, project_root
from orchestrator.foreign.standing import standing_ends
from orchestrator.foreign.store import Damaged, Store, find_store
from orchestrator.freshness import judge
from orchestrator.gpu_arch import architectures, find_arch
from orchestrator.model import Admission, Evidence, Link, Observation, Project, Verdict
from orchestrator.objects.contents import Form
from orchestrator.situation import read_project
from orchestrator.targets import FILE, select
from orchestrator.workspace import Workspace, find_root

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/snap", "/nix")
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
_OPENED = frozenset({Form.CUBIN, Form.FATBIN, Form.PTX, Form.LTO_IR})


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdicts on recorded builds."""

    verdicts: tuple[tuple[str, Verdict], ...]
    """Those that decide, with the path of each product."""
    leftover: tuple[str, ...]
    """Products of earlier builds that nothing uses."""
    build: Build

    @property
    def empty(self) -> bool:
        """Whether the record holds nothing with device code, and nothing was hidden from it."""
        return not self.build.lost and not any(m.content.pieces for m in self.build.made.values())


def decide(own: Admission | None, checked: Checked | None) -> Admission:
    """On the project's own targets and on recorded builds together; a refusal has a finding, always.

    A recorded build that made no device code leaves nothing of it to judge, and the targets decide. What the
    gate has just admitted among the targets needs no other build's record.
    """
    verdicts = own.verdicts if own else ()
    admitted = {os.path.realpath(artifact.path) for artifact in own.artifacts} if own else set()
    if checked is not None:
        judged = [v for path, v in checked.verdicts if os.path.realpath(path) not in admitted]
        verdicts = (*verdicts, *judged)
        if not judged and not checked.empty and not checked.verdicts:
            verdicts = (*verdicts, _nothing_counts(checked.build))
    return Admission(verdicts or (_nothing_to_judge(checked),), own.artifacts if own else ())


def empty_record_note(own: Admission | None, checked: Checked | None) -> str:
    """What is said where a record exists and has no part in the answer; else empty."""
    if own is None or not own.verdicts or checked is None or not checked.empty or checked.verdicts:
        return ""
    return f"{_made_nothing(checked.build)}; the targets decide"


def _nothing_counts(build: Build) -> Verdict:
    """Of a record by which no product can be judged."""
    note = f"{build.root}: no product of the recorded build can be judged"
    if build.lost:
        note += f"; not known of it: {build.lost[0]}"
    return _unproven("recorded build", build.root, note, AGAIN)


def _nothing_to_judge(checked: Checked | None) -> Verdict:
    if checked is None:
        return _unproven("targets", FILE, "there is no target to judge", "define one in that file")
    build = checked.build
    note = f"{build.root}: {_made_nothing(build)}, and there are no targets"
    remedy = f"make it build, behind `freshproof run -- {' '.join(build.command)}`" if build.code else AGAIN
    return _unproven("recorded build", build.root, note, remedy)


def _made_nothing(build: Build) -> str:
    """Of a record without device code."""
    command = " ".join(build.command)
    if build.code:
        return f"the recorded build (`{command}`) ended with exit code {build.code} and left no CUDA code"
    return f"the recorded build (`{command}`) made no CUDA code"


def _unproven(name: str, subject: str, note: str, remedy: str) -> Verdict:
    observation = Observation(Link.PLAN, "nothing-recorded", subject, None, None, note, remedy)
    return judge(Evidence(name, frozenset({Link.PLAN}), (observation,)))


def open_record(start: Path) -> tuple[Store, Build] | None:
    """The record of the nearest project; `None` without one. Raises `Refused` for one that is damaged, or
    that came here with a project that was moved or copied: it tells of the files in the other place.
    """
    store = find_store(start)
    if store is None:
        return None
    try:
        build = store.read()
    except Damaged as error:
        raise Refused(str(error), remedy="build again behind `freshproof run --`") from None
    if build is not None and build.root != str(store.root):
        raise Refused(
            f"{store.folder}: this was recorded in {build.root}, and the project was moved or copied since",
            remedy="build it here from clean, behind `freshproof run --`",
        )
    return None if build is None else (store, build)


def cut_off_note(start: Path) -> str:
    """What is said where the last build behind `freshproof run` was cut off; else empty."""
    store = find_store(start)
    cut_off = store.cut_off() if store else ""
    again = "build again behind `freshproof run --`, from clean if that does nothing"
    return f"{cut_off}; {again}" if cut_off else ""


def store_for_build(folder: str) -> Store:
    """Where a build in ``folder`` is recorded: at the top of its git tree; outside of one, where one was
    recorded before in the folder or above it, else in the folder, or in that of the sources of CMake.
    """
    root, top = project_root(folder), git_top(folder)
    nearest = None if root == top else find_store(Path(root))
    if nearest is None or is_below(top, [str(nearest.root)]):  # what git ignores is no part of its project
        return Store(Path(root))
    return nearest


def has_targets(start: Path) -> bool:
    """Whether ``start`` or a folder above it holds manifests/targets.toml."""
    start = Path(os.path.realpath(start))
    return any((folder / FILE).is_file() for folder in (start, *start.parents))


def gpu_arch(environ: Mapping[str, str]) -> str:
    """The architecture of the GPU that a command would use; empty without a GPU."""
    return "" if isinstance(architectures(environ), str) else find_arch(environ)[0]


def check_all(store: Store, build: Build, environ: Mapping[str, str], gpu: str = "") -> Checked:
    """Every product that counts, and every process that still runs what has been replaced. With ``gpu``, also
    whether programs and libraries run on that architecture.
    """
    look = Judge(store, build, environ, gpu=gpu)
    counting, leftover = standing_ends(build)
    verdicts = [(path, look.product(path)) for path in counting]
    verdicts += [("", verdict) for verdict in _processes(build)]
    return Checked(tuple(verdicts), leftover, build)


def split_names(
    names: Sequence[str], recorded: tuple[Store, Build] | None, folder: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of ``names`` are targets of targets.toml, and the paths of the recorded products that the others
    are. What is both is the target.

    Raises `ConfigurationError` for a name of neither.
    """
    if not names or recorded is None:
        return tuple(names), ()
    project = read_project(Workspace(find_root(folder))) if has_targets(folder) else None
    targets, products = [], []
    for name in names:
        if project is not None and _is_target(project, name):
            targets.append(name)
        elif path := find_product(recorded[1], name, os.path.realpath(folder)):
            products.append(path)
        else:
            known = [target.name for target in project.targets] if project else []
            known += product_names(recorded[1])
            raise ConfigurationError(
                f"{name} is no target, and no product of the recorded build",
                remedy=f"there are: {', '.join(known) or 'none'}",
            )
    return tuple(targets), tuple(products)


def _is_target(project: Project, name: str) -> bool:
    try:
        return bool(select(project, [name]))
    except ConfigurationError:
        return False


def check_named(
    store: Store, build: Build, paths: Sequence[str], environ: Mapping[str, str], gpu: str = ""
) -> Checked:
    """These products, and every process that still runs what of them has been replaced."""
    look = Judge(store, build, environ, gpu=gpu)
    verdicts = [(path, look.product(path)) for path in dict.fromkeys(paths)]
    only = replace(build, made={path: build.made[path] for path in paths})
    verdicts += [("", verdict) for verdict in _processes(only)]
    return Checked(tuple(verdicts), (), build)


def check_command(
    store: Store,
    build: Build,
    argv: Sequence[str],
    environ: Mapping[str, str],
    named: Sequence[str] = (),
) -> Checked:
    """The products ``named``, and what a command is known to load; everything, if that is nothing."""
    look = Judge(store, build, environ, gpu=gpu_arch(environ))
    files = named_files(argv, environ)
    libraries = [path for file in files for path in libraries_of(file, environ)]
    judged = {path: look.product(path) for path in named}
    judged |= dict(_on_files(look, build, (*files, *libraries)))
    verdicts = judged or {path: look.product(path) for path in standing_ends(build)[0]}
    return Checked(tuple(verdicts.items()), (), build)


def folders_of_code(build: Build) -> tuple[str, ...]:
    """Where the build left device code in files of its own, which programs open by name."""
    return tuple(sorted({os.path.dirname(m.path) for m in build.made.values() if m.content.form in _OPENED}))


def check_loaded(
    store: Store, build: Build, before: Checked, loaded: Iterable[str], environ: Mapping[str, str]
) -> Checked:
    """The same again after the command ran, and what it was seen to load and open."""
    look = Judge(store, build, environ, gpu=gpu_arch(environ))
    judged = {path for path, _verdict in before.verdicts}
    files = dict.fromkeys((*(p for p in judged if os.path.isabs(p)), *loaded))
    verdicts = _on_files(look, build, files, "was loaded")
    again = {path for path, _verdict in verdicts}
    verdicts += [(path, look.verdict(path)) for path in judged - again if path in build.made]
    return Checked(tuple(verdicts), (), build)


def _on_files(
    look: Judge, build: Build, files: Iterable[str], how: str = "would be loaded"
) -> list[tuple[str, Verdict]]:
    """Verdicts on those of ``files`` that a recorded build made, or that lie where it should have."""
    by_digest = {m.content.digest: m.path for m in build.made.values()}
    named: dict[str, list[str]] = {}
    for made in build.made.values():
        for name in _loaded_as(made):
            named.setdefault(name, []).append(made.path)
    by_name = {name: paths[-1] for name, paths in named.items()}
    former = {digest: m.path for m in build.made.values() for digest in m.earlier}
    found: dict[str, Verdict] = {}
    for path in files:
        if path in build.made:
            found[path] = look.verdict(path)
            continue
        digest = look.digest(path)
        name = os.path.basename(path)
        if digest in by_digest:
            found[path] = look.verdict(by_digest[digest], path)
        elif digest in former:
            found[path] = _other_copy(look, path, former[digest], digest, how, "an earlier one of it")
        elif name in by_name and digest is not None and digest == look.digest(by_name[name]):
            found[path] = look.verdict(by_name[name], path)  # its second name; both were written again
        elif original := _installed_from(look, named.get(name, ()), path):
            found[path] = look.verdict(original, path, same=True)
        elif name in by_name and (not is_below(path, _SYSTEM) or look.holds_code(path)):
            found[path] = _other_copy(look, path, by_name[name], digest, how, "another of its name")
        elif _is_own(path, build.root) and look.holds_code(path):
            found[path] = look.unrecorded(path)
    return list(found.items())


def _installed_from(look: Judge, products: Sequence[str], path: str) -> str:
    """That of ``products`` of which a file is a copy with another RPATH; empty if it is of none."""
    for product in products:
        is_there = look.digest(product) == look.build.made[product].content.digest
        if is_there and differs_in_rpath_only(path, product):
            return product
    return ""


def _loaded_as(made: Made) -> tuple[str, ...]:
    """The names by which people know a program or library."""
    if made.content.form not in (Form.SHARED_LIBRARY, Form.EXECUTABLE):
        return ()
    return tuple(map(os.path.basename, (made.path, *second_names(made.path))))


def _is_own(path: str, root: str) -> bool:
    """Whether a file would have to be recorded if it holds device code: all of the project's, and programs
    wherever they lie but in the folders of installed ones.
    """
    return is_below(path, (root,)) or (is_program(path) and not is_below(path, _SYSTEM))


def _other_copy(look: Judge, path: str, recorded: str, digest: str | None, how: str, what: str) -> Verdict:
    """A program or library that stands for a recorded one and is not it."""
    wanted = look.build.made[recorded].content.digest
    note = f"{path} {how}; the recorded build made {look.shown(recorded)}, and this is {what}"
    note = look.with_stamps(note, path)
    remedy = "name that one, or see to LD_LIBRARY_PATH and the program's RUNPATH"
    if _PACKAGES.search(path):
        remedy = "install the package again behind `freshproof run --`, or see to PYTHONPATH"
    observation = Observation(Link.LOADED, "other-copy", path, wanted, digest, note, remedy)
    return judge(Evidence(look.shown(path), frozenset({Link.LOADED}), (observation,)))


def _processes(build: Build) -> list[Verdict]:
    """Running processes that map what a build has replaced since, or written over in its place."""
    verdicts = []
    for pid, name, path in replaced_files():
        if path in build.made or _alias(build, path):
            note = f"process {pid} ({name}) still runs an older {path.removeprefix(build.root + '/')}"
            verdicts.append(_on_process(pid, name, path, "replaced", note))
    for pid, name, path in older_processes({m.path: m.made_ns for m in build.made.values()}):
        shown = path.removeprefix(build.root + "/")
        note = f"process {pid} ({name}) is older than {shown}, which it maps: what it runs cannot be told"
        verdicts.append(_on_process(pid, name, path, None, note))
    return verdicts


def _on_process(pid: int, name: str, path: str, observed: str | None, note: str) -> Verdict:
    observation = Observation(
        Link.LOADED, "old-code-running", path, "as built", observed, note, f"restart process {pid}"
    )
    return judge(Evidence(f"process {pid} ({name})", frozenset({Link.LOADED}), (observation,)))


def _alias(build: Build, path: str) -> bool:
    """Whether a product of that name lies beside its hash folder, as cargo puts it."""
    name = os.path.basename(path)
    return is_below(path, (build.root,)) and any(
        os.path.basename(m.path).startswith(f"{name}-") for m in build.made.values()
    )
