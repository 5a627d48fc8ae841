"""What is compared: a workload, perhaps with variants of its targets in their places. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import ConfigurationError
from orchestrator.model import Admitted, Substitute, Workload


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison."""

    name: str
    """Such as ``A``."""
    workload: Workload
    variants: Mapping[str, str]
    """Target that the workload uses to the variant that takes its place."""

    @property
    def uses(self) -> tuple[str, ...]:
        """The targets whose code is run."""
        return tuple(self.variants.get(name, name) for name in self.workload.uses)

    @property
    def title(self) -> str:
        """The workload, and what takes the place of its targets."""
        return " with ".join((self.workload.name, *filter(None, [", ".join(self.variants.values())])))

    def own(self, artifacts: Sequence[Admitted]) -> tuple[Admitted, ...]:
        """Those of all admitted artifacts that this arm runs."""
        return tuple(artifact for artifact in artifacts if artifact.target in self.uses)

    def handed(self, artifacts: Sequence[Admitted]) -> tuple[Admitted, ...]:
        """The same under the names that the workload asks for: it knows of no variants."""
        asked = dict(zip(self.uses, self.workload.uses, strict=True))
        return tuple(_in_place(artifact, asked[artifact.target]) for artifact in self.own(artifacts))


def _in_place(artifact: Admitted, target: str) -> Admitted:
    """An artifact under the name of the target for which it stands."""
    if artifact.target == target:
        return artifact
    return Substitute(**{**dataclasses.asdict(artifact), "target": target}, built_as=artifact.target)


def with_variants(workload: Workload, variants: Sequence[str]) -> Mapping[str, str]:
    """Which target each variant stands for; a variant is called TARGET.VARIANT.

    Raises `ConfigurationError` if the workload does not use the target, or two stand for one.
    """
    if variants:
        check_takes_variants(workload)
    chosen: dict[str, str] = {}
    for name in variants:
        target, dot, _variant = name.partition(".")
        if not dot:
            raise ConfigurationError(
                f"`{name}` is no variant", remedy="name TARGET.VARIANT, as targets.toml defines it"
            )
        if target not in workload.uses:
            raise ConfigurationError(
                f"workload {workload.name} does not use `{target}`, so `{name}` changes nothing in it",
                remedy=f"it uses {', '.join(workload.uses)}",
            )
        if target in chosen:
            raise ConfigurationError(
                f"`{chosen[target]}` and `{name}` are variants of one target",
                remedy=f"write {chosen[target]}+{name.partition('.')[2]} for both in one build",
            )
        chosen[target] = name
    return chosen


def check_takes_variants(workload: Workload) -> None:
    """Only a worker is told what to load; what another command would load in a target's place is not known.

    Raises `ConfigurationError`.
    """
    if not workload.worker:
        raise ConfigurationError(
            f"workload {workload.name} has `worker = false`: it cannot be told to load a variant",
            remedy="write a second workload that runs the variant's product, and compare the two",
        )
