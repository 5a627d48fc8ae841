"""Tables of MSM figures: each figure in its own row and column, and what was not measured stays empty."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from prover.backends.msm_plan import Tuning, shape
from prover.params import BLS12_381

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "msm_report.py"


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("msm_report", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["msm_report"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["msm_report"]


@pytest.fixture
def row(report):
    def made(log_n, median_ms, tables=12, scalars="dense", curve="bls12_381", group="g1"):
        return report.Row(
            curve, group, log_n, scalars, 22, 3, tables, 18434, 1129.0, 9000, median_ms, 0.1, {}, 50.0, "x"
        )

    return made


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_figures_stand_beside_goal_and_peer_and_the_figure_without_tables(report, row):
    table = cells(report.goals_table([row(24, 64.83), row(24, 82.6, tables=1), row(26, 277.6, tables=1)]))
    assert table[2][:5] == ["bls12_381 G1 2^24", "64.8", "95", "148", "50"]
    assert table[2][5:] == ["77%", "18434", "1129", "82.6", "61%"]
    assert table[3] == ["bls12_381 G1 2^26", "", "360", "556", "", "", "", "", "278", "18%"]


def test_skewed_scalars_stand_beside_dense_ones(report, row):
    rows = [row(20, 5.7), row(20, 9.1, tables=1), row(20, 2.0, scalars="binary"), row(24, 64.8)]
    assert cells(report.skew_table(rows)) == [
        ["ms", "dense", "binary"],
        ["---", "---", "---"],
        ["bls12_381 G1 2^20", "5.7", "2"],
    ]


def test_the_floor_is_the_counted_multiplications_at_the_measured_rate(report):
    made = shape(BLS12_381, 1000, Tuning(5, 0), 256)
    _, mixed, full = report.COST["bls12_381", "g1"]
    work = made.entries * mixed + 2 * made.buckets * full
    assert report.floor_ms(BLS12_381, "g1", made) == pytest.approx(work / report.MULTIPLY_RATE * 1e3)
