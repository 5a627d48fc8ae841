"""The readers say what ptxas, nvlink and pyelftools say of small objects that nvcc 13.0 made
(tests/data/objects).
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from orchestrator.objects.archive import MAGIC, THIN_MAGIC, read_members
from orchestrator.objects.contents import Form, walk
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.demangle import demangle
from orchestrator.objects.dynamic import read_dynamic
from orchestrator.objects.elf import SHT_NOBITS, read_elf
from orchestrator.objects.function import Parameter
from orchestrator.objects.ptx import ptx_strings, read_ptx
from orchestrator.objects.registration import read_registrations
from orchestrator.objects.search import search, text_pattern
from orchestrator.objects.stamp import PLACEHOLDER, read_stamps

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
ADD = "_Z3addIfEvPT_PKS0_i"


def load(name: str) -> bytes:
    return (OBJECTS / name).read_bytes()


@pytest.mark.parametrize(
    "name", ["sm_75.cubin", "sm_90.cubin", "sm_120a.cubin", "relocatable.cubin", "rdc.o"]
)
def test_sections_and_symbols_are_those_that_pyelftools_reads(name: str) -> None:
    data = load(name)
    ours, theirs = read_elf(data), ELFFile(io.BytesIO(data))
    expected = list(theirs.iter_sections())
    assert [s.name for s in ours.sections] == [s.name for s in expected]
    for mine, other in zip(ours.sections, expected, strict=True):
        assert (mine.offset, mine.size) == (other["sh_offset"], other["sh_size"])
        if mine.type != SHT_NOBITS and mine.number:
            assert bytes(ours.body(mine)) == other.data()
    table = theirs.get_section_by_name(".symtab")
    symbols = [(s.name, s["st_value"], s["st_size"]) for s in table.iter_symbols()]
    # pyelftools names section symbols after their section
    assert [(s.value, s.size) for s in ours.symbols()] == [(value, size) for _name, value, size in symbols]
    named = [(s.name, other[0]) for s, other in zip(ours.symbols(), symbols, strict=True) if s.type != 3]
    assert all(mine == other for mine, other in named)


@pytest.mark.parametrize(
    ("name", "arch"), [("sm_75.cubin", "sm_75"), ("sm_90.cubin", "sm_90"), ("sm_120a.cubin", "sm_120a")]
)
def test_architecture_with_its_letter(name: str, arch: str) -> None:
    cubin = read_cubin(load(name))
    assert (cubin.arch, cubin.toolkit, cubin.relocatable) == (arch, 130, False)
    assert cubin.tools[0].name == "ptxas"
    assert "V13.0.88" in cubin.tools[0].version
    assert f"-arch {arch}" in cubin.tools[0].options


def test_what_ptxas_said_of_each_kernel() -> None:
    """The numbers are those that ``nvcc -Xptxas -v`` printed for sample.cu and sm_90."""
    kernels = {kernel.name: kernel for kernel in read_cubin(load("sm_90.cubin")).kernels}
    assert set(kernels) == {ADD, "hello", "calls", "spills"}
    assert {name: k.registers for name, k in kernels.items()} == {
        ADD: 12,
        "hello": 24,
        "calls": 10,
        "spills": 24,
    }
    spills = kernels["spills"]
    assert (spills.spill_stores, spills.spill_loads, spills.frame) == (32, 32, 40)
    assert spills.max_registers == 24
    assert kernels["hello"].spill_stores == 0
    assert kernels["hello"].frame == 8  # arguments of printf, no spills
    add = kernels[ADD]
    assert add.max_threads == (128, 1, 1)
    assert add.shared == 512 + 1024  # from sm_90 on, 1024 bytes are the driver's
    assert add.barriers == 1
    assert add.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 8), Parameter(2, 16, 4))
    assert add.demangled == "void add<float>(float*, float const*, int)"


def test_relocatable_code_has_its_device_functions() -> None:
    cubin = read_cubin(load("relocatable.cubin"))
    assert cubin.relocatable
    assert {f.name for f in cubin.functions if not f.kernel} == {"_Z5twicei"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none.fatbin", [(Form.CUBIN, "sm_90", "raw"), (Form.PTX, "compute_90", "raw")]),
        ("speed.fatbin", [(Form.CUBIN, "sm_90", "raw"), (Form.PTX, "compute_90", "lz4")]),
        ("size.fatbin", [(Form.CUBIN, "sm_90", "zstd"), (Form.PTX, "compute_90", "zstd")]),
        ("lto.fatbin", [(Form.LTO_IR, "lto_90", "zstd"), (Form.CUBIN, "sm_80", "raw")]),
        ("rdc.o", [(Form.CUBIN, "sm_90", "zstd"), (Form.PTX, "compute_90", "zstd")]),
    ],
)
def test_entries_of_fat_binaries(name: str, expected: list[tuple[Form, str, str]]) -> None:
    entries = list(walk(load(name)))[1:]
    assert [(piece.form, piece.arch, piece.compression) for piece in entries] == expected


def test_compression_changes_nothing_of_what_is_inside() -> None:
    inside = [[bytes(piece.data) for piece in walk(load(f"{mode}.fatbin"))][1:] for mode in ("none", "size")]
    assert inside[0][0] == inside[1][0] == load("sm_90.cubin")
    assert read_ptx(inside[0][1]) == read_ptx(inside[1][1])


def test_lto_ir_is_sealed_and_its_architecture_known() -> None:
    (piece,) = walk(load("sample.ltoir"))
    assert (piece.form, piece.arch) == (Form.LTO_IR, "lto_90")
    assert piece.sealed


def test_ptx_text() -> None:
    ptx = read_ptx(load("sample.ptx"))
    assert (ptx.version, ptx.target, ptx.address_size) == ("9.0", "sm_90", 64)
    entries = {entry.name: entry for entry in ptx.entries}
    assert set(entries) == {ADD, "hello", "calls", "spills"}
    assert (entries[ADD].max_threads, entries[ADD].min_blocks) == ((128, 1, 1), 2)
    assert entries["spills"].max_registers == 24
    assert entries["hello"].max_threads is None
    assert ("$str", b"pin_abc %d\n") in ptx_strings(load("sample.ptx"))


@pytest.mark.parametrize("name", ["sm_90.cubin", "relocatable.cubin"])
def test_the_stamp_lies_where_its_offset_says(name: str) -> None:
    data = load(name)
    (stamp,) = read_stamps(read_elf(data))
    assert stamp.symbol == "freshproof_stamp_sample"
    assert not stamp.written
    digits = hashlib.sha256(b"recipe").hexdigest()
    written = data[: stamp.offset] + digits.encode() + data[stamp.offset + len(PLACEHOLDER) :]
    (read_again,) = read_stamps(read_elf(written))
    assert (read_again.written, read_again.digest) == (True, f"sha256:{digits}")


def member(name: bytes, body: bytes, size: int | None = None) -> bytes:
    header = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", len(body) if size is None else size)
    return header + body + b"\n" * (len(body) % 2)


def test_gnu_archive_with_long_names_and_symbol_index() -> None:
    long_name = b"a_name_longer_than_sixteen_characters.o"
    archive = (
        MAGIC
        + member(b"/", b"\0\0\0\0")
        + member(b"//", long_name + b"/\n")
        + member(b"short.o/", b"odd")
        + member(b"/0", load("rdc.o"))
    )
    members = list(read_members(archive))
    assert [m.name for m in members] == ["short.o", long_name.decode()]
    assert [bytes(m.data or b"") for m in members] == [b"odd", load("rdc.o")]
    places = [piece.place for piece in walk(archive) if piece.form is Form.CUBIN]
    assert places == [f"({long_name.decode()}) __nv_relfatbin entry 1 (sm_90)"]


def test_bsd_archive() -> None:
    name = b"member with spaces.cubin"
    body = name + load("sm_75.cubin")
    archive = MAGIC + member(b"#1/20", b"__.SYMDEF SORTED\0\0\0\0abcd") + member(b"#1/%d" % len(name), body)
    (only,) = read_members(archive)
    assert only.name == name.decode()
    assert bytes(only.data or b"") == load("sm_75.cubin")


def test_thin_archive_reads_its_members_elsewhere() -> None:
    archive = THIN_MAGIC + member(b"//", b"folder/rdc.o/\n") + member(b"/0", b"", size=len(load("rdc.o")))
    asked = []

    def open_member(name: str) -> bytes:
        asked.append(name)
        return load("rdc.o")

    forms = [piece.form for piece in walk(archive, open_member)]
    assert forms == [Form.ARCHIVE, Form.OBJECT, Form.CUBIN, Form.PTX]
    assert asked == ["folder/rdc.o"]
    alone = list(walk(archive))
    assert alone[1].sealed
    assert alone[1].place == "(folder/rdc.o)"


@pytest.mark.parametrize("name", ["none.fatbin", "speed.fatbin", "size.fatbin", "rdc.o", "sample.ptx"])
def test_text_is_found_behind_every_compression(name: str) -> None:
    found = search(load(name), text_pattern("pin_abc"))
    assert found.hits
    assert not found.sealed
    assert any("$str" in hit.place for hit in found.hits)
    assert all(hit.excerpt.startswith("pin_abc %d") for hit in found.hits)


def test_a_text_is_reported_once_for_each_place() -> None:
    """A raw entry is part of its container's bytes, and yet one place."""
    (hit,) = search(load("none.fatbin"), text_pattern("/pin_[a-c]+/")).hits[:1]
    assert hit.place == "entry 1 (sm_90) .nv.global.init, $str"
    cubin_hits = [h for h in search(load("none.fatbin"), text_pattern("pin_abc")).hits if "sm_90" in h.place]
    assert len(cubin_hits) == 1


def test_the_text_shown_ends_where_its_symbol_ends() -> None:
    """The neighbour's bytes may be printable by chance."""
    data = load("sm_90.cubin")
    hit = search(data, text_pattern("pin_abc")).hits[0]
    before = data[: hit.offset - 1] + b"A" + data[hit.offset :]
    assert search(before, text_pattern("pin_abc")).hits[0].excerpt.startswith("pin_abc")


def test_absence_is_not_claimed_of_what_cannot_be_read() -> None:
    found = search(load("lto.fatbin"), text_pattern("nowhere"))
    assert not found.hits
    assert found.sealed == ("entry 1 (lto_90) (its body is obfuscated)",)


def renamed_section(data: bytes, old: bytes, new: bytes) -> bytes:
    """The ELF file with a section called otherwise; both names have the same length."""
    elf = read_elf(data)
    strings = elf.sections[int.from_bytes(data[0x3E:0x40], "little")]
    at = bytes(elf.body(strings)).index(old + b"\0") + strings.offset
    return data[:at] + new + data[at + len(old) :]


def test_containers_in_plain_data_are_found() -> None:
    """As bin2c puts them there: the program loads them itself."""
    carrier = renamed_section(load("rdc.o"), b"__nv_relfatbin", b".rodata.carrier"[:14])
    places = [piece.place for piece in walk(carrier) if piece.form is Form.CUBIN]
    assert places == [".rodata.carrie+0x0 entry 1 (sm_90)"]


def test_what_only_looks_like_a_container_is_reported_as_sealed() -> None:
    carrier = renamed_section(load("rdc.o"), b"__nv_relfatbin", b".rodata.carrie")
    section = next(s for s in read_elf(carrier).sections if s.name == ".rodata.carrie")
    broken = bytearray(carrier)
    broken[section.offset + 8 : section.offset + 16] = b"\xff" * 8  # its size
    (piece,) = list(walk(bytes(broken)))[1:]
    assert "looks like CUDA code" in piece.sealed


def test_demangling() -> None:
    assert demangle("_Z5twicei") == "twice(int)"
    assert demangle("plain_c_name") == "plain_c_name"
    assert demangle("_Znot_a_mangled_name") == "_Znot_a_mangled_name"


def test_what_a_library_asks_of_the_loader() -> None:
    dynamic = read_dynamic(read_elf(load("host.so")))
    assert dynamic is not None
    assert dynamic.soname == "libhost.so.1"
    assert (dynamic.rpath, dynamic.runpath) == ((), ("$ORIGIN/lib", "/opt/lib"))
    assert not dynamic.is_program
    assert read_dynamic(read_elf(load("sm_90.cubin"))) is None


def test_an_object_registers_its_container() -> None:
    data = load("rdc.o")
    ((version, container),) = read_registrations(read_elf(data))
    assert version == 1
    assert container is not None
    assert data[container : container + 4] == b"\x50\xed\x55\xba"
