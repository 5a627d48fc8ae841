"""The report of a run: every number's row, honest notes, and the same facts as JSON."""

import json
from dataclasses import replace

import pytest

from orchestrator.model import Admitted, Finding, Kind, Link, State, Verdict, Workload
from orchestrator.protocol import Check, Ready, Span
from orchestrator.report import (
    closing_lines,
    heading,
    refusal_fields,
    refusal_lines,
    rows_of,
    run_fields,
    table_cells,
)
from orchestrator.samples import Measured, Refusal, Sample, Usage
from orchestrator.spans import divide
from orchestrator.stats import summarize

MS = 1_000_000


def sample(index: int, end_ms: int = 10, warmup: bool = False, faults: int = 0, cuda: bool = False) -> Sample:
    spans = [Span("ntt", "host", 0, 4 * MS), Span("msm", "host", 4 * MS, 9 * MS)]
    if cuda:
        spans.append(Span("msm kernels", "cuda", 4 * MS, 8 * MS, "s0"))
    usage = Usage(0, 0, 0, faults)
    return Sample(index, warmup, 20 * MS, divide(0, end_ms * MS, spans), Check(True, "lib 1.0", 0.008), usage)


def measured(*samples: Sample) -> Measured:
    artifact = Admitted("host-x", Kind.SHARED_LIBRARY, "b/x.so", "sha256:" + "a" * 64, "s", "m", None)
    ready = Ready("n", (), (), {}, None, {"circuit": "pow5", "constraints": 900, "key_digest": "sha256:k"})
    workload = Workload("w", ("python",), ("host-x",))
    return Measured(workload, "01R", "build/records/01R.jsonl", (artifact,), ready, samples, "loaded-proven")


RUN = measured(sample(0, 90, warmup=True), sample(1, 10), sample(2, 12), sample(3, 11))


def text_of(run: Measured) -> str:
    """Everything that is told of a run, cells of the table included."""
    rows = rows_of(run.counted)
    cells = (" ".join(line) for line in table_cells(rows))
    return "\n".join([heading(run), *cells, *closing_lines(run, rows)])


def test_the_table_has_every_phase_the_unaccounted_and_the_total():
    rows = {row.name: row.summary for row in rows_of(RUN.counted)}
    assert list(rows) == ["ntt", "msm", "unaccounted", "total"]
    assert (rows["total"].median, rows["total"].mad, rows["total"].n) == (11 * MS, 1 * MS, 3)
    assert (rows["unaccounted"].low, rows["unaccounted"].high) == (1 * MS, 3 * MS)


def test_warmups_count_nowhere():
    assert "90.000" not in text_of(RUN)
    assert "3 samples after 1 warm-up;" in text_of(RUN)


def test_the_report_names_checker_digest_and_record():
    text = text_of(RUN)
    for fact in (
        "checked by lib 1.0: 4 of 4",
        "sha256:" + "a" * 64,
        "build/records/01R.jsonl",
        "loaded-proven",
    ):
        assert fact in text
    assert "circuit pow5, constraints 900" in text
    assert "sha256:k" not in text


def test_the_outer_clock_is_divided_too():
    text = text_of(RUN)
    assert "request to reply: 0.020 s" in text
    assert "0.008 s the check and 0.001 s the rest" in text


def test_a_large_unaccounted_share_is_warned_of():
    assert "no phase accounts for 18.2%" in text_of(RUN)
    assert "no phase accounts" not in text_of(measured(sample(0, 9)))


def test_waiting_for_the_disk_is_warned_of():
    assert "3 major page faults" in text_of(measured(sample(0, faults=3)))
    assert "page faults" not in text_of(RUN)


def test_cuda_rows_are_marked_and_do_not_join_the_sum():
    run = measured(sample(0, cuda=True))
    rows = {(row.name, row.clock): row.summary.median for row in rows_of(run.counted)}
    assert rows["msm kernels", "cuda"] == 4 * MS
    assert rows["unaccounted", "host"] == 1 * MS
    assert table_cells(rows_of(run.counted))[0][:2] == ["phase", "clock"]


def test_overlap_appears_when_phases_overlap():
    spans = [Span("a", "host", 0, 6), Span("b", "host", 4, 10)]
    lapped = replace(sample(0), breakdown=divide(0, 10, spans))
    assert {row.name: row.summary.median for row in rows_of([lapped])}["overlap"] == -2


def test_a_phase_that_some_samples_lack_counts_as_nothing_there():
    other = replace(sample(1), breakdown=divide(0, 10 * MS, [Span("extra", "host", 0, 10 * MS)]))
    assert {r.name: r.summary.median for r in rows_of([sample(0), other])}["extra"] == 5 * MS


def test_long_runs_are_shown_in_seconds():
    assert "median s" in text_of(measured(sample(0, 20_000)))
    assert "median ms" in text_of(RUN)


def test_json_holds_the_same_facts():
    fields = json.loads(json.dumps(run_fields(RUN)))
    assert fields["samples"] == 3 and fields["warmups"] == 1
    assert [phase["name"] for phase in fields["phases"]] == ["ntt", "msm", "unaccounted", "total"]
    assert fields["phases"][-1]["median"] == 11 * MS
    assert fields["checked_by"] == ["lib 1.0"]
    assert fields["artifacts"][0]["digest"].startswith("sha256:a")


def test_a_refusal_shows_file_both_digests_and_remedy():
    finding = Finding(
        State.STALE,
        Link.INPUTS,
        "input-changed",
        "a.cuh",
        "sha256:old",
        "sha256:new",
        "a.cuh: changed",
        "freshproof build",
    )
    refusal = Refusal("w", "before the first sample", (Verdict("host-x", State.STALE, (finding,), ()),), None)
    text = "\n".join(refusal_lines(refusal))
    for fact in ("a.cuh", "sha256:old", "sha256:new", "freshproof build", "stale", "host-x"):
        assert fact in text
    assert json.loads(json.dumps(refusal_fields(refusal)))["verdicts"][0]["findings"][0]["subject"] == "a.cuh"


@pytest.mark.parametrize(
    ("values", "median", "mad"), [([5], 5, 0), ([1, 3], 2, 1), ([1, 2, 100], 2, 1), ([4, 4, 4, 9], 4, 0)]
)
def test_median_and_mad(values, median, mad):
    summary = summarize(values)
    assert (summary.median, summary.mad) == (median, mad)
    assert (summary.low, summary.high, summary.n) == (min(values), max(values), len(values))
