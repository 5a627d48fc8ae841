"""Where a key's points go: always within the budget, with as many tables as fit, every point once."""

from __future__ import annotations

import pytest

from orchestrator.errors import Missing
from prover.backends import residence
from prover.backends.cuda_msm import Msm
from prover.backends.residence import QUERIES, Resident, Streamed, plan
from prover.params import BLS12_381, BN254

GB = 10**9


def sizes(curve):
    """The MSMs as an H200 has them; no kernel is asked for."""
    return {group: Msm(curve, group, lambda name: pytest.fail(name), 132) for group in ("g1", "g2")}


def counts(log_n):
    return {query: (1 << log_n) + 8 for query in QUERIES} | {
        "h_query": 1 << log_n,
        "l_query": (1 << log_n) + 5,
    }


def test_with_room_every_window_has_a_table():
    msms = sizes(BLS12_381)
    made = plan(counts(20), msms, 10**12)
    assert isinstance(made, Resident)
    for query, shape in made.shapes.items():
        assert shape == msms[QUERIES[query]].shape(counts(20)[query], max_tables=256)
        assert shape.sets == 1
    assert "tables" in made.describe()


def test_one_proof_needs_no_tables_and_is_streamed_where_others_are():
    msms = sizes(BLS12_381)
    made = plan(counts(20), msms, 10**12, tables=False)
    assert isinstance(made, Resident) and made.describe() == "resident, no tables"
    assert all(shape.tables == 1 for shape in made.shapes.values())
    for budget in (made.nbytes, made.nbytes // 2):
        single = plan(counts(20), msms, budget, tables=False)
        assert single.nbytes <= budget and type(single) is type(plan(counts(20), msms, budget))


@pytest.mark.parametrize("log_n", [10, 18, 20, 24])
def test_lanes_go_before_tables(log_n):
    msms, lanes = sizes(BLS12_381), []
    made = whole = plan(counts(log_n), msms, 10**12)
    while isinstance(made, Resident) and made.shapes == whole.shapes:
        lanes.append(len(set(made.lanes.values())))
        assert set(made.lanes) == set(QUERIES)
        made = plan(counts(log_n), msms, made.nbytes - 1)
    assert lanes == ([3, 2, 1] if log_n < 19 else [2, 1])


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("log_n", [3, 10, 16, 20, 24])
def test_less_room_means_fewer_tables_and_then_pieces_but_never_more_than_there_is(curve, log_n):
    msms = sizes(curve)
    whole = plan(counts(log_n), msms, 10**13)
    assert isinstance(whole, Resident)
    tables, budget, streamed = 10**9, whole.nbytes, False
    while True:
        try:
            made = plan(counts(log_n), msms, budget)
        except Missing as error:
            assert "need" in error.what and "left" in error.what
            break
        assert made.nbytes <= budget
        if isinstance(made, Resident):
            assert not streamed, "less room, and yet resident again"
            now = sum(shape.tables for shape in made.shapes.values())
            assert now <= tables
            tables = now
        else:
            streamed = True
        budget = budget * 9 // 10


def test_a_proof_of_2_to_the_24_fits_120_gigabytes_and_is_streamed_through_24():
    field = 9 * GB  # vectors, matrices and transforms
    large = plan(counts(24), sizes(BLS12_381), 120 * GB - field)
    assert isinstance(large, Resident)
    assert all(shape.sets <= 2 for shape in large.shapes.values()), "no query is left without tables"
    small = plan(counts(24), sizes(BLS12_381), 24 * GB - field)
    assert isinstance(small, Streamed)
    assert small.describe().startswith("streamed, ") and "resident they need" in small.describe()
    assert small.resident_bytes > 24 * GB - field


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 191, 192, 193, 1000, 12345])
def test_pieces_hold_every_point_once(monkeypatch, n):
    monkeypatch.setattr(residence, "_resident", lambda *_: None)
    monkeypatch.setattr(residence, "LARGEST_PIECE", 7)
    monkeypatch.setattr(residence, "SMALLEST_PIECE", 7)
    made = plan(dict.fromkeys(QUERIES, n), sizes(BN254), GB)
    assert isinstance(made, Streamed)
    for query, pieces in made.pieces.items():
        covered = [i for piece in pieces for i in range(piece.start, piece.start + piece.count)]
        assert covered == list(range(n))
        wanted = 128 if QUERIES[query] == "g1" else 64
        assert all(0 < piece.count <= wanted * 3 // 2 + 1 for piece in pieces)


def test_a_query_without_points_takes_no_part(monkeypatch):
    no_l = counts(10) | {"l_query": 0}
    resident = plan(no_l, sizes(BN254), GB)
    assert isinstance(resident, Resident) and "l_query" not in resident.shapes
    monkeypatch.setattr(residence, "_resident", lambda *_: None)
    streamed = plan(no_l, sizes(BN254), GB)
    assert isinstance(streamed, Streamed) and "l_query" not in streamed.pieces
