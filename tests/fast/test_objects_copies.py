"""What a file is to a target, by its bytes, its stamp, its kernels and its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.copies import Copy, CopyState, Found, Original, compare_copy, group_copies
from orchestrator.objects.contents import Form
from orchestrator.objects.traces import Traces

RECIPE = f"sha256:{'1' * 64}"
STAMP = "freshproof_stamp_kernels"
CURRENT, STALE, UNKNOWN = CopyState.CURRENT, CopyState.STALE, CopyState.UNKNOWN


def traces(digest: str, **fields: object) -> Traces:
    found = Traces(Form.CUBIN, digest)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


KERNELS = {("sm_90", "a"): "code a", ("sm_90", "b"): "code b", ("sm_90", "c"): "code c"}
ORIGINAL = Original(
    target="kernels",
    path="/project/build/kernels.cubin",
    digest="sha256:original",
    unstamped="sha256:unstamped",
    recipe=RECIPE,
    fresh=True,
    traces=traces("sha256:original", kernels=KERNELS, stamps={STAMP: RECIPE}),
)


def state(path: str, found: Traces, original: Original = ORIGINAL) -> CopyState | None:
    copy = compare_copy(Found(path, found), original)
    return copy.state if copy else None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (traces("sha256:original"), CURRENT),
        (traces("sha256:unstamped"), CURRENT),
        (traces("sha256:other", stamps={STAMP: RECIPE}), CURRENT),
        (traces("sha256:other", stamps={STAMP: f"sha256:{'2' * 64}"}, kernels=KERNELS), STALE),
        (traces("sha256:other", kernels=KERNELS), UNKNOWN),
        (traces("sha256:other", kernels={**KERNELS, ("sm_90", "b"): "older"}), STALE),
        (traces("sha256:other", kernels={("sm_90", "a"): "code a"}), None),
        (traces("sha256:other", kernels={("sm_80", "a"): "code a"}), None),
    ],
    ids=[
        "bytes",
        "unstamped",
        "stamp",
        "other stamp",
        "kernels",
        "other kernel",
        "one kernel of three",
        "other arch",
    ],
)
def test_what_a_file_is_to_a_target(found: Traces, expected: CopyState | None) -> None:
    assert state("/elsewhere/file", found) == expected


def test_the_name_of_the_artifact_with_other_code() -> None:
    assert state("/elsewhere/kernels.cubin", traces("sha256:other")) is STALE


def test_a_copy_of_what_is_itself_stale() -> None:
    behind = replace(ORIGINAL, fresh=False)
    assert state("/elsewhere/file", traces("sha256:original"), behind) is STALE


def builds(found: list[Found], *programs: Found) -> dict[str, CopyState]:
    (group,) = group_copies(found, (), programs)
    return {copy.path: copy.state for copy in group.copies}


ONE = Found("/1/lib.a", traces("sha256:1", device={"old"}, units={"unit 1"}))
TWO = Found("/2/lib.a", traces("sha256:2", device={"new"}, units={"unit 2"}))
THREE = Found("/3/lib.a", traces("sha256:3", device={"new"}, units={"unit 3"}))


def test_builds_of_one_name_without_a_program() -> None:
    assert builds([ONE, TWO]) == {"/1/lib.a": UNKNOWN, "/2/lib.a": UNKNOWN}


def test_names_of_compiles_tell_builds_apart() -> None:
    program = Found("/bin/program", traces("sha256:p", device={"new", "more"}, units={"unit 2", "main"}))
    assert builds([ONE, TWO, THREE], program) == {
        "/1/lib.a": STALE,
        "/2/lib.a": CURRENT,
        "/3/lib.a": STALE,
    }


def test_a_stripped_program_leaves_a_doubt() -> None:
    program = Found("/bin/program", traces("sha256:p", device={"new"}))
    assert builds([ONE, TWO, THREE], program) == {
        "/1/lib.a": STALE,
        "/2/lib.a": UNKNOWN,
        "/3/lib.a": UNKNOWN,
    }
    assert builds([ONE, TWO], program) == {"/1/lib.a": STALE, "/2/lib.a": CURRENT}


def test_a_name_that_occurs_once_is_no_group() -> None:
    assert group_copies([ONE], (), ()) == ()


def test_the_library_that_a_program_loads() -> None:
    loads = {"/2/lib.a": [("/bin/program", "LD_LIBRARY_PATH")]}
    (group,) = group_copies([ONE, TWO], (), (), loads)
    by_path: dict[str, Copy] = {copy.path: copy for copy in group.copies}
    assert by_path["/2/lib.a"].used_by == ("loaded by /bin/program through LD_LIBRARY_PATH",)
    assert (by_path["/1/lib.a"].state, by_path["/2/lib.a"].state) == (STALE, CURRENT)
