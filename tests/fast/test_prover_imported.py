"""Sources of a run that change while it runs."""

import pytest

from orchestrator.errors import Refused
from prover.imported import require_same_sources

BEFORE = [{"path": "prover/qap.py", "digest": "sha256:1"}]


def test_the_same_sources_pass():
    require_same_sources(BEFORE, BEFORE)


@pytest.mark.parametrize(
    ("path", "recorded"), [("prover/qap.py", "sha256:1"), ("prover/late.py", "not imported")]
)
def test_a_change_is_a_refusal_with_the_file_and_both_digests(path, recorded):
    with pytest.raises(Refused) as raised:
        require_same_sources(BEFORE, [{"path": path, "digest": "sha256:2"}])
    assert all(fact in raised.value.what for fact in (path, recorded, "sha256:2"))
