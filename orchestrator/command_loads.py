"""What a command loads of the targets' code: an older copy is refused.

Before it starts, looked at are the program, the files that the command's words name, and the libraries that
the loader would take for them, with LD_LIBRARY_PATH, RPATH and RUNPATH as they are. What it opened by itself
is looked at when it has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.audit import begins_as_object, originals_of
from orchestrator.copies import CopyState, Found, Original, best_claim
from orchestrator.errors import ConfigurationError
from orchestrator.foreign.loaded import named_files
from orchestrator.freshness import judge
from orchestrator.loader import libraries_of
from orchestrator.model import Evidence, Link, Observation, Verdict
from orchestrator.object_files import holds, member_opener, open_object
from orchestrator.objects.stamp import TEXT_PREFIX
from orchestrator.objects.traces import read_traces
from orchestrator.objects.window import Malformed
from orchestrator.workspace import Workspace

_REMEDY = "see to LD_LIBRARY_PATH and the program's RUNPATH, or copy the artifact there"


def stale_loads(
    workspace: Workspace, verdicts: Sequence[Verdict], argv: Sequence[str], environ: Mapping[str, str]
) -> tuple[Verdict, ...]:
    """A verdict on each file that the command would load in place of a target's current code.

    ``verdicts`` are what the gate says of the targets now.
    """
    told = {path: f"{path} would be loaded ({why})" for path, why in _loads(argv, environ).items()}
    return _stale_among(workspace, verdicts, told)


def stale_loaded(
    workspace: Workspace, verdicts: Sequence[Verdict], files: Iterable[str]
) -> tuple[Verdict, ...]:
    """The same of ``files`` that the command did load."""
    return _stale_among(workspace, verdicts, {path: f"{path} was loaded" for path in files})


def folders_of_artifacts(workspace: Workspace) -> tuple[str, ...]:
    """Where artifacts lie, current and older ones: cubins are opened by name, and no loader tells of them."""
    return tuple(sorted(str(folder) for folder in (workspace.build / "artifacts").glob("*/")))


def _stale_among(
    workspace: Workspace, verdicts: Sequence[Verdict], told: Mapping[str, str]
) -> tuple[Verdict, ...]:
    originals = originals_of(workspace, verdicts)
    found = []
    for path, words in told.items():
        observation = _observation(Path(path), words, originals)
        if observation is not None:
            found.append(judge(Evidence(path, frozenset({Link.LOADED}), (observation,))))
    return tuple(found)


def _loads(argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Files by their paths without links, each with how the command comes to it."""
    found: dict[str, str] = {}
    for file in named_files(argv, environ):
        found.setdefault(str(Path(file).resolve()), "named by the command")
        for path, why in _libraries(Path(file), environ):
            found.setdefault(str(Path(path).resolve()), why)
    return found


def _libraries(program: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not begins_as_object(program):
        return
    try:
        for library in libraries_of(program, environ):
            if library.path is not None:
                yield library.path, library.why
    except ConfigurationError:  # no ELF file: an archive, a container
        return


def _observation(path: Path, told: str, originals: Sequence[Original]) -> Observation | None:
    """A finding if a file is a target's code and not the current one, or has its name and cannot be read."""
    named = next((one for one in originals if Path(one.path).name == path.name), None)
    try:
        data = open_object(path) if begins_as_object(path) or not path.exists() else b""
        if named is None and not holds(data, TEXT_PREFIX):
            return None
        claim = best_claim(Found(str(path), read_traces(data, member_opener(path))), originals)
    except (Malformed, ConfigurationError) as fault:
        if named is None:
            return None
        note = f"{told}, has the name of {named.target}'s artifact, and cannot be read: {fault.what}"
        return Observation(Link.LOADED, "other-copy", str(path), named.digest, None, note, _REMEDY)
    if claim is None or claim[1].state is not CopyState.STALE:
        return None
    original, copy = claim
    note = f"{told}, and is not the current {original.target}: {copy.why}"
    return Observation(Link.LOADED, "other-copy", str(path), original.digest, copy.digest, note, _REMEDY)
