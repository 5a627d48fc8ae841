"""How findings are worded: a demand is expected and found, a record is recorded and now."""

import pytest

from orchestrator.freshness import judge
from orchestrator.model import Evidence, Link, Observation
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
