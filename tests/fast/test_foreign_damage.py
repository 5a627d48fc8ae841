"""A record of another build that was cut off, damaged or edited is never read as one."""

from pathlib import Path

import pytest

from orchestrator.canonical import parse_json, seal
from orchestrator.foreign.made import (
    Build,
    Content,
    Made,
    Receipt,
    build_bytes,
    read_build,
    read_receipt,
    receipt_bytes,
)
from orchestrator.foreign.steps import Tool
from orchestrator.foreign.store import Damaged, Store


def digest(letter: str) -> str:
    return f"sha256:{letter * 64}"


CONTENT = Content(
    digest=digest("a"), normalised=digest("b"), size=5, form="object", device=digest("c"), archs=("sm_90",),
    kernels=("k",), pieces=(digest("d"),), sealed="",
)  # fmt: skip
MADE = Made(
    path="/p/k.o", tool=Tool.NVCC, mode="compile", argv=("nvcc", "-c", "k.cu"), folder="/p", content=CONTENT,
    inputs=(), materials=(("/p/k.cu", digest("e")),), listed=True, manifest=digest("f"), unknown=(),
    receipt=digest("1"), run=1, milliseconds=7, made_ns=1, before=(digest("2"), digest("3")),
)  # fmt: skip
BUILD = Build("/p", ("make",), "/p", 0, 1, (), digest("1"), {"/p/k.o": MADE})
RECEIPT = Receipt({"/p/k.cu": digest("e")}, (), {"PATH": "/bin"}, (), {"nvcc": "/bin/nvcc"}, ("/p",))


def test_what_was_written_is_read():
    assert read_build(build_bytes(BUILD)) == BUILD
    assert read_receipt(receipt_bytes(RECEIPT)) == RECEIPT


def test_no_cut_and_no_changed_byte_of_a_record_is_read():
    data = build_bytes(BUILD)
    for at in range(len(data)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            with pytest.raises(ValueError):
                read_build(damaged)


@pytest.mark.parametrize(
    "document",
    [
        {"schema": "freshproof/foreign/0"},
        {"made": 5},
        {"made": {"/p/k.o": 5}},
        {"made": {"/p/k.o": {"content": {}, "tool": "nvcc"}}},
        {"made": {}, "stranger": 1},
    ],
)
def test_whole_documents_of_another_shape_are_not_read(document):
    with pytest.raises(ValueError):
        read_build(seal({"schema": "freshproof/foreign/1", **document}))


@pytest.mark.parametrize("data", [b"", b"[]", b"5", b'{"files":{}}', b"\xff", b"[" * 100_000, b"9" * 9999])
def test_what_is_no_receipt_is_not_read(data):
    with pytest.raises(ValueError):
        read_receipt(data)


CHANGES = (
    None, True, -1, 10**4000, 1.5, "", "\udcff", [], [[]], [None], {}, {"": 1}, [["a"]], [["a", 1]],
)  # fmt: skip


def changed(value):
    """A document with one of its values another, for each value at any depth and each of `CHANGES`."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        for other in CHANGES:
            copy = value.copy()
            copy[key] = other
            yield copy
        for other in changed(inner):
            copy = value.copy()
            copy[key] = other
            yield copy


def test_no_value_of_another_kind_breaks_the_reading_of_a_record():
    document = parse_json(build_bytes(BUILD))
    del document["self_digest"]
    for other in changed(document):
        try:
            read_build(seal(other))
        except ValueError:
            continue


def test_kept_documents_are_known_by_their_digest(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    name = store.write_receipt(RECEIPT)
    assert store.read_receipt(name) == RECEIPT
    (path,) = Path(store.folder / "receipts").glob("*.json")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"/bin/nvcc", b"/opt/nvcc"))
    with pytest.raises(Damaged):
        store.read_receipt(name)
