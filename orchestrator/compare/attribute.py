"""Which of several variants cost or gain what: a workload timed with sets of them, under one gate."""

from __future__ import annotations

import functools
import random
import secrets
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchestrator import names as naming
from orchestrator.bench import Admit, Say
from orchestrator.combination import name_of
from orchestrator.compare.arms import Arm, check_takes_variants
from orchestrator.compare.factorial import (
    Attribution,
    Cell,
    attribute,
    block_order,
    design,
    each_alone_and_left_out,
)
from orchestrator.compare.measure import Launch, Measurement, Refused, admit_arms
from orchestrator.errors import ConfigurationError
from orchestrator.model import Workload
from orchestrator.samples import Refusal, Sample

LEAST_BLOCKS = 3


class Flag(NamedTuple):
    """A variant of one target, which is on or off."""

    target: str
    variant: str

    @property
    def name(self) -> str:
        """As targets.toml has it."""
        return name_of(self.target, (self.variant,))


@dataclass(frozen=True, slots=True)
class Options:
    """How much to time."""

    blocks: int
    samples: int
    """Of each launch; their median counts."""
    threshold: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Attributed:
    """What each flag does, in ns."""

    workload: Workload
    flags: tuple[Flag, ...]
    found: Attribution
    phases: tuple[str, ...]
    """For each flag the phase in which most of its share appears; empty where there are no phases."""
    blocks: int
    launches: int
    """In a block."""
    disturbed: int
    """Launches beside which other programs were busy."""
    level: str
    run_id: str
    record: str
    disturbances: tuple[str, ...]


def flags_of(workload: Workload, names: Sequence[str], known: Sequence[str]) -> tuple[Flag, ...]:
    """The flags that are named: variants, or targets, which stand for all of their variants.

    ``known``: the names of all targets and variants. Raises `ConfigurationError`.
    """
    check_takes_variants(workload)
    flags: dict[Flag, None] = {}
    for name in names:
        target, dot, _ = name.partition(".")
        asked = name if dot else f"{name}.*"
        meant = [one for one in naming.matching(asked, known) if "." in one]
        if not meant:
            what = f"`{name}` is no variant" if dot else f"`{name}` has no variants"
            variants = [one for one in known if one.partition(".")[0] in workload.uses and "." in one]
            raise ConfigurationError(what, remedy=naming.nearest(name, variants, "variant"))
        if target not in workload.uses:
            raise ConfigurationError(
                f"workload {workload.name} does not use `{target}`",
                remedy=f"it uses {', '.join(workload.uses)}",
            )
        flags.update((Flag(target, one.partition(".")[2]), None) for one in meant)
    return tuple(flags)


def arm_of(workload: Workload, flags: Sequence[Flag], cell: Cell) -> Arm:
    """The workload with a set of flags on."""
    on = [flags[i] for i in sorted(cell)]
    variants = {
        target: name_of(target, [flag.variant for flag in on if flag.target == target])
        for target in dict.fromkeys(flag.target for flag in on)
    }
    name = "+".join(flag.variant for flag in on) or "none"
    return Arm(name, workload, variants)


def targets_of(workload: Workload, flags: Sequence[Flag]) -> tuple[str, ...]:
    """All targets, variants and combinations that are timed."""
    return _targets(workload, flags, design(len(flags)))


def tried(workload: Workload, flags: Sequence[Flag]) -> tuple[str, ...]:
    """Those that show whether a flag changes the code: each alone, and each left out."""
    return _targets(workload, flags, each_alone_and_left_out(len(flags)))


def _targets(workload: Workload, flags: Sequence[Flag], sets: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for cell in sets for name in arm_of(workload, flags, cell).uses))


def time_flags(
    root: Path, workload: Workload, flags: Sequence[Flag], options: Options, *, admit: Admit, say: Say
) -> Attributed | Refusal:
    """Time all sets of the design and analyse them. Raises as `bench.measure` does."""
    cells = design(len(flags))
    arms = [arm_of(workload, flags, cell) for cell in cells]
    before = admit_arms(root, arms, admit)
    if isinstance(before, Refusal):
        return before
    seed = secrets.randbits(32)
    lot = random.Random(seed)
    order = [cells.index(cell) for cell in block_order(len(flags))]
    launches: list[list[Launch]] = []
    with Measurement(
        root, arms, before, purpose="attribute", timeout=options.timeout, admit=admit, say=say
    ) as run:
        run.begin({"seed": seed, "flags": [flag.name for flag in flags], "blocks": options.blocks})
        try:
            for block in range(options.blocks):
                lot.shuffle(order)
                say(f"block {block + 1} of {options.blocks}: {len(order)} launches")
                launches.append([run.launch(block, [number] * options.samples) for number in order])
            run.conclude({"samples": sum(len(one.samples) for one in run.runs)})
        except Refused as refused:
            return run.refusal(refused)
        totals = [_block(block, cells, _total) for block in launches]
        found = attribute(totals, len(flags), options.threshold)
        return Attributed(
            workload=workload,
            flags=tuple(flags),
            found=found,
            phases=_phases(launches, cells, len(flags), options.threshold),
            blocks=options.blocks,
            launches=len(order),
            disturbed=sum(one.disturbed for block in launches for one in block),
            level="file-proven" if run.runs[0].ready is None else "loaded-proven",
            run_id=run.record.run_id,
            record=run.record.shown_path,
            disturbances=run.record.disturbances,
        )


def _total(sample: Sample) -> int:
    return sample.breakdown.total_ns


def _block(
    launches: Sequence[Launch], cells: Sequence[Cell], time: Callable[[Sample], int]
) -> dict[Cell, float]:
    """The time of each set: the mean of its launches, of each the median of its samples."""
    times: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for launch in launches:
        times[cells[launch.samples[0][0]]].append(statistics.median(time(s) for _, s in launch.samples))
    return {cell: statistics.fmean(values) for cell, values in times.items()}


def _phases(
    launches: Sequence[Sequence[Launch]], cells: Sequence[Cell], flags: int, threshold: float
) -> tuple[str, ...]:
    """For each flag the phase whose time it changes most."""
    first = launches[0][0].samples[0][1]
    shares = {
        phase.name: attribute(
            [_block(block, cells, functools.partial(_phase_ns, phase.name)) for block in launches],
            flags,
            threshold,
        )
        for phase in first.breakdown.phases
        if phase.clock == "host"
    }

    def most(flag: int) -> str:
        return max(shares, key=lambda name: abs(shares[name].flags[flag].share.value), default="")

    return tuple(map(most, range(flags)))


def _phase_ns(name: str, sample: Sample) -> int:
    return sum(p.ns for p in sample.breakdown.phases if p.name == name and p.clock == "host")
