"""The decision: fresh only when everything required is shown, and nothing differs or is unknown."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import evidence as evidence_module
from orchestrator.build import _NO_REBUILD
from orchestrator.canonical import digest_bytes
from orchestrator.digests import Unreadable
from orchestrator.evidence import Observer
from orchestrator.freshness import judge
from orchestrator.manifest import make_common, make_tools, recipe_digest
from orchestrator.model import (
    Action,
    Closure,
    Component,
    Evidence,
    Generated,
    Link,
    Manifest,
    Material,
    Member,
    Observation,
    Origin,
    Product,
    State,
    Target,
)
from orchestrator.verdict_report import verdict_lines

VALUE = st.none() | st.sampled_from(["x", "y"])
OBSERVATION = st.builds(Observation, st.sampled_from(Link), st.just("code"), st.just("subject"), VALUE, VALUE)
EVIDENCE = st.builds(
    Evidence,
    st.just("t"),
    st.frozensets(st.sampled_from(Link)),
    st.lists(OBSERVATION, max_size=6).map(tuple),
)


def matches(o: Observation) -> bool:
    return o.recorded is not None and o.recorded == o.observed


@given(EVIDENCE)
def test_fresh_is_exactly_every_required_link_shown_and_nothing_else_found(evidence):
    shown = {o.link for o in evidence.observations if matches(o)}
    proven = (
        bool(evidence.required)
        and evidence.required <= shown
        and all(matches(o) for o in evidence.observations)
    )
    verdict = judge(evidence)
    assert (verdict.state is State.FRESH) == proven
    assert (verdict.state is State.FRESH) == (not verdict.findings)


@given(EVIDENCE)
def test_an_unknown_is_never_fresh_and_a_difference_is_always_stale(evidence):
    unknown = any(o.recorded is None or o.observed is None for o in evidence.observations)
    different = any(
        None not in (o.recorded, o.observed) and o.recorded != o.observed for o in evidence.observations
    )
    state = judge(evidence).state
    assert not (unknown and state is State.FRESH)
    assert different == (state is State.STALE)


@given(EVIDENCE, OBSERVATION.filter(lambda o: not matches(o)))
def test_more_evidence_against_never_makes_it_fresh(evidence, against):
    more = dataclasses.replace(evidence, observations=(*evidence.observations, against))
    assert judge(more).state is not State.FRESH


def test_no_evidence_at_all_is_unproven():
    assert judge(Evidence("t", frozenset(), ())).state is State.UNPROVEN


def test_a_required_link_that_nothing_shows_is_named():
    seen = Observation(Link.PLAN, "plan", "t", "x", "x")
    (finding,) = judge(Evidence("t", frozenset({Link.PLAN, Link.INPUTS}), (seen,))).findings
    assert (finding.link, finding.state, finding.code) == (Link.INPUTS, State.UNPROVEN, "inputs-unproven")


UNREADABLE = "may not be read"


class Content:
    """Stands for the files: names and their digests."""

    def __init__(self, **files):
        self.files = files

    def get(self, path):
        found = self.files.get(path)
        if found == UNREADABLE:
            raise Unreadable(f"{path}: {UNREADABLE}")
        return found


ACTION = Action(
    target=Target("k", "cubin", ("k.cu",)),
    arch="sm_90",
    argv=("/bin/nvcc", "-O3", "k.cu"),
    recipe_argv=("nvcc", "-O3", "k.cu"),
    environment=(("LC_ALL", "C"),),
    generated=(Generated("stamp.h", "text"),),
    options_files=(),
    product_name="k.cubin",
)
NVCC, PTXAS = Component("nvcc", "/bin/nvcc", "sha256:n"), Component("ptxas", "/bin/ptxas", "sha256:p")
TOOLS = make_tools([NVCC, PTXAS])
COMMON = make_common([Material("/usr/s.h", "sha256:s", Origin.SYSTEM, "")], (("inc", ("s.h",)),))


def recorded():
    return Manifest(
        target="k",
        kind="cubin",
        arch="sm_90",
        argv=ACTION.argv,
        environment=ACTION.environment,
        generated=(("stamp.h", digest_bytes(b"text")),),
        closure=Closure(
            (Material("k.cu", "sha256:k", Origin.PROJECT, "k.cu"),), (("inc", ("a.h",)),), COMMON
        ),
        members=(),
        tools=TOOLS,
        toolkit_version="13.0.88",
        action_digest="",
        recipe_digest="",
        product=Product("k.cubin", "sha256:c", "", 1),
        seconds=1,
        log="",
    )


def verdict(tmp_path, manifest=None, action=ACTION, tools=TOOLS, used=None, recipe=None, **files):
    manifest = manifest or recorded()
    made = recipe_digest(action, manifest.closure, manifest.members, tools)
    manifest = dataclasses.replace(manifest, recipe_digest=recipe or made)
    content = Content(**{"k.cu": "sha256:k", "k.cubin": "sha256:c", "/usr/s.h": "sha256:s", **files})
    contents = Observation(Link.CONTENTS, "stamp", "k", "x", "x")
    observer = Observer(tmp_path, content, lambda _manifest, _target: (contents,))
    return judge(observer.gather(manifest, "", action, tools, used or {}))


def test_a_stamp_that_this_release_would_not_make_is_stale_for_build_and_gate_alike(tmp_path):
    found = verdict(tmp_path, recipe="sha256:of another release")
    assert [f.code for f in found.findings] == ["recipe-digest"]
    assert found.state is State.STALE


def test_what_is_as_recorded_is_fresh(tmp_path):
    assert verdict(tmp_path).state is State.FRESH


@pytest.mark.parametrize(
    ("changes", "code", "subject", "before", "now"),
    [
        ({"argv": ("/bin/nvcc", "-O2", "k.cu")}, "flags-changed", "command of k", "-O3", "-O2"),
        ({"argv": ("/opt/nvcc", "-O3", "k.cu")}, "nvcc-changed", "nvcc", "/bin/nvcc", "/opt/nvcc"),
        ({"arch": "sm_80"}, "arch-changed", "k", "sm_90", "sm_80"),
        (
            {"environment": (("LC_ALL", "C"), ("NVCC_APPEND_FLAGS", "-G"))},
            "environment-changed",
            "NVCC_APPEND_FLAGS",
            "unset",
            "-G",
        ),
    ],
)
def test_a_changed_plan_shows_both_sides(tmp_path, changes, code, subject, before, now):
    (finding,) = verdict(tmp_path, action=dataclasses.replace(ACTION, **changes)).findings
    assert (finding.state, finding.code, finding.subject) == (State.STALE, code, subject)
    assert (finding.recorded, finding.observed) == (before, now)


def test_flags_that_a_careless_join_would_confuse_are_told_apart(tmp_path):
    one = dataclasses.replace(ACTION, argv=("/bin/nvcc", "-DA -DB", "k.cu"))
    two = dataclasses.replace(recorded(), argv=("/bin/nvcc", "-DA", "-DB", "k.cu"))
    (finding,) = verdict(tmp_path, two, action=one).findings
    assert finding.recorded != finding.observed


def test_inputs_tools_and_artifacts_that_changed_are_named(tmp_path):
    assert [f.subject for f in verdict(tmp_path, **{"k.cu": "sha256:other"}).findings] == ["k.cu"]
    (gone,) = verdict(tmp_path, **{"k.cu": None}).findings
    assert (gone.code, gone.observed, gone.state) == ("input-missing", "missing", State.STALE)
    (header,) = verdict(tmp_path, **{"/usr/s.h": "sha256:t"}).findings
    assert (header.code, header.subject) == ("input-changed", "/usr/s.h")
    other = make_tools([NVCC, dataclasses.replace(PTXAS, digest="sha256:q")])
    (swapped,) = verdict(tmp_path, tools=other).findings
    assert (swapped.subject, swapped.recorded, swapped.observed) == ("/bin/ptxas", "sha256:p", "sha256:q")
    damaged = verdict(tmp_path, **{"k.cubin": "sha256:d"}).findings
    assert [f.code for f in damaged] == ["artifact-changed"]


def test_a_tool_more_or_less_is_a_change(tmp_path):
    assert verdict(tmp_path, tools=make_tools([NVCC])).state is State.STALE
    more = make_tools([NVCC, PTXAS, Component("cicc", "/c", "sha256:x")])
    assert verdict(tmp_path, tools=more).state is State.STALE


def test_a_tool_that_cannot_be_read_is_unproven(tmp_path):
    tools = make_tools([NVCC, dataclasses.replace(PTXAS, digest="")])
    assert verdict(tmp_path, tools=tools).state is State.UNPROVEN


def test_a_name_that_was_absent_and_appears_is_stale_also_in_a_new_folder(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "b.h").touch()
    assert verdict(tmp_path).state is State.FRESH
    (tmp_path / "inc" / "a.h").touch()
    (finding,) = verdict(tmp_path).findings
    assert (finding.code, finding.subject) == ("name-appeared", "inc/a.h")


def test_a_name_that_a_system_header_asked_for_is_watched_too(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "s.h").touch()
    assert [f.subject for f in verdict(tmp_path).findings] == ["inc/s.h"]


def test_a_folder_is_not_a_file_that_appeared(tmp_path):
    (tmp_path / "inc" / "a.h").mkdir(parents=True)
    assert verdict(tmp_path).state is State.FRESH


def test_a_manifest_without_inputs_is_unproven_never_fresh(tmp_path):
    manifest = recorded()
    empty = dataclasses.replace(manifest, closure=dataclasses.replace(manifest.closure, materials=()))
    found = verdict(tmp_path, empty)
    assert found.state is State.UNPROVEN
    assert [f.link for f in found.findings] == [Link.INPUTS]


def test_what_could_not_be_followed_is_unproven(tmp_path):
    manifest = recorded()
    closure = dataclasses.replace(manifest.closure, unknown=("k.cu: .incbin without a name",))
    found = verdict(tmp_path, dataclasses.replace(manifest, closure=closure))
    assert (found.state, found.findings[0].code) == (State.UNPROVEN, "input-unfollowed")


@pytest.mark.parametrize(
    ("why", "message", "remedy"),
    [
        ("k.cu: no name -> write one", "k.cu: no name", "write one, then freshproof build"),
        ("k.cu: no name", "k.cu: no name", "write it so that it can be followed, then freshproof build"),
    ],
)
def test_what_could_not_be_followed_says_what_helps(tmp_path, why, message, remedy):
    (finding,) = verdict(tmp_path, **_unfollowed(why)).findings
    assert (finding.subject, finding.message, finding.remedy) == ("k.cu", message, remedy)


@pytest.mark.parametrize("code", sorted(_NO_REBUILD))
def test_where_another_build_does_not_help_the_remedy_says_what_does(tmp_path, code):
    (finding,) = verdict(tmp_path, **REASONS[code]).findings
    assert finding.code == code
    assert finding.remedy != "freshproof build"


@pytest.mark.parametrize(
    ("used", "state", "code"),
    [
        ((State.FRESH, "sha256:a"), State.FRESH, None),
        ((State.FRESH, "sha256:b"), State.STALE, "member-changed"),
        ((State.STALE, "sha256:a"), State.STALE, "member-stale"),
        ((State.UNPROVEN, "sha256:a"), State.UNPROVEN, "member-unproven"),
        (None, State.UNPROVEN, "member-unproven"),
    ],
)
def test_a_target_is_as_fresh_as_what_it_uses(tmp_path, used, state, code):
    action = dataclasses.replace(ACTION, target=Target("k", "archive", (), uses=("o",)))
    manifest = dataclasses.replace(recorded(), members=(Member("o", "sha256:a", "sha256:r"),), kind="archive")
    found = verdict(tmp_path, manifest, action=action, used={"o": used} if used else {})
    assert found.state is state
    assert [f.code for f in found.findings] == ([code] if code else [])


def _with_tools(*tools):
    return {"tools": make_tools(tools)}


def _with_action(**changes):
    return {"action": dataclasses.replace(ACTION, **changes)}


def _used(state, digest="sha256:a"):
    target = Target("k", "cubin", ("k.cu",), uses=("o",))
    manifest = dataclasses.replace(recorded(), members=(Member("o", "sha256:a", "sha256:r"),))
    return {"manifest": manifest, **_with_action(target=target), "used": {"o": (state, digest)}}


def _unfollowed(why="k.cu: .incbin without a name"):
    manifest = recorded()
    closure = dataclasses.replace(manifest.closure, unknown=(why,))
    return {"manifest": dataclasses.replace(manifest, closure=closure)}


REASONS = {
    "kind-changed": _with_action(target=Target("k", "ptx", ("k.cu",))),
    "arch-changed": _with_action(arch="sm_80"),
    "nvcc-changed": _with_action(argv=("/opt/nvcc", *ACTION.argv[1:])),
    "flags-changed": _with_action(argv=("/bin/nvcc", "-O2", "k.cu")),
    "environment-changed": _with_action(environment=(("LC_ALL", "C"), ("NVCC_CCBIN", "/g++"))),
    "generated-changed": _with_action(generated=(Generated("stamp.h", "other"),)),
    "recipe-digest": {"recipe": "sha256:of another release"},
    "input-changed": {"k.cu": "sha256:other"},
    "input-missing": {"k.cu": None},
    "input-unreadable": {"k.cu": UNREADABLE},
    "input-unfollowed": _unfollowed(),
    "tool-changed": _with_tools(NVCC, dataclasses.replace(PTXAS, digest="sha256:q")),
    "tool-unreadable": _with_tools(NVCC, dataclasses.replace(PTXAS, digest="")),
    "tool-set-changed": _with_tools(NVCC),
    "member-changed": _used(State.FRESH, "sha256:b"),
    "member-stale": _used(State.STALE),
    "member-unproven": _used(State.UNPROVEN),
    "artifact-changed": {"k.cubin": "sha256:d"},
    "artifact-missing": {"k.cubin": None},
    "artifact-unreadable": {"k.cubin": UNREADABLE},
}
ELSEWHERE = {
    "name-appeared",  # above: a name that was absent and appears
    "folder-unreadable",  # test_build_disk: a folder that may not be read
    "no-manifest",  # test_build_reasons
    "cannot-plan",  # test_build_cases: a toolchain that does not answer
    "link-changed",  # test_build_reasons, test_engine_gate
    "loader-variable",  # test_build_reasons
}


@pytest.mark.parametrize("code", REASONS)
def test_every_kind_of_reason_is_explained_with_both_sides_and_what_to_do(tmp_path, code):
    found = verdict(tmp_path, **REASONS[code])
    (finding,) = [f for f in found.findings if f.code == code]
    said = verdict_lines([found])
    assert any(finding.subject in line for line in said)
    assert f"    recorded {finding.recorded or 'nothing'}" in said or finding.recorded is None
    assert f"    now      {finding.observed or 'unknown'}" in said or finding.observed is None
    assert f"    -> {finding.remedy}" in said
    assert finding.state is (State.STALE if finding.observed else State.UNPROVEN)


def test_no_kind_of_reason_is_left_out_above():
    folder = Path(evidence_module.__file__).parent
    text = "".join((folder / f"{n}.py").read_text() for n in ("evidence", "plan_difference", "reach", "gate"))
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text))
    assert codes == REASONS.keys() | ELSEWHERE
