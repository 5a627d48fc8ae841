"""Two arms timed side by side, in blocks A B B A or B A A B, until the blocks decide or there are enough."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.bench import Admit, Say
from orchestrator.compare.arms import Arm
from orchestrator.compare.measure import ArmRun, Launch, Measurement, Refused, admit_arms, same_code
from orchestrator.compare.paired import (
    FIXED_ALPHA,
    LEAST_BLOCKS,
    LOOK_ALPHA,
    LOOKS,
    Answer,
    Paired,
    block_ratio,
    compare_blocks,
)
from orchestrator.compare.records import different_inputs
from orchestrator.compare.report import Compared, Timed, phases_beside
from orchestrator.errors import Incomparable
from orchestrator.model import Admission
from orchestrator.samples import Refusal
from orchestrator.stats import MOST_DISTURBANCE

MOST_DISTURBED = 0.2
"""Share of blocks that may be left out because other programs were busy."""
_ORDERS = ((0, 1, 1, 0), (1, 0, 0, 1))


@dataclass(frozen=True, slots=True)
class Options:
    """How long to go on, and which change matters."""

    blocks: int | None
    """So many, looked at once; `None`: until they decide, 20 at most."""
    threshold: float
    timeout: float
    """Seconds that one sample, or a workload's start, may take."""


def compare_arms(
    root: Path, first: Arm, second: Arm, options: Options, *, admit: Admit, say: Say
) -> Compared | Refusal:
    """Time both under the gate. Raises as `bench.measure` does."""
    arms = (first, second)
    before = admit_arms(root, arms, admit)
    if isinstance(before, Refusal):
        return before
    for artifact in before.artifacts:
        say(f"gate: admitted {artifact.target} {artifact.digest}")
    equal = bool(list(same_code(arms, before.artifacts)))
    if equal:
        say("note: A and B run the same code by the same command: what follows is the noise of this machine")
    seed = secrets.randbits(32)
    with Measurement(
        root, arms, before, purpose="compare", timeout=options.timeout, admit=admit, say=say
    ) as run:
        run.begin({"seed": seed, "threshold": options.threshold, "blocks": options.blocks})
        try:
            blocks, paired = _take(run, options, random.Random(seed), say)
            run.record.write("comparison", {**asdict(paired), "disturbed": len(_disturbed(blocks))})
            run.conclude({"samples": sum(len(one.samples) for one in run.runs)})
        except Refused as refused:
            return run.refusal(refused)
        quiet = _quiet(blocks) or blocks
        return Compared(
            sides=tuple(
                Timed.of(one.arm.title, one.samples, one.arm.own(before.artifacts), one.ready)
                for one in run.runs
            ),
            paired=paired,
            threshold=options.threshold,
            disturbed=len(_disturbed(blocks)),
            phases=phases_beside([(block.of(0), block.of(1)) for block in quiet]),
            same_code=equal,
            run_id=run.record.run_id,
            record=run.record.shown_path,
            disturbances=run.record.disturbances,
        )


def _take(run: Measurement, options: Options, lot: random.Random, say: Say) -> tuple[list[Launch], Paired]:
    """Blocks until they decide; those beside which other programs were busy are left out."""
    most = options.blocks or LOOKS[-1]
    looks = {options.blocks} if options.blocks else set(LOOKS)
    alpha = FIXED_ALPHA if options.blocks else LOOK_ALPHA
    blocks: list[Launch] = []
    looked = 0
    while len(blocks) < most:
        blocks.append(run.launch(len(blocks), lot.choice(_ORDERS)))
        _check_inputs(run)
        if blocks[-1].disturbed:
            say(
                f"block {len(blocks)}: left out: other programs used {blocks[-1].others:.1f} processors "
                f"(more than {MOST_DISTURBANCE:.0%} of all)"
            )
        clean = len(_quiet(blocks))
        if clean in looks and clean > looked:
            looked = clean
            paired = _decide(blocks, options.threshold, alpha)
            if paired.answer is not Answer.INCONCLUSIVE:
                return blocks, paired
        if len(blocks) >= LEAST_BLOCKS and len(_disturbed(blocks)) > MOST_DISTURBED * most:
            break
    return blocks, _decide(blocks, options.threshold, alpha)


def _check_inputs(run: Measurement) -> None:
    first, second = ({} if one.ready is None else one.ready.work for one in run.runs)
    if differing := different_inputs(first, second):
        raise Incomparable(
            f"{run.runs[0].arm.title} and {run.runs[1].arm.title} work on different inputs",
            details="\n".join(f"  {text}" for text in differing),
            remedy="give both the same input",
        )


def _decide(blocks: Sequence[Launch], threshold: float, alpha: float) -> Paired:
    quiet = _quiet(blocks)
    counted = quiet if len(quiet) >= LEAST_BLOCKS else blocks
    ratios = [
        block_ratio([s.breakdown.total_ns for s in block.of(0)], [s.breakdown.total_ns for s in block.of(1)])
        for block in counted
    ]
    contaminated = len(_disturbed(blocks)) > MOST_DISTURBED * len(blocks)
    return compare_blocks(ratios, threshold, alpha, contaminated=contaminated)


def _side(run: ArmRun, before: Admission) -> Timed:
    return Timed.of(run.arm.title, run.samples, run.arm.own(before.artifacts), run.ready)


def _quiet(blocks: Sequence[Launch]) -> list[Launch]:
    return [block for block in blocks if not block.disturbed]


def _disturbed(blocks: Sequence[Launch]) -> list[Launch]:
    return [block for block in blocks if block.disturbed]
