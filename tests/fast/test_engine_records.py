"""Encoding, depfiles, manifests and the lock."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import lock, manifest
from orchestrator.canonical import digest_document, encode, seal
from orchestrator.depfile import parse_ld, parse_nvcc
from orchestrator.model import (
    Action,
    Closure,
    Component,
    Kind,
    Manifest,
    Material,
    Origin,
    Product,
    Target,
)

TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
D = "sha256:" + "a" * 64
E = "sha256:" + "b" * 64


COMPILERS = (
    "nvcc", "nvcc.profile", "cudafe++", "cicc", "ptxas", "fatbinary", "nvlink", "libdevice/libdevice.10.bc",
)  # fmt: skip


def recipe(tools: dict[str, str], *flags: str) -> str:
    """The recipe digest of one command with a toolchain of roles and digests."""
    target = Target("t", Kind.CUBIN, ("a.cu",), "sm_90")
    action = Action(target, "sm_90", (), ("nvcc", *flags), (), (), (), "t.cubin")
    all_tools = manifest.make_tools([Component(role, f"/x/{role}", d) for role, d in tools.items()])
    return manifest.recipe_digest(action, Closure((), (), COMMON), (), all_tools)


def test_the_recipe_is_the_same_however_the_toolkit_was_installed():
    compilers = dict.fromkeys(COMPILERS, D)
    here = {**compilers, "wrapper/0": D, "host/0/g++": D, "bin2c": D, "include/crt/func": D}
    there = {**compilers, "host/0/g++": E, "libnvvm/libnvvm.so": D, "crt/link.stub": D}
    assert recipe(here) == recipe(there)


@pytest.mark.parametrize("role", COMPILERS)
def test_every_compiler_of_the_toolkit_is_in_the_recipe(role):
    compilers = dict.fromkeys(COMPILERS, D)
    assert recipe(compilers) != recipe({**compilers, role: E})


def test_libnvvm_is_in_the_recipe_where_nvlink_compiles():
    one, other = ({**dict.fromkeys(COMPILERS, D), "libnvvm/libnvvm.so": d} for d in (D, E))
    assert recipe(one, "-dlto") != recipe(other, "-dlto")


@given(DOCUMENTS, DOCUMENTS)
def test_different_documents_have_different_encodings(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (encode(one) == encode(other)) == same


@given(st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=5))
def test_two_commands_never_run_together(one, other):
    assert (digest_document(one) == digest_document(other)) == (one == other)


def test_the_order_of_keys_does_not_matter_and_that_of_lists_does():
    assert encode({"b": 1, "a": 2}) == encode({"a": 2, "b": 1})
    assert encode(["-DA", "-DB"]) != encode(["-DB", "-DA"])
    assert encode(["-DA -DB"]) != encode(["-DA", "-DB"])


def test_names_that_are_not_utf8_survive():
    name = b"\xff\xfe.cuh".decode("utf-8", "surrogateescape")
    assert json.loads(encode([name])) == [name]


def test_nvccs_dependency_list():
    data = (
        b"build/a.cubin : src/a.cu \\\n    sp\\ ace.h \\\n    do$(x)l#l.h \\\n    ta\tb.h \\\n    c : d.h\n"
    )
    assert parse_nvcc(data) == ("src/a.cu", "sp ace.h", "do$(x)l#l.h", "ta\tb.h", "c : d.h")


def test_a_list_names_each_file_once():
    assert parse_nvcc(b"o : a \\\n    b \\\n    a\n") == ("a", "b")


def test_lds_dependency_list_has_a_second_paragraph():
    assert parse_ld(b"a.so: \\\n  /lib/crti.o \\\n  x y.o\n\n/lib/crti.o:\n\nx y.o:\n") == (
        "/lib/crti.o",
        "x y.o",
    )


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a.cu\n", b"o : a.cu \\\n", b"o : a.cu \\\n    b", b"o : a.cu\n    b.h\n"]
)
def test_an_empty_or_torn_list_is_an_error_never_no_dependencies(data):
    with pytest.raises(ValueError):
        parse_nvcc(data)


@given(st.lists(st.text(st.characters(exclude_characters="\n\\\0", codec="utf-8"), min_size=1), min_size=1))
def test_every_name_written_nvccs_way_is_read_back(names):
    names = [stripped for name in names if (stripped := name.strip(" "))] or ["a"]
    written = " \\\n    ".join(name.replace(" ", "\\ ") for name in names)
    assert parse_nvcc(f"o : {written}\n".encode()) == tuple(dict.fromkeys(names))


COMMON = manifest.make_common([Material("/usr/include/a.h", D, Origin.SYSTEM, "")], (("inc", ("stdio.h",)),))
TOOLS = manifest.make_tools([Component("nvcc", "/usr/bin/nvcc", D)])


def read(data: bytes, shared=None) -> Manifest:
    """Read a manifest whose shared documents are those of `record`, or ``shared``."""
    return manifest.Reader((shared or manifest.shared_documents(record())).__getitem__).read(data)


def record(**changes) -> Manifest:
    fields = {
        "target": "k",
        "kind": Kind.CUBIN,
        "arch": "sm_90",
        "argv": ("/usr/bin/nvcc", "-cubin"),
        "environment": (("LC_ALL", "C"),),
        "generated": (("build/work/k/stamp.h", D),),
        "closure": Closure(
            (Material("src/k.cu", D, Origin.PROJECT, "src/k.cu"),),
            (("", ("cuda_runtime.h",)), ("inc", ("x.h", "y.h"))),
            COMMON,
        ),
        "members": (),
        "tools": TOOLS,
        "toolkit_version": "13.0.88",
        "action_digest": D,
        "recipe_digest": D,
        "product": Product("build/artifacts/aa/k.cubin", D, E, 12),
        "seconds": 1.25,
        "log": "build/logs/k.log",
    }
    return Manifest(**{**fields, **changes})


def test_a_manifest_is_read_back_as_written():
    assert read(manifest.to_bytes(record())) == record()


FIELDS = {k: v for k, v in json.loads(manifest.to_bytes(record())).items() if k != "self_digest"}


@pytest.mark.parametrize("key", sorted(FIELDS))
def test_a_manifest_without_any_one_field_is_not_read(key):
    with pytest.raises(ValueError, match=f"has no '{key}'|its schema"):
        read(seal({k: v for k, v in FIELDS.items() if k != key}))


@pytest.mark.parametrize("key", sorted(FIELDS))
@given(value=DOCUMENTS)
def test_a_value_of_another_kind_is_read_or_refused_in_plain_words(key, value):
    """As another release might write it: with a seal of its own."""
    try:
        read(seal({**FIELDS, key: value}))
    except ValueError as error:
        assert not re.search(r"NoneType|object|subscript|unpack|Traceback", str(error))


@pytest.mark.parametrize("digest", manifest.shared_documents(record()))
def test_a_manifest_whose_shared_documents_are_damaged_or_gone_is_not_read(digest):
    shared = manifest.shared_documents(record())
    with pytest.raises(ValueError, match="damaged"):
        read(manifest.to_bytes(record()), {**shared, digest: shared[digest] + b" "})

    def gone(_digest):
        raise FileNotFoundError(2, "No such file")

    with pytest.raises(ValueError, match="No such file"):
        manifest.Reader(gone).read(manifest.to_bytes(record()))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_manifest_give_one_kind_of_error(data):
    with pytest.raises(ValueError):
        read(data)


def test_a_build_matches_the_lock_written_from_it():
    text = lock.to_text({"k": record()}, ["k"], None).encode()
    assert lock.compare({"k": record()}, text) == ["matches the lock (1 target)"]
    assert lock.compare({}, text) == [], "nothing was built that could match"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"toolkit_version": "13.1.0"}, "toolkit 13.1.0, locked 13.0.88"),
        (
            {"closure": Closure((Material("src/k.cu", E, Origin.PROJECT, "src/k.cu"),), (), COMMON)},
            "sources: src/k.cu",
        ),
        ({"recipe_digest": E}, "its command or toolkit"),
        ({"product": Product("p", D, D, 12)}, "its code"),
        ({"arch": "sm_80"}, "not in the lock: k@sm_80"),
    ],
)
def test_what_differs_from_the_lock_is_named(changes, said):
    (line,) = lock.compare({"k": record(**changes)}, lock.to_text({"k": record()}, ["k"], None).encode())
    assert said in line


def test_the_lock_keeps_other_architectures_and_targets_and_drops_those_that_are_gone():
    both = {"k": record(), "other": record(target="other"), "gone": record(target="gone")}
    text = lock.to_text(both, list(both), None)
    text = lock.to_text({"k": record(arch="sm_80")}, ["k", "other"], text.encode())
    assert sorted(json.loads(text)["targets"]) == ["k@sm_80", "k@sm_90", "other@sm_90"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": "freshproof/lock/1", "targets": {"k": {}}}', "x"])
def test_a_file_that_is_no_lock_is_an_error(text):
    with pytest.raises(ValueError):
        lock.compare({"k": record()}, text.encode())
