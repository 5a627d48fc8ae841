"""What is recorded on this disk: manifests, and what their artifacts were found to hold."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator import manifest as records
from orchestrator.canonical import digest_bytes, digest_document, seal, unseal
from orchestrator.model import Digest, Link, Manifest, Observation, Target
from orchestrator.regular_file import read_file
from orchestrator.workspace import Workspace, keep_if_possible, manifest_name, write_atomically


class Records:
    """The manifests of one project."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._reader = records.Reader(lambda digest: read_file(workspace.shared(digest)))
        self._whole: set[Digest] = set()

    def read(self, target: str) -> tuple[Manifest | None, str]:
        """A target's manifest, or why there is none to go by."""
        name = manifest_name(target)
        try:
            manifest = self._reader.read(read_file(f"{self._workspace.root}/{name}"))
        except FileNotFoundError:
            return None, "never built here"
        except OSError as error:
            return None, f"{name} cannot be read: {error.strerror}"
        except ValueError as error:
            return None, f"{name} cannot be read: {error}"
        if manifest.target != target:
            return None, f"{name} is the manifest of {manifest.target}"
        return manifest, ""

    def write(self, manifest: Manifest) -> None:
        """Put a manifest in place, and before it the documents that it names."""
        for digest, data in records.shared_documents(manifest).items():
            if digest not in self._whole:
                self._whole.add(digest)
                path = self._workspace.shared(digest)
                if not path.is_file() or path.read_bytes() != data:
                    write_atomically(path, data, mode=0o444)
        write_atomically(self._workspace.manifest(manifest.target), records.to_bytes(manifest))


def read_manifest(workspace: Workspace, target: str) -> tuple[Manifest | None, str]:
    """One target's manifest, or why there is none to go by."""
    return Records(workspace).read(target)


class ContentsMemory:
    """Which artifacts were read and found to be as demanded: by digest, so an answer does not age."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.cache("contents.json")
        try:
            self._passed = set(unseal(read_file(self._file))["passed"])
        except (OSError, ValueError, KeyError):
            self._passed = set()
        self._new = False

    def check(self, manifest: Manifest, target: Target) -> tuple[Observation, ...]:
        """The observations about an artifact whose digest was found to be the recorded one."""
        product = manifest.product
        key = digest_document(
            [
                product.digest,
                repr(target.expect),
                target.kind,
                target.name,
                manifest.recipe_digest,
                manifest.arch,
                [[member.target, member.digest] for member in manifest.members],
            ]
        )
        if key in self._passed:
            return (Observation(Link.CONTENTS, "contents", product.path, "as demanded", "as demanded"),)
        observations = check_contents(self._workspace, manifest, target)
        if observations and all(o.recorded is not None and o.recorded == o.observed for o in observations):
            self._passed.add(key)
            self._new = True
        return observations

    def save(self) -> None:
        if self._new:
            keep_if_possible(self._file, seal({"passed": sorted(self._passed)}))


def check_contents(workspace: Workspace, manifest: Manifest, target: Target) -> tuple[Observation, ...]:
    """Read an artifact and compare what it holds with what its target demands."""
    path = workspace.root / manifest.product.path
    try:
        data = read_file(path)
    except OSError as error:
        return (Observation(Link.CONTENTS, "artifact-unreadable", str(path), "readable", None, str(error)),)
    from orchestrator.verify import observe_contents  # the readers of objects take a while to import

    members = tuple(_members(workspace, manifest))
    return observe_contents(data, target, manifest.recipe_digest, manifest.arch, members)


def _members(workspace: Workspace, manifest: Manifest) -> Iterator[bytes]:
    """The products that went in, as far as they still are what went in: if not, the link `members` tells."""
    records = Records(workspace)
    for member in manifest.members:
        made, _problem = records.read(member.target)
        if made is None or made.product.digest != member.digest:
            continue
        try:
            data = read_file(workspace.root / made.product.path)
        except OSError:
            continue
        if digest_bytes(data) == member.digest:
            yield data
