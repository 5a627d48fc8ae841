"""From products back to recorded steps: what is positively matched, old, or of unknown origin."""

from dataclasses import replace

import pytest

from orchestrator.foreign.made import Build, Content, Made, build_bytes, read_build
from orchestrator.foreign.provenance import Unknown, chain, ends, members_of, place_of
from orchestrator.foreign.report import source_rows
from orchestrator.foreign.steps import Tool
from orchestrator.model import Finding, Link, State, Verdict

CODE = ("sha256:code",)


def made(path, digest, *inputs, tool=Tool.HOST, form="executable", members=(), pieces=CODE, **more):
    content = Content(digest, 1, form, pieces=pieces, members=members)
    fields = {"materials": (), "listed": True, "manifest": "", "unknown": (), "receipt": "", "run": 1}
    fields |= {"mode": "join", "argv": (), "folder": "/p", "milliseconds": 0, "made_ns": 0}
    return Made(path=path, tool=tool, content=content, inputs=inputs, **(fields | more))


OBJECT = made("/p/k.o", "o1", tool=Tool.NVCC, form="object", argv=("nvcc", "-c", "k.cu"))
ARCHIVE = made(
    "/p/l.a", "a1", ("/p/k.o", "o1"), tool=Tool.ARCHIVER, form="archive", members=(("k.o", "o1", True),)
)
PROGRAM = made("/p/prog", "p1", ("/p/l.a", "a1"))
ALL = {m.path: m for m in (OBJECT, ARCHIVE, PROGRAM)}
NOW = {"/p/k.o": "o1", "/p/l.a": "a1", "/p/prog": "p1"}


def observed(product, known=ALL, now=NOW):
    rows = members_of(product, known, now.get)
    return [(o.code, o.recorded is not None and o.recorded == o.observed, o.observed is None) for o in rows]


def test_the_chain_reaches_back_to_the_compile():
    assert [m.path for m in chain(ALL, "/p/prog")] == ["/p/prog", "/p/l.a", "/p/k.o"]


def test_everything_as_recorded_is_a_positive_match():
    assert observed(PROGRAM) == [("member", True, False)]
    assert observed(ARCHIVE) == [("member", True, False)] * 2


def test_an_archive_made_again_and_not_linked_again():
    newer = replace(ARCHIVE, content=replace(ARCHIVE.content, digest="a2"), earlier=("a1",))
    assert observed(PROGRAM, {**ALL, "/p/l.a": newer}, {**NOW, "/p/l.a": "a2"}) == [
        ("member-old", False, False)
    ]


def test_an_archive_changed_by_nobody_recorded():
    assert observed(PROGRAM, now={**NOW, "/p/l.a": "other"}) == [("member-changed", False, False)]
    unknown = {**ALL, "/p/l.a": replace(ARCHIVE, content=replace(ARCHIVE.content, digest="a9"))}
    assert observed(PROGRAM, unknown) == [("member-unrecorded", False, True)]


def test_an_object_that_was_cleaned_away_is_known_by_its_record():
    gone = {name: digest for name, digest in NOW.items() if name != "/p/k.o"}
    assert observed(ARCHIVE, now=gone)[0] == ("member", True, False)
    assert observed(PROGRAM, {"/p/prog": PROGRAM}, {}) == [("member-missing", False, False)]


def test_a_file_that_cannot_be_read_is_unproven():
    assert observed(PROGRAM, now={**NOW, "/p/l.a": Unknown("no permission")}) == [
        ("member-unreadable", False, True)
    ]


def test_members_by_their_bytes():
    old = replace(OBJECT, content=replace(OBJECT.content, digest="o2"), earlier=("o0",))
    known = {**ALL, "/p/k.o": old}

    def archive(*members):
        return replace(ARCHIVE, inputs=(), content=replace(ARCHIVE.content, members=members))

    assert observed(archive(("k.o", "o0", True)), known) == [("member-old", False, False)]
    assert observed(archive(("k.o", "strange", True)), known) == [("member-unrecorded", False, True)]
    crate = replace(archive(("m.o", "rust", False)), tool=Tool.RUSTC)
    assert observed(crate, known) == [], "rustc's own objects are not device code"


def test_which_products_count():
    old = made("/p/t/deps/bench-0123456789abcdef", "b1")
    new = made("/p/t/deps/bench-fedcba9876543210", "b2", run=2)
    known = {**ALL, old.path: old, new.path: new}
    assert ends(known) == (("/p/prog", new.path), (old.path,))
    assert place_of(old.path) == place_of(new.path)


def test_the_record_is_read_back_as_it_was_written():
    build = Build("/p", ("make",), "/p", 0, 3, ("lost",), "sha256:r", ALL)
    assert read_build(build_bytes(build)) == build


@pytest.mark.parametrize(
    "before, told",
    [
        (None, "0.0 s"),
        (("n", "d"), "same code as before"),
        (("other", "d"), "device code as before"),
        (("other", "other"), "other device code"),
    ],
)
def test_what_a_second_compile_changed_is_told(before, told):
    content = replace(OBJECT.content, normalised="n", device="d")
    fresh = Verdict("k.o", State.FRESH, (), ())
    build = Build("/p", made={"/p/k.o": replace(OBJECT, content=content, before=before)})
    (row,) = source_rows(build, {"/p/k.o"}, {"/p/k.o": fresh})
    assert (row.source, row.what) == ("k.cu", "compiled") and row.why.endswith(told)


@pytest.mark.parametrize(
    "state, what",
    [(State.FRESH, "not compiled"), (State.STALE, "NOT COMPILED"), (State.UNPROVEN, "not compiled")],
)
def test_what_was_not_compiled_is_told_apart_by_whether_it_had_to_be(state, what):
    link = Link.INPUTS
    found = (
        () if state is State.FRESH else (Finding(state, link, "c", "h.cuh", "a", "b", "h.cuh: changed", ""),)
    )
    (row,) = source_rows(Build("/p", made=ALL), set(), {"/p/k.o": Verdict("k.o", state, found, ())})
    assert row.what == what and ("h.cuh" in row.why) is bool(found)
