"""What the tool wrote for itself, damaged: a typed error in plain words or no effect, never fresh."""

import functools
import json
import sys
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from orchestrator import lock, manifest
from orchestrator.canonical import digest_bytes, encode, parse_json, seal, unseal
from orchestrator.digests import Digests
from orchestrator.model import Closure, Component, Kind, Manifest, Material, Origin, Product
from orchestrator.recorded import ContentsMemory, Records
from orchestrator.situation import _load
from orchestrator.workspace import Workspace

D = "sha256:" + "a" * 64
PYTHONS_OWN_WORDS = ("NoneType", "object", "Expecting", "codec", "subscript", "unpack", "Errno")


@functools.cache
def record() -> Manifest:
    """A manifest with something in every field."""
    common = manifest.make_common(
        [Material("/usr/include/a.h", D, Origin.SYSTEM, "")], (("inc", ("stdio.h",)),)
    )
    return Manifest(
        target="k",
        kind=Kind.CUBIN,
        arch="sm_90",
        argv=("/usr/bin/nvcc", "-cubin"),
        environment=(("LC_ALL", "C"),),
        generated=(("build/work/k/stamp.h", D),),
        closure=Closure(
            (Material("src/k.cu", D, Origin.PROJECT, "src/k.cu"),),
            (("inc", ("x.h", "y.h")),),
            common,
            ("k.cu: __has_include(M): the macro's value cannot be followed",),
        ),
        members=(),
        tools=manifest.make_tools([Component("nvcc", "/usr/bin/nvcc", D)]),
        toolkit_version="13.0.88",
        action_digest=D,
        recipe_digest=D,
        product=Product("build/artifacts/aa/k.cubin", D, D, 12),
        seconds=1.25,
        log="build/logs/k.log",
    )


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """``whole`` cut off, with other bytes in it, with a part gone or twice, or in another order."""
    at, length = draw(st.integers(0, len(whole))), draw(st.integers(0, 40))
    part, rest = whole[at : at + length], whole[at + length :]
    how = draw(st.sampled_from(["cut", "other", "gone", "twice", "moved", "zeros"]))
    middle = {
        "cut": b"",
        "other": draw(st.binary(max_size=40)),
        "gone": b"",
        "twice": part + part,
        "moved": part[::-1],
        "zeros": bytes(len(part)),
    }[how]
    result = whole[:at] + middle + (b"" if how == "cut" else rest)
    assume(result != whole)
    return result


def documents(value):
    """JSON of any shape around a value."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just(value),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=8,
    )


NESTED = b"[" * 100_000
LOCK = lock.to_text({"k": record()}, ["k"], None).encode()


@given(damaged(manifest.to_bytes(record())))
@example(b"")
@example(b"null")
@example(b"{}")
@example(b"\xff")
@example(NESTED)
@example(manifest.to_bytes(record()) + b"\n")
def test_a_damaged_manifest_is_no_manifest_and_says_which_file(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("records")
    records = Records(Workspace(root))
    records.write(record())
    assert records.read("k") == (record(), "")
    (root / "build/manifests/k.json").write_bytes(data)
    found, problem = records.read("k")
    assert found is None
    assert problem.startswith("build/manifests/k.json cannot be read: it")
    assert not any(words in problem for words in PYTHONS_OWN_WORDS)


@given(damaged(LOCK) | documents({"schema": lock.SCHEMA}).map(lambda d: json.dumps(d).encode()))
@example(NESTED)
@example(b'{"schema": "freshproof/lock/1", "targets": ' + b"9" * 5000 + b"}")
@example(LOCK.replace(b"{", b"<<<<<<< HEAD\n{", 1))
def test_a_damaged_lock_differs_or_is_refused_in_plain_words(data):
    try:
        lines = lock.compare({"k": record()}, data)
    except ValueError as error:
        assert not any(words in str(error) for words in PYTHONS_OWN_WORDS)
    else:
        same = json.loads(data)["targets"].get("k@sm_90") == json.loads(LOCK)["targets"]["k@sm_90"]
        assert (lines == ["matches the lock (1 target)"]) == same


def test_a_lock_with_marks_of_a_merge_names_the_line():
    with pytest.raises(ValueError, match="line 3, column 1: not JSON"):
        parse_json(b'{\n "schema": "x",\n<<<<<<< HEAD\n')


@given(damaged(seal({"seen": {"f": [1, 2, 3, 4, 5, D]}, "passed": [D], "toolchains": {"a": {}}})))
@example(NESTED)
@example(b'{"seen": {"f": 1}, "passed": [1], "toolchains": {"a": []}}')
def test_a_damaged_cache_counts_as_none(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("caches")
    (root / "build/cache").mkdir(parents=True)
    (root / "f").write_bytes(b"one")
    for name in ("digests.json", "toolchain.json", "contents.json"):
        (root / "build/cache" / name).write_bytes(data)
    workspace = Workspace(root)
    assert Digests(root, workspace.cache("digests.json")).get("f") == digest_bytes(b"one")
    assert _load(workspace.cache("toolchain.json")) == {}
    assert ContentsMemory(workspace)._passed == set()


@given(st.dictionaries(st.text(max_size=5), documents(None), min_size=1, max_size=4))
def test_what_was_sealed_is_given_back(document):
    assume(b"NaN" not in json.dumps(document).encode() and b"Infinity" not in json.dumps(document).encode())
    whole = unseal(seal(document))
    del whole["self_digest"]
    assert whole == {k: v for k, v in document.items() if k != "self_digest"}


def test_no_file_of_ours_is_needed_to_say_so(tmp_path: Path):
    assert Records(Workspace(tmp_path)).read("k") == (None, "never built here")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"[1,", b'{"a":[{},'])
def test_nesting_is_refused_whatever_the_interpreter_would_allow(opening, monkeypatch):
    """Some libraries raise the interpreter's limit beyond what the stack holds."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        for read in (parse_json, lambda data: unseal(seal({"a": 1}) + data)):
            with pytest.raises(ValueError):
                read(opening * 200_000)
    finally:
        sys.setrecursionlimit(before)


def test_wide_documents_are_read():
    document = [[str(number), {"a": [number]}] for number in range(5_000)]
    assert parse_json(encode(document)) == document
