"""Damaged and hostile files: a typed error with a byte, in bounded memory and time."""

from __future__ import annotations

import importlib.util
import random
import struct
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ConfigurationError
from orchestrator.objects import fatbin
from orchestrator.objects.archive import MAGIC, THIN_MAGIC, read_members
from orchestrator.objects.contents import walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.elf import read_elf
from orchestrator.objects.ptx import entry_bodies, ptx_strings, read_ptx, without_comments
from orchestrator.objects.summary import summarize
from orchestrator.objects.window import Allowance, Malformed

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "tests" / "data" / "objects"
MIB = 1 << 20


def load(name: str) -> bytes:
    return (OBJECTS / name).read_bytes()


def put(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def fuzzer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_readers", ROOT / "benchmarks" / "fuzz_readers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_readers"] = module
    spec.loader.exec_module(module)
    return module


FUZZ = fuzzer()


@pytest.mark.parametrize("name", sorted(FUZZ.READERS))
def test_mutated_objects_end_in_a_value_or_in_malformed(name: str) -> None:
    reader, samples = FUZZ.READERS[name]
    count = 60 if name in ("digests", "code", "contents", "traces", "devicelink") else 250
    for data in FUZZ.inputs(samples(), count, seed=random.randrange(1 << 30)):
        try:
            reader(data)
        except Malformed as fault:
            assert fault.offset >= 0
            assert fault.fault
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}; input {data.hex()}") from error


@given(st.binary(max_size=300), st.sampled_from(sorted(FUZZ.READERS)))
@settings(max_examples=300, deadline=None)
def test_any_bytes_end_in_a_value_or_in_malformed(data: bytes, name: str) -> None:
    reader, _samples = FUZZ.READERS[name]
    with suppress(Malformed):
        reader(data)


@pytest.mark.parametrize("name", ["sm_90.cubin", "none.fatbin", "size.fatbin", "rdc.o"])
def test_truncation_anywhere_is_noticed(name: str) -> None:
    data = load(name)
    for end in {*range(1, 64), *range(64, len(data), 97), len(data) - 1}:
        with pytest.raises(Malformed):
            list(summarize(data[:end]))


def test_an_error_names_place_and_byte_and_is_a_wrong_input() -> None:
    data = load("rdc.o")
    section = read_elf(data).section("__nv_relfatbin")
    assert section is not None
    with pytest.raises(Malformed) as caught:
        list(walk(put(data, section.offset + 16 + 64 + 32, b"\xff\xff")))  # inside the zstd payload
    assert isinstance(caught.value, ConfigurationError)
    assert "section __nv_relfatbin" in caught.value.what
    assert caught.value.offset >= section.offset
    assert f"(byte 0x{caught.value.offset:x})" in caught.value.what


def test_nothing_known_is_no_cuda_file() -> None:
    for data in (b"", b"\x7fELF", b"MZ\x90\0", b"int main() {}", b"\0" * 4096):
        with pytest.raises(Malformed):
            list(walk(data))


def bounded(action: Callable[[], object], most: int) -> None:
    """The action ends in `Malformed` or a value and allocates at most ``most`` bytes at a time."""
    tracemalloc.start()
    try:
        action()
    except Malformed:
        pass
    finally:
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak <= most, f"{peak} bytes"


def elf_file(sections: list[tuple[int, int, int, int]], body: bytes) -> bytes:
    """An ELF file: headers of (name, type, offset, size), the last one for the names; then ``body``."""
    start = 64 + len(body)
    header = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    count = len(sections)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, start, 0x5A00, 64, 0, 0, 64, count, count - 1)
    rows = [struct.pack("<IIQQQQIIQQ", n, kind, 0, 0, at, size, 0, 0, 1, 0) for n, kind, at, size in sections]
    return header + body + b"".join(rows)


def test_overlapping_sections_cannot_multiply_the_work() -> None:
    """1,000 sections that each are the whole file would be read 1,000 times."""
    body = b"\0.text\0" + bytes(MIB)
    data = elf_file([(1, 1, 64, MIB)] * 1000 + [(0, 3, 64, 7)], body)
    with pytest.raises(Malformed, match="overlap"):
        read_elf(data)


def test_overlapping_names_cannot_multiply_the_text() -> None:
    """Each section's name is a tail of one long name: 2,000 names of 60,000 bytes."""
    names = b"\0" + b"a" * 60_000 + b"\0"
    data = elf_file([(1 + n, 8, 64, 0) for n in range(2000)] + [(0, 3, 64, len(names))], names)
    bounded(lambda: read_elf(data), 16 * MIB)
    with pytest.raises(Malformed, match="overlap without end"):
        read_elf(data)


def test_more_sections_than_there_are_bytes() -> None:
    data = put(load("sm_90.cubin"), 0x3C, struct.pack("<H", 0xFFFF))
    bounded(lambda: read_cubin(data), 4 * MIB)
    with pytest.raises(Malformed, match="65535 section headers"):
        read_cubin(data)


def entry(payload: bytes, claimed: int, flags: int) -> bytes:
    padded = payload + bytes(-len(payload) % 8)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(padded), len(payload), 0, 8, 1, 90, 0, 0, flags, 0, claimed
    )
    return head + padded


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return fatbin.MAGIC_AND_VERSION + struct.pack("<Q", len(body)) + body


ZSTD, LZ4 = 0x8011, 0x2011


@pytest.mark.parametrize("claimed", [1 << 30, 1 << 40, 1 << 63])
@pytest.mark.parametrize("flags", [ZSTD, LZ4])
def test_a_bomb_is_refused_before_anything_is_allocated(claimed: int, flags: int) -> None:
    data = container(entry(b"\x28\xb5\x2f\xfd" + bytes(60), claimed, flags))
    bounded(lambda: list(walk(data)), MIB)
    with pytest.raises(Malformed, match="would unfold"):
        list(walk(data))


def test_a_real_zstd_bomb_is_refused() -> None:
    """32 MiB of zeros pack into a few KiB; all entries share one allowance."""
    payload = zstandard.compress(bytes(32 * MIB))
    data = container(*[entry(payload, 32 * MIB, ZSTD)] * 20)

    def read() -> None:
        allowance = Allowance(len(data))
        for one in fatbin.read_entries(data):
            fatbin.unpack(one, allowance)

    bounded(read, 80 * MIB)
    with pytest.raises(Malformed, match="would unfold"):
        read()


def test_a_frame_that_claims_more_than_its_entry() -> None:
    """The library would allocate what the frame says."""
    payload = zstandard.compress(bytes(32 * MIB))
    data = container(entry(payload, 1024, ZSTD))
    bounded(lambda: list(walk(data)), MIB)
    with pytest.raises(Malformed, match="its frame says"):
        list(walk(data))


@pytest.mark.parametrize("claimed", [0, 1, 4095, 4097])
def test_a_size_that_is_not_that_of_the_payload(claimed: int) -> None:
    payload = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(4096))
    with pytest.raises(Malformed):
        list(walk(container(entry(payload, claimed, ZSTD))))


def test_an_entry_of_no_size_does_not_stop_the_reader_for_ever() -> None:
    data = container(entry(b"", 0, 0x11), entry(b"", 0, 0x11))
    assert len(list(fatbin.read_entries(data))) == 2
    headless = put(data, 16 + 4, struct.pack("<I", 0))
    with pytest.raises(Malformed, match="header of 0 bytes"):
        list(fatbin.read_entries(headless))


def member(name: bytes, body: bytes, size: int | None = None) -> bytes:
    """One member of an archive, whose header may lie about its size."""
    told = len(body) if size is None else size
    return b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", told) + body + b"\n" * (len(body) % 2)


@pytest.mark.parametrize(
    ("archive", "fault"),
    [
        (MAGIC + member(b"a.o/", b"abcd", size=5000), "does not fit"),
        (MAGIC + member(b"a.o/", b"abcd").replace(b"`\n", b"``"), "does not end in"),
        (MAGIC + member(b"a.o/", b"abcd").replace(b"4         `", b"-4        `"), "not a number"),
        (MAGIC + member(b"/7", b"abcd"), "without a table of long names"),
        (MAGIC + member(b"//", b"x.o/\n") + member(b"/99", b"abcd"), "lies outside"),
        (MAGIC + member(b"#1/99", b"abcd"), "is called"),
        (MAGIC + b"a.o/", "header of an archive member"),
    ],
)
def test_archives_that_lie(archive: bytes, fault: str) -> None:
    with pytest.raises(Malformed, match=fault):
        list(read_members(archive))


def test_archives_nested_without_end() -> None:
    data = MAGIC + member(b"a.o/", load("rdc.o"))
    for _ in range(8):
        data = MAGIC + member(b"inner.a/", data)
    with pytest.raises(Malformed, match="nested"):
        list(walk(data))


def test_a_thin_archive_that_names_itself() -> None:
    """Its members are files; the archive is the file, again and again."""
    names = b"self.a/\n"
    archive = THIN_MAGIC + member(b"//", names) + b"".join(member(b"/0", b"") for _ in range(50))
    pieces = list(walk(archive, lambda _name: archive))
    assert len(pieces) <= 1 + 50 + 50 * 50
    assert any("not at hand" in piece.sealed for piece in pieces)


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 200_000,
        "//" * 200_000,
        ".entry x " * 50_000,
        ".version 9.0\n.target " + " " * 300_000,
        ".version 9.0\n.target sm_90\n.address_size 64\n" + ".entry a(" * 50_000,
        ".b8 a[1] = {" + "1," * 200_000,
        ".b8 " * 100_000,
        ".maxntid 1" + " " * 300_000,
        ".maxntid " + "1," * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_ptx_text_that_would_be_read_again_and_again(text: str) -> None:
    """Quadratic readers would take minutes; the test's own limit is that of the suite."""
    data = text.encode()
    readers: list[Callable[[bytes], object]] = [read_ptx, ptx_strings, entry_bodies, without_comments]
    for reader in readers:
        with suppress(Malformed):
            reader(data)


def test_a_spill_marked_outside_of_the_code() -> None:
    data = load("sm_90.cubin")
    elf = read_elf(data)
    info = elf.section(".nv.info.spills")
    assert info is not None
    at = bytes(elf.body(info)).index(b"\x04\x55") + info.offset + 4
    with pytest.raises(Malformed, match="outside of"):
        read_cubin(put(data, at + 4, struct.pack("<I", 1 << 20)))


def test_a_stamp_that_holds_none() -> None:
    data = load("sm_90.cubin")
    with pytest.raises(Malformed, match="does not hold a stamp"):
        read_cubin(put(data, data.index(b"freshproof:"), b"freshprooF:"))


def test_numbers_run_together_in_a_string_of_ptx() -> None:
    """Found by fuzzing: ``1015 1144`` where a comma is missing."""
    assert ptx_strings(b".b8 a[3] = {65, 1015 66, 67};") == [("a", b"A\xf7BC")]


def test_ptx_without_kernels() -> None:
    """Found by fuzzing."""
    assert entry_bodies(b".version 9.0\n.target sm_90\n.address_size 64\n") == {}


def test_a_function_in_a_section_that_is_not_there() -> None:
    """Found by fuzzing."""
    data = load("sm_90.cubin")
    elf = read_elf(data)
    table = elf.section(".symtab")
    assert table is not None
    number = next(n for n, symbol in enumerate(elf.symbols()) if symbol.name == "$calls$_Z5twicei")
    with pytest.raises(Malformed, match="lies in section 200"):
        read_cubin(put(data, table.offset + 24 * number + 6, struct.pack("<H", 200)))
