"""How findings are worded: a demand is expected and found, a record is recorded and now."""

import pytest

from orchestrator.freshness import judge
from orchestrator.model import Evidence, Finding, Link, Observation, State, Verdict
from orchestrator.verdict_report import verdict_lines


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (Link.CONTENTS, ("k: expected sm_90, found sm_80", "expected sm_90", "found    sm_80")),
        (Link.INPUTS, ("k: not as recorded", "recorded sm_90", "now      sm_80")),
    ],
)
def test_a_difference_is_worded_by_what_was_compared(link, words):
    verdict = judge(Evidence("k", frozenset({link}), (Observation(link, "code", "k", "sm_90", "sm_80"),)))
    said = "\n".join(verdict_lines([verdict]))
    assert all(word in said for word in words)


def test_a_link_without_evidence_is_worded_for_one_and_for_many():
    verdict = judge(Evidence("k", frozenset({Link.CONTENTS}), ()))
    assert verdict.findings[0].message == "k: nothing was found that shows its contents to be as recorded"


def test_what_several_have_in_common_is_told_once_with_the_names_of_all():
    header = Observation(Link.INPUTS, "input-changed", "a.cuh", "sha256:1", "sha256:2", "a.cuh: changed")
    bytes_ = Observation(
        Link.ARTIFACT, "artifact-changed", "prog", "sha256:3", "sha256:4", "prog: other bytes"
    )
    of = {"prog": (header, bytes_), "libk.so": (header,), "libk.a": (header,)}
    required = frozenset({Link.INPUTS})
    said = verdict_lines(judge(Evidence(name, required, found)) for name, found in of.items())
    assert said.count("  inputs: a.cuh: changed") == 1
    assert "    of       prog, libk.so, libk.a" in said
    assert sum("prog: other bytes" in line for line in said) == 1
    assert said[-2:] == ["libk.a: stale", "  1 finding told above, of prog"]


def test_findings_with_one_remedy_in_a_row_have_it_once_after_the_last():
    remedies = ["build", "build", "restart", "build"]
    findings = tuple(
        Finding(State.STALE, Link.INPUTS, "input-changed", f"{i}.cuh", "a", "b", f"{i}.cuh changed", remedy)
        for i, remedy in enumerate(remedies)
    )
    lines = verdict_lines([Verdict("k", State.STALE, findings, ())])
    assert [line.strip() for line in lines if "->" in line] == ["-> build", "-> restart", "-> build"]
    assert lines.index("  inputs: 1.cuh changed") < lines.index("    -> build")
