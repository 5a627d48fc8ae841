"""Which machine code runs on which GPU as it was compiled."""

import pytest

from orchestrator.foreign.architectures import observe_code_for


@pytest.mark.parametrize(
    "archs, gpu, runs",
    [
        (("sm_90",), "sm_90", True),
        (("sm_80",), "sm_86", True),
        (("sm_86",), "sm_80", False),
        (("sm_80", "sm_90"), "sm_90", True),
        (("sm_80",), "sm_90", False),
        (("sm_90a",), "sm_90", True),
        (("sm_100a",), "sm_103", False),
        (("sm_100f",), "sm_103", True),
        (("sm_100",), "sm_120", False),
        (("compute_90",), "sm_90", False),
        ((), "sm_90", False),
    ],
)
def test_which_code_runs_where(archs, gpu, runs):
    seen = observe_code_for(gpu, archs, "prog")
    assert (seen.recorded == seen.observed) is runs
    assert runs or gpu in seen.remedy


def test_what_is_said_of_it():
    assert "for sm_80, and the GPU here is sm_90" in observe_code_for("sm_90", ("sm_80",), "prog").note
    note = observe_code_for("sm_90", ("compute_75", "sm_80"), "prog").note
    assert "sm_80" in note and "the driver would compile its PTX" in note
    assert "only PTX for compute_75" in observe_code_for("sm_90", ("compute_75",), "prog").note
