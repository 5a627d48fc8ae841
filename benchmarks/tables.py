"""Tables of what the GPU does, out of reports of ``freshproof bench --json`` and nothing else.

    freshproof bench 'msm-*' 'ntt-*' 'synthetic-*' --json > report.json
    python -m benchmarks.tables report.json ...

Each figure is the median over the samples of fresh runs, in ms; of a workload that was run more than once,
the last. An MSM or a transform is timed by CUDA events, a proof by the host's clock. What was not measured
stays empty. Goals, peers and costs: `benchmarks/speeds.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speeds import (
    BANDWIDTH,
    MSM_GOAL_MS,
    MSM_PEER_MS,
    NTT_GOAL_MS,
    NTT_PEER_MS,
    PROOF_GOAL_MS,
    PROOF_PEER_MS,
    floor_ms,
)

DIGITS = 12
"""Of each digest."""
CURVES = {"bls12_381": "BLS12-381", "bn254": "BN254"}


@dataclass(frozen=True, slots=True)
class Run:
    """One workload's figures."""

    workload: str
    work: Mapping[str, Any]
    ms: float
    spread_ms: float
    level: str
    code: Mapping[str, str]
    """Target to digest."""

    @property
    def floor_ms(self) -> float | None:
        """The multiplications alone, where they were counted."""
        return floor_ms(self.work["multiply-adds"]) if "multiply-adds" in self.work else None

    @property
    def of_pipe(self) -> float | None:
        return None if self.floor_ms is None else self.floor_ms / self.ms

    @property
    def of_bandwidth(self) -> float | None:
        return self.work["bytes"] / BANDWIDTH * 1e3 / self.ms if "bytes" in self.work else None


def runs_of(reports: Iterable[Mapping[str, Any]]) -> dict[str, Run]:
    """The fresh runs of some reports, by workload."""
    found = {}
    for fields in (fields for report in reports for fields in report["runs"]):
        if fields["state"] == "fresh" and fields["work"] is not None:
            kind = fields["workload"].split("-")[0]
            wanted = (kind, "cuda") if kind in ("msm", "ntt") else ("total", "host")
            phase = next(p for p in fields["phases"] if (p["name"], p["clock"]) == wanted)
            found[fields["workload"]] = Run(
                fields["workload"],
                fields["work"],
                phase["median"] / 1e6,
                (phase["high"] - phase["low"]) / 1e6,
                fields["level"],
                {artifact["target"]: artifact["digest"] for artifact in fields["artifacts"]},
            )
    return found


def all_tables(runs: Mapping[str, Run]) -> str:
    """Every table that has a row."""
    made = [make(runs) for make in (msm_table, scalars_table, ntt_table, proof_table, code_list)]
    return "\n\n".join(table for table in made if table)


def msm_table(runs: Mapping[str, Run]) -> str:
    """MSMs over dense scalars: with tables, then the same without."""
    header = "goal", "sppark", "floor", "pipe", "bandwidth", "bits", "tables, MiB", "made in"
    rows = []
    for key in _keys(runs, "msm", "curve", "group", "points"):
        curve, group, points = key
        log_n = points.bit_length() - 1
        name = f"msm-{group}-{log_n}-{curve}"
        tabled, plain = runs.get(name), runs.get(f"{name}-no-tables")
        if not (tabled or plain):
            continue
        tables = ("table MiB", "tables made in ms") if tabled else ()
        rows.append(
            [
                f"{CURVES[curve]} {group.upper()} 2^{log_n}",
                _time(tabled),
                _number(MSM_GOAL_MS[curve, group].get(log_n)),
                _number(MSM_PEER_MS[curve, group].get(log_n)),
                *_limits(tabled),
                _tuning(tabled),
                *([_number(tabled.work[fact]) for fact in tables] if tabled else ["", ""]),
                _time(plain),
                *_limits(plain)[1:],
                _tuning(plain),
            ]
        )
    return _table("MSM, resident", ("tables", *header, "no tables", *header[3:6]), rows)


def scalars_table(runs: Mapping[str, Run]) -> str:
    """Each kind of scalars beside dense ones, with tables."""
    kinds = list(dict.fromkeys(_of(runs, "msm", "scalars")))
    rows = []
    for curve, group, points in _keys(runs, "msm", "curve", "group", "points"):
        name = f"msm-{group}-{points.bit_length() - 1}-{curve}"
        times = [_time(runs.get(name if kind == "dense" else f"{name}-{kind}")) for kind in kinds]
        if sum(map(bool, times)) > 1:
            rows.append([f"{CURVES[curve]} {group.upper()} 2^{points.bit_length() - 1}", *times])
    return _table("MSM by scalars, with tables", kinds, rows)


def ntt_table(runs: Mapping[str, Run]) -> str:
    """Forward transforms, natural order in and out."""
    rows = []
    for curve, elements in _keys(runs, "ntt", "curve", "elements"):
        log_n = elements.bit_length() - 1
        run = runs[f"ntt-{log_n}-{curve}"]
        goal, peer = (times.get(curve, {}).get(log_n) for times in (NTT_GOAL_MS, NTT_PEER_MS))
        limits = (_number(goal), _number(peer), *_limits(run))
        rows.append(
            [f"{CURVES[curve]} 2^{log_n}", _time(run), *limits, _number(run.spread_ms), run.work["passes"]]
        )
    header = ("forward", "goal", "sppark", "floor", "pipe", "bandwidth", "spread", "passes")
    return _table("NTT over Fr", header, rows)


def proof_table(runs: Mapping[str, Run]) -> str:
    """Whole proofs, each checked: warm, cold, and streamed."""
    rows = []
    for name, run in sorted(runs.items(), key=lambda item: (item[1].work.get("constraints", 0), item[0])):
        if "constraints" in run.work:
            memory = str(run.work.get("peak GPU memory", ""))
            limits = (_number(PROOF_GOAL_MS.get(name)), _number(PROOF_PEER_MS.get(name)))
            rows.append(
                [name, f"{run.work['constraints']:,}", _time(run), *limits, _number(run.spread_ms), memory]
            )
    header = ("constraints", "proof", "goal", "supra_seal", "spread", "peak GPU memory")
    return _table("Groth16", header, rows)


def code_list(runs: Mapping[str, Run]) -> str:
    """Whose times these are. A target with two digests is told with both."""
    code: dict[str, dict[str, None]] = {}
    for run in runs.values():
        for target, digest in run.code.items():
            code.setdefault(target, {})[digest.removeprefix("sha256:")[:DIGITS]] = None
    levels = ", ".join(sorted({run.level for run in runs.values()}))
    listed = ", ".join(f"{target} {' or '.join(digests)}" for target, digests in sorted(code.items()))
    return f"Code ({levels}): {listed}" if code else ""


def _of(runs: Mapping[str, Run], kind: str, *facts: str) -> list[Any]:
    """Facts of the runs of a kind, in the order of curve, group and length."""
    chosen = [run for name, run in runs.items() if name.startswith(f"{kind}-")]
    order: Callable[[Run], Any] = lambda run: (  # noqa: E731
        list(CURVES).index(run.work["curve"]),
        run.work.get("group", ""),
        run.work.get("points", run.work.get("elements")),
    )
    picked = [tuple(run.work[fact] for fact in facts) for run in sorted(chosen, key=order)]
    return picked if len(facts) > 1 else [one for (one,) in picked]


def _keys(runs: Mapping[str, Run], kind: str, *facts: str) -> list[Any]:
    return list(dict.fromkeys(_of(runs, kind, *facts)))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {title} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _limits(run: Run | None) -> tuple[str, str, str]:
    """Floor, share of the multiply pipe, share of the bandwidth."""
    if run is None:
        return "", "", ""
    return _number(run.floor_ms), _share(run.of_pipe), _share(run.of_bandwidth)


def _tuning(run: Run | None) -> str:
    return f"{run.work['window bits']}.{run.work['pairing passes']}" if run else ""


def _time(run: Run | None) -> str:
    return _number(run.ms if run else None)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def main() -> int:
    reports = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    if not reports:
        print(__doc__, file=sys.stderr)
        return 2
    print(all_tables(runs_of(reports)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
