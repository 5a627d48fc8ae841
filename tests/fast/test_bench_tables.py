"""Tables out of reports: each figure in its own row and column, and what was not measured stays empty."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from prover.backends import ntt_plan
from prover.backends.msm_plan import Tuning, shape
from prover.params import BLS12_381

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.tables")


@pytest.fixture
def speeds(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.speeds")


def run(workload: str, phase: str, ms: float, **work: object) -> dict:
    times = {"n": 10, "median": ms * 1e6, "mad": 0, "low": ms * 1e6, "high": (ms + 0.5) * 1e6}
    other = {**times, "median": 7e9}
    clock = "host" if phase == "total" else "cuda"
    return {
        "workload": workload,
        "state": "fresh",
        "level": "loaded-proven",
        "work": work,
        "artifacts": [{"target": "cuda-x", "digest": "sha256:0123456789abcdef"}],
        "phases": [
            {"name": phase, "clock": clock, **times},
            {"name": "sort", "clock": "cuda", **other},
            *([] if phase == "total" else [{"name": "total", "clock": "host", **other}]),
        ],
    }


def msm(workload: str, ms: float, log_n: int, **more: object) -> dict:
    work = {"curve": "bls12_381", "group": "g1", "points": 1 << log_n, "scalars": "dense", "window bits": 22}
    work |= {"pairing passes": 3, "tables": 12, "table MiB": 18434, "tables made in ms": 1129.4}
    costs = {"multiply-adds": int(50e-3 * 16.4e12), "bytes": int(4.3e9)}
    return run(workload, "msm", ms, **{**work, **(more or costs)})


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_an_msm_stands_beside_goal_peer_floor_and_the_figure_without_tables(tables):
    reports = [
        {"runs": [msm("msm-g1-26-bls12_381-no-tables", 277.6, 26)]},
        {"runs": [msm("msm-g1-24-bls12_381", 64.83, 24), msm("msm-g1-24-bls12_381-no-tables", 82.6, 24)]},
    ]
    table = cells(tables.msm_table(tables.runs_of(reports)))
    assert table[2] == [
        *("BLS12-381 G1 2^24", "64.8", "95", "148", "50", "77%", "2%", "22.3", "18434", "1129"),
        *("82.6", "61%", "1%", "22.3"),
    ]
    assert table[3] == [
        *("BLS12-381 G1 2^26", "", "360", "556", "", "", "", "", "", ""),
        *("278", "18%", "0%", "22.3"),
    ]
    assert {len(row) for row in table} == {14}


def test_other_scalars_stand_beside_dense_ones(tables):
    runs = [
        msm("msm-g1-20-bls12_381", 5.7, 20),
        msm("msm-g1-20-bls12_381-no-tables", 9.1, 20),
        msm("msm-g1-20-bls12_381-binary", 2.0, 20, scalars="binary"),
        msm("msm-g1-24-bls12_381", 64.8, 24),
    ]
    assert cells(tables.scalars_table(tables.runs_of([{"runs": runs}]))) == [
        ["MSM by scalars, with tables", "dense", "binary"],
        ["---", "---", "---"],
        ["BLS12-381 G1 2^20", "5.7", "2"],
    ]


def test_transforms_and_proofs(tables):
    work = {"curve": "bls12_381", "elements": 1 << 20, "passes": "8.8.4"}
    costs = {"multiply-adds": int(0.1e-3 * 16.4e12), "bytes": int(0.05e-3 * 4.3e12)}
    proof = {"constraints": 1048573, "peak GPU memory": "15.43 GB"}
    reports = [
        {"runs": [run("ntt-20-bls12_381", "ntt", 0.2, **work, **costs)]},
        {"runs": [run("synthetic-20-bls12_381-cold", "total", 605.0, **proof)]},
        {"runs": [run("synthetic-20-bls12_381", "total", 29.5, **proof)]},
        {"runs": [{"workload": "synthetic-22-bls12_381", "state": "refused"}]},
    ]
    runs = tables.runs_of(reports)
    ntt = ["BLS12-381 2^20", "0.2", "0.21", "0.278", "0.1", "50%", "25%", "0.5", "8.8.4"]
    assert cells(tables.ntt_table(runs))[2:] == [ntt]
    assert cells(tables.proof_table(runs))[2:] == [
        ["synthetic-20-bls12_381", "1,048,573", "29.5", "80", "171", "0.5", "15.43 GB"],
        ["synthetic-20-bls12_381-cold", "1,048,573", "605", "2500", "", "0.5", "15.43 GB"],
    ]
    assert tables.code_list(runs) == "Code (loaded-proven): cuda-x 0123456789ab"


def test_the_last_run_of_a_workload_counts(tables):
    reports = [{"runs": [msm("msm-g1-24-bls12_381", ms, 24)]} for ms in (70.0, 64.8)]
    assert tables.runs_of(reports)["msm-g1-24-bls12_381"].ms == 64.8


def test_reports_without_a_fresh_run_make_no_table(tables, tmp_path, capsys, monkeypatch):
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"runs": [{"workload": "x", "state": "broken"}]}))
    monkeypatch.setattr("sys.argv", ["tables", str(path)])
    assert tables.main() == 0 and capsys.readouterr().out == "\n"
    monkeypatch.setattr("sys.argv", ["tables"])
    assert tables.main() == 2


def test_costs_are_counts_of_what_is_done(speeds):
    made = shape(BLS12_381, 1000, Tuning(5, 0), 256)
    _, mixed, full = speeds.ADDITION_COST["bls12_381", "g1"]
    work = made.entries * mixed + 2 * made.buckets * full
    assert speeds.msm_multiplies("bls12_381", "g1", made) == work
    assert speeds.floor_ms(work) == pytest.approx(work / 16.4e9)
    two = ntt_plan.forward(12, (6, 6))
    general, root = speeds.PRODUCT_COST["bls12_381"]
    each = 2 * (2 * general + 3 * root) / 8 + general * 7 / 8  # two rounds of eight, and factors between them
    assert speeds.ntt_multiplies("bls12_381", two, 12) == round(4096 * (2 * each + general))
    assert speeds.ntt_bytes(two, 12) == 4 * 32 * 4096 + two[1].table.nbytes


def test_every_figure_with_a_goal_has_a_workload(speeds):
    from orchestrator.targets import parse_targets

    project = parse_targets((ROOT / "manifests" / "targets.toml").read_text())
    names = {workload.name for workload in project.workloads}
    for (curve, group), sizes in speeds.MSM_GOAL_MS.items():
        for log_n in sizes:
            assert {f"msm-{group}-{log_n}-{curve}", f"msm-{group}-{log_n}-{curve}-no-tables"} <= names
    assert {f"ntt-{log_n}-{curve}" for curve, sizes in speeds.NTT_GOAL_MS.items() for log_n in sizes} <= names
    assert set(speeds.PROOF_GOAL_MS) | set(speeds.PROOF_PEER_MS) <= names
