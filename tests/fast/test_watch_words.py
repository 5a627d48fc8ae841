"""What a watch says: of kernels, and of each event, in the words that an engineer reads."""

from dataclasses import fields, replace

import pytest

from orchestrator.objects.compare import Change, Difference, Kernel, KernelChange
from orchestrator.objects.function import Function
from orchestrator.watch.code_change import IDENTICAL, change_lines
from orchestrator.watch.words import lines_of, watching_text

# Whatever else is known of a function, a watch is about these.
FUNCTION = Function(
    **{
        **{field.name: None for field in fields(Function)},
        **{"name": "k", "kernel": True, "code_bytes": 1024, "registers": 168, "frame": 0, "stack": 0},
        **{"spill_stores": 0, "spill_loads": 0, "shared": 0, "constant": 0, "barriers": 0, "parameters": ()},
    }
)
NOTHING = Difference(
    identical=False, same=False, only_stamps=False, kernels=(), has_host=False, host=(), sealed=(), other=(),
    texts_added=(), texts_removed=(), stamps=(),
)  # fmt: skip


def kernel(**changes) -> Kernel:
    return Kernel("d", None, replace(FUNCTION, **changes))


def changed(name="k", reasons=("code",), arch="sm_90", before=None, after=None) -> KernelChange:
    return KernelChange(arch, name, Change.CHANGED, before or kernel(), after or kernel(), reasons)


def same(name) -> KernelChange:
    return KernelChange("sm_90", name, Change.SAME, kernel(), kernel())


def lines(*kernels, **more) -> list[str]:
    return change_lines(replace(NOTHING, kernels=kernels, **more))


def test_registers_and_spills_are_told_with_both_values_and_the_rest_is_counted():
    one = changed("msm_accumulate", after=kernel(registers=172, spill_stores=8, spill_loads=8))
    others = [same(f"k{number}") for number in range(14)]
    assert lines(one, *others) == [
        "msm_accumulate: registers 168 -> 172, spills 0 -> 16 B; 14 kernels unchanged"
    ]


def test_code_of_another_size_is_told():
    assert lines(changed(after=kernel(code_bytes=2048))) == ["k: code 1,024 -> 2,048 B"]


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (("code",), "k: code, with the same size and resources"),
        (("data it refers to",), "k: data that it refers to"),
        (("callee f",), "k: callees f"),
        (("resources",), "k: resources"),
    ],
)
def test_a_change_that_no_measure_shows_is_told_by_its_reason(reasons, told):
    assert lines(changed(reasons=reasons)) == [told]


def test_kernels_that_came_or_went_are_told():
    new = KernelChange("sm_90", "fresh", Change.ADDED, None, kernel())
    gone = KernelChange("sm_90", "old", Change.REMOVED, kernel(), None)
    assert lines(gone, new) == ["old: gone", "fresh: new, 168 registers"]


@pytest.mark.parametrize("what", [{"same": True}, {"only_stamps": True}])
def test_the_same_machine_code_is_said_to_be_identical(what):
    assert change_lines(replace(NOTHING, **what)) == [IDENTICAL]


def test_host_code_is_told_beside_device_code():
    assert lines(same("k"), host=((".text", Change.CHANGED),)) == [
        "device code identical (1 kernel)",
        "host code changed: .text",
    ]


def test_ptx_is_not_counted_again_beside_machine_code():
    ptx = KernelChange("sm_90", "k", Change.CHANGED, Kernel("a"), Kernel("b"))
    assert lines(changed(after=kernel(registers=40)), ptx) == ["k: registers 168 -> 40"]
    assert lines(ptx) == ["k: changed"]


def test_the_parts_of_linked_code_are_not_counted_again():
    part = changed(arch="sm_90 rdc", after=kernel(registers=1))
    assert lines(part, changed(after=kernel(registers=2))) == ["k: registers 168 -> 2"]
    assert lines(part) == ["k: registers 168 -> 1"]


def test_architectures_are_named_where_there_are_several():
    other = changed(arch="sm_80", after=kernel(registers=1))
    assert lines(changed(after=kernel(registers=2)), other)[1] == "k (sm_80): registers 168 -> 1"


def test_many_changes_are_cut_short_and_counted():
    told = lines(*[changed(f"k{n}", after=kernel(registers=9)) for n in range(20)])
    assert len(told) == 13 and told[-1] == "and 8 more kernels changed"


# Events


def said(event, **fields) -> str:
    return "\n".join(text for _style, text in lines_of({"event": event, "at": 0.0, **fields}))


def test_a_change_names_files_and_targets_and_what_it_cut_off():
    files = [{"path": f"f{number}", "how": "changed"} for number in range(9)]
    text = said("changed", files=files, targets=["a", "b"], cuts="build")
    assert "f0 changed, f1 changed" in text and "f5 changed and 3 more -> a, b" in text
    assert "build cut off" in said("cut", what="build")


def test_a_failure_is_told_whole():
    fields = {
        "target": "k",
        "result": "failed",
        "reason": "input changed: k.cu",
        "seconds": 1.5,
        "artifact": "",
    }
    text = said(
        "built", **fields, same_code=False, message="k.cu(1): error\n  junk\n  ^", remedy="the log: x"
    )
    assert text.splitlines()[1:] == ["    k.cu(1): error", "      junk", "      ^", "    -> the log: x"]


def test_what_is_not_verified_is_told_with_both_digests():
    finding = {"link": "inputs", "message": "k.cu: changed", "recorded": "sha256:1", "observed": "sha256:2"}
    text = said("verified", admitted=False, error="", targets=[{"target": "k", "findings": [finding]}])
    assert "k: inputs: k.cu: changed" in text and "recorded sha256:1" in text and "now      sha256:2" in text
    assert "verified k" in said(
        "verified", admitted=True, error="", targets=[{"target": "k", "findings": []}]
    )


def test_a_time_is_told_beside_the_last_and_the_first():
    against = [
        {"which": "last", "at": "10:00:00", "median": 2e6, "answer": "faster", "text": "-50.0 %, faster"},
        {"which": "first", "at": "09:00:00", "median": 1e6, "answer": "same", "text": "the same"},
    ]
    text = said(
        "benched",
        workload="w",
        state="fresh",
        why="",
        median=1e6,
        n=5,
        mad=1e3,
        against=against,
        disturbed="",
    )
    assert "w: median 1.000 ms of 5 samples" in text
    assert "beside the last (10:00:00, 2.000 ms): -50.0 %, faster" in text
    assert "not timed: refused" in said("benched", workload="w", state="broken", why="refused: stale")


def test_a_round_tells_what_fails_and_what_is_watched():
    fields = {"targets": 2, "files": 3, "places": 1234, "folders": 1, "polled": 1}
    text = said("round", good=False, built=1, failing=["k"], seconds=2.0)
    assert text.endswith("not done in 2.00 s: 1 built; failing: k")
    assert watching_text(fields) == "watching 2 targets: 1,234 names in 1 folder, 1 folder by looking"


@pytest.mark.parametrize(("code", "told"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "signal 9")])
def test_the_end_of_the_command_is_told(code, told):
    assert told in said("command", code=code)
