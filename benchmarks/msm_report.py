"""Rows of MSM measurements, and what they are held against: goals, a peer, the multiply pipe's floor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prover.backends.msm_plan import Group, Shape
    from prover.params import Curve

MULTIPLY_RATE = 16.4e12
"""32-bit multiply-adds a second that chains reach on an H200 (a wide one counts two): measured."""
COST: dict[tuple[str, Group], tuple[int, int, int]] = {
    ("bn254", "g1"): (1547, 2432, 3500),
    ("bls12_381", "g1"): (3445, 5408, 7796),
    ("bn254", "g2"): (4050, 6700, 9500),
    ("bls12_381", "g2"): (8850, 14640, 20750),
}
"""Multiply-adds of a pairing, of a mixed and of a full XYZZ addition, counted in the machine code."""

GOALS_MS: dict[tuple[str, Group], dict[int, float]] = {
    ("bls12_381", "g1"): {20: 9, 22: 28, 24: 95, 26: 360},
    ("bls12_381", "g2"): {20: 22, 22: 68},
    ("bn254", "g1"): {20: 5, 22: 14, 24: 48},
    ("bn254", "g2"): {20: 11},
}
"""log2 of n: what a resident MSM over random scalars should take on an H200."""
PEER_MS: dict[tuple[str, Group], dict[int, float]] = {
    ("bls12_381", "g1"): {16: 5.3, 18: 7.6, 20: 16.4, 22: 43.8, 24: 147.7, 26: 555.7},
    ("bls12_381", "g2"): {16: 7.2, 18: 14.9, 20: 38.3, 22: 117.4},
    ("bn254", "g1"): {20: 8.6, 22: 22.8, 24: 75.1},
    ("bn254", "g2"): {20: 18.7},
}
"""sppark 17278d7 with its best window width, measured on the same kind of card: resident, without tables."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    curve: str
    group: Group
    log_n: int
    scalars: str
    bits: int
    passes: int
    tables: int
    table_mib: int
    table_ms: float
    workspace_mib: int
    median_ms: float
    spread_ms: float
    phases_ms: dict[str, float]
    floor_ms: float
    identity: str

    @property
    def key(self) -> tuple[str, Group]:
        return self.curve, self.group

    @property
    def name(self) -> str:
        return f"{self.curve} {self.group.upper()} 2^{self.log_n}"

    def as_json(self) -> dict[str, object]:
        """For a results file."""
        return asdict(self)

    def line(self) -> str:
        """As it is shown when it was measured."""
        phases = " ".join(f"{name} {ms:.3f}" for name, ms in self.phases_ms.items())
        return (
            f"{self.name:20} {self.scalars:7} {f'{self.bits}.{self.passes}':>5} tables {self.tables:2} "
            f"({self.table_mib:6} MiB, {self.table_ms:6.0f} ms) work {self.workspace_mib:6} MiB  "
            f"{self.median_ms:8.3f} ms  spread {self.spread_ms:6.3f}  floor {self.floor_ms:8.3f}  "
            f"{self.floor_ms / self.median_ms:4.0%}  {phases}"
        )


def floor_ms(curve: Curve, group: Group, shape: Shape) -> float:
    """The multiplications of a dense MSM, all else free."""
    pairing, mixed, full = COST[curve.name, group]
    paired = shape.entries - shape.accumulated
    work = paired * pairing + shape.accumulated * mixed + 2 * shape.buckets * full
    return work / MULTIPLY_RATE * 1e3


def goals_table(rows: list[Row]) -> str:
    """Dense rows against goals and the peer, the figure without tables beside the one with them."""
    out = [
        "| | with tables, ms | goal | sppark | floor | of the multiply pipe | tables, MiB | made in, ms "
        "| no tables, ms | of the pipe |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    dense = [row for row in rows if row.scalars == "dense"]
    for key, log_n in dict.fromkeys((row.key, row.log_n) for row in dense):
        same = [row for row in dense if row.key == key and row.log_n == log_n]
        tabled = next((row for row in same if row.tables > 1), None)
        plain = next((row for row in same if row.tables == 1), None)
        goal, peer = (_number(times[key].get(log_n)) for times in (GOALS_MS, PEER_MS))
        made = (f"{tabled.table_mib}", _number(tabled.table_ms)) if tabled else ("", "")
        cells = [
            _time(tabled),
            goal,
            peer,
            _number(tabled.floor_ms if tabled else None),
            _share(tabled),
            *made,
        ]
        cells += [_time(plain), _share(plain)]
        out.append(f"| {same[0].name} | {' | '.join(cells)} |")
    return "\n".join(out)


def skew_table(rows: list[Row]) -> str:
    """Each kind of scalars against dense ones, with tables."""
    kinds = list(dict.fromkeys(row.scalars for row in rows))
    out = [f"| ms | {' | '.join(kinds)} |", "|---|" + "---|" * len(kinds)]
    for key, log_n in dict.fromkeys((row.key, row.log_n) for row in rows if row.scalars != "dense"):
        same = [r for r in rows if r.key == key and r.log_n == log_n and r.tables > 1]
        times = {row.scalars: _number(row.median_ms) for row in same}
        if same:
            out.append(f"| {same[0].name} | {' | '.join(times.get(kind, '') for kind in kinds)} |")
    return "\n".join(out)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _time(row: Row | None) -> str:
    return "" if row is None else _number(row.median_ms)


def _share(row: Row | None) -> str:
    return "" if row is None else f"{row.floor_ms / row.median_ms:.0%}"
