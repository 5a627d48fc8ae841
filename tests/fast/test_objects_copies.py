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
        (
            traces("sha256:other", stamps={STAMP: f"sha256:{'2' * 64}"}, kernels={("sm_80", "a"): "a"}),
            UNKNOWN,
        ),
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
        "other stamp, for another architecture",
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


OTHER = replace(
    ORIGINAL,
    target="wide",
    path="/project/build/artifacts/2/wide.cubin",
    digest="sha256:wide",
    unstamped="sha256:wide unstamped",
    traces=traces("sha256:wide", kernels={name: f"wide {code}" for name, code in KERNELS.items()}),
)


def test_each_file_is_in_one_group() -> None:
    """Targets with kernels of the same names: what is one's current code is no older code of the other."""
    found = [Found("/x/one", ORIGINAL.traces), Found("/x/two", OTHER.traces)]
    found.append(Found("/x/three", traces("sha256:3", kernels=OTHER.traces.kernels)))
    found.append(Found("/x/four", traces("sha256:4", kernels={name: "older" for name in KERNELS})))
    groups = {group.name: group.copies for group in group_copies(found, (ORIGINAL, OTHER))}
    told = {name: [(copy.path, copy.state) for copy in copies] for name, copies in groups.items()}
    assert told == {
        "kernels": [("/x/one", CURRENT), ("/x/four", STALE)],
        "wide": [("/x/two", CURRENT), ("/x/three", UNKNOWN)],
    }


def test_earlier_artifacts_of_the_own_store_count_where_they_are_used() -> None:
    earlier = Found("/store/1/kernels.cubin", traces("sha256:1", stamps={STAMP: "older"}, device={"1"}))
    (group,) = group_copies([earlier], (ORIGINAL,), store="/store")
    assert [copy.state for copy in group.copies] == [CopyState.SUPERSEDED]
    loads = {earlier.path: [("/bin/program", "RUNPATH")]}
    (group,) = group_copies([earlier], (ORIGINAL,), (), loads, store="/store")
    assert [copy.state for copy in group.copies] == [STALE]


def test_names_of_kernels_are_those_of_the_source() -> None:
    mangled = replace(ORIGINAL, traces=traces("sha256:m", kernels={("sm_90", "_Z5twicei"): "new"}))
    copy = compare_copy(Found("/x", traces("sha256:x", kernels={("sm_90", "_Z5twicei"): "old"})), mangled)
    assert copy is not None
    assert "twice(int)" in copy.why
