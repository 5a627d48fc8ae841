"""Which crates a build script can have a say in: its own package's, and those that depend on that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.foreign.made import Made
from orchestrator.foreign.provenance import chain
from orchestrator.foreign.steps import Tool


def is_build_script(made: Made) -> bool:
    """Whether a product of rustc is a build script that cargo had compiled."""
    return made.tool is Tool.RUSTC and os.path.basename(made.path).startswith("build_script_")


@dataclass(slots=True)
class Packages:
    """The packages of cargo behind the steps of a record."""

    made: Mapping[str, Made]
    _folders: dict[str, str] = field(default_factory=dict)
    _behind: dict[str, frozenset[str]] = field(default_factory=dict)

    def concerns(self, script: str, step: Made) -> bool:
        """Whether the source of a build script can matter for a crate. What a script tells goes to its own
        package, and from there to those that depend on it, for their crates or for their build scripts.
        """
        if step.tool is not Tool.RUSTC:
            return True
        package = self._package(script)
        behind = self._packages_behind(step)
        return not package or not all(behind) or package in behind

    def _packages_behind(self, step: Made) -> frozenset[str]:
        """The packages of a crate, of those that it takes in, and of those that the build scripts of all take
        in; one of them empty if it cannot be told.
        """
        if step.path not in self._behind:
            scripts = [m for m in self.made.values() if is_build_script(m)]
            found, packages = {step.path}, self._packages_in(step.path)
            while more := {s.path for s in scripts if self._package_of(s) in packages} - found:
                found |= more
                packages = packages.union(*map(self._packages_in, more))
            self._behind[step.path] = frozenset(packages)
        return self._behind[step.path]

    def _packages_in(self, path: str) -> set[str]:
        return {self._package_of(m) for m in chain(self.made, path) if m.tool is Tool.RUSTC}

    def _package_of(self, made: Made) -> str:
        root = next((word for word in made.argv[1:] if word.endswith(".rs")), "")
        return self._package(os.path.join(made.folder, root)) if root else ""

    def _package(self, path: str) -> str:
        """The folder above a source that has a Cargo.toml; empty if none has."""
        folder = os.path.dirname(os.path.normpath(path))
        if folder not in self._folders:
            at = folder
            while not os.path.isfile(f"{at}/Cargo.toml") and at != os.path.dirname(at):
                at = os.path.dirname(at)
            self._folders[folder] = at if os.path.isfile(f"{at}/Cargo.toml") else ""
        return self._folders[folder]
