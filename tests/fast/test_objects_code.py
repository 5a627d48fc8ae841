"""Which kernels an edit touches, read off the machine code and the data it refers to."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from orchestrator.objects.code import read_code, stable_name
from orchestrator.objects.compare import Change, compare, hold
from orchestrator.objects.cubin import read_cubin
from orchestrator.objects.digests import device_digest, file_digest, normalised_digest, unstamped_digest
from orchestrator.objects.elf import read_elf
from orchestrator.objects.stamp import read_stamps

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
ADD = "_Z3addIfEvPT_PKS0_i"
EVERY = {ADD, "hello", "calls", "spills"}
CUBINS = ["sm_75.cubin", "sm_90.cubin", "sm_120a.cubin"]


def load(name: str) -> bytes:
    return (OBJECTS / name).read_bytes()


def put(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def changed(before: bytes, after: bytes) -> set[str]:
    """Functions whose digest differs."""
    old, new = read_code(read_cubin(before)).functions, read_code(read_cubin(after)).functions
    assert set(old) == set(new)
    return {name for name in old if old[name] != new[name]}


def symbol_offset(data: bytes, name: str) -> int:
    elf = read_elf(data)
    symbol = next(symbol for symbol in elf.symbols() if symbol.name == name)
    return elf.sections[symbol.section].offset + symbol.value


def stamped(data: bytes, digit: bytes) -> bytes:
    (stamp,) = read_stamps(read_elf(data))
    return put(data, stamp.offset, digit * 64)


@pytest.mark.parametrize("name", CUBINS)
def test_a_global_variable_touches_the_kernel_whose_callee_reads_it(name: str) -> None:
    """`.text` is the same: the reference goes through the table of addresses in bank 4. printf is looked up
    there with a register, so that `hello` may refer to anything in it."""
    data = load(name)
    edited = put(data, symbol_offset(data, "counter"), struct.pack("<i", 8))
    assert changed(data, edited) - {"hello"} == {"calls"}


@pytest.mark.parametrize("name", CUBINS)
def test_a_constant_touches_the_kernel_that_indexes_it(name: str) -> None:
    data = load(name)
    assert changed(data, put(data, symbol_offset(data, "table"), b"\x09")) == {ADD}


@pytest.mark.parametrize("name", CUBINS)
def test_a_string_touches_the_kernel_that_prints_it(name: str) -> None:
    data = load(name)
    assert changed(data, put(data, data.index(b"pin_abc"), b"pin_abd")) == {"hello"}


@pytest.mark.parametrize("name", CUBINS)
def test_a_stamp_touches_nothing(name: str) -> None:
    data = load(name)
    assert changed(data, stamped(data, b"7")) == set()
    assert device_digest(stamped(data, b"7")) == device_digest(data)
    assert unstamped_digest(stamped(data, b"7")) == file_digest(data)
    assert normalised_digest(stamped(data, b"7")) != normalised_digest(data)


def test_code_of_one_kernel() -> None:
    data = load("sm_90.cubin")
    elf = read_elf(data)
    text = elf.section(".text.hello")
    assert text is not None
    assert changed(data, put(data, text.offset + 64, b"\xff")) == {"hello"}


def test_resources_of_one_kernel() -> None:
    data = load("sm_90.cubin")
    elf = read_elf(data)
    info = elf.section(".nv.info." + ADD)
    assert info is not None
    at = bytes(elf.body(info)).index(b"\x04\x05\x0c\x00") + info.offset + 4
    assert changed(data, put(data, at, struct.pack("<I", 64))) == {ADD}  # __launch_bounds__


def test_a_callee_touches_its_callers() -> None:
    """Relocatable code: `calls` reaches `twice` through a relocation."""
    data = load("relocatable.cubin")
    elf = read_elf(data)
    text = elf.section(".text._Z5twicei")
    assert text is not None
    assert changed(data, put(data, text.offset + 128, b"\xff")) == {"_Z5twicei", "calls"}


def test_the_order_of_symbols_does_not_count() -> None:
    """Other symbols before them give the functions other numbers; here the table is turned round."""
    data = load("sm_90.cubin")
    elf = read_elf(data)
    table = elf.section(".symtab")
    assert table is not None
    old = read_code(read_cubin(data)).functions
    body = bytes(elf.body(table))
    rows = [body[at : at + 24] for at in range(0, len(body), 24)]
    by_number = {number: len(rows) - number for number in range(1, len(rows))}
    turned = put(data, table.offset, b"".join([rows[0], *reversed(rows[1:])]))
    for section in elf.sections:
        if section.name.startswith(".rela"):
            for at in range(section.offset + 8, section.offset + section.size, 24):
                kind, number = struct.unpack_from("<II", turned, at)
                turned = put(turned, at, struct.pack("<II", kind, by_number.get(number, number)))
        if section.name == ".nv.callgraph":
            for at in range(section.offset, section.offset + section.size, 4):
                (number,) = struct.unpack_from("<I", turned, at)
                turned = put(turned, at, struct.pack("<I", by_number.get(number, number)))
        if section.name.startswith(".nv.info"):
            turned = renumbered_items(turned, section.offset, section.size, by_number)
    assert read_code(read_cubin(turned)).functions == old


def renumbered_items(data: bytes, start: int, size: int, by_number: dict[int, int]) -> bytes:
    at = start
    while at < start + size:
        form, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if attribute in (0x0A, 0x0F, 0x11, 0x12, 0x23, 0x2F):
                (number,) = struct.unpack_from("<I", data, at)
                data = put(data, at, struct.pack("<I", by_number.get(number, number)))
            at += length
    return data


def test_names_with_the_hash_of_a_path_are_compared_without_it() -> None:
    assert stable_name("_ZN34_INTERNAL_c320ac11_4_k_cu_f934bb739atomicAddEPii") == (
        "_ZN34_INTERNAL_4_k_cu9atomicAddEPii"
    )


@pytest.mark.parametrize("name", ["none.fatbin", "speed.fatbin", "size.fatbin"])
def test_the_device_digest_does_not_depend_on_compression(name: str) -> None:
    """PTX counts with its code alone: comments and the compiler's build do not."""
    assert device_digest(load(name)) == device_digest(load("none.fatbin"))
    assert normalised_digest(load(name)) != normalised_digest(load("lto.fatbin"))


def test_temporary_names_are_noise_and_other_names_are_not() -> None:
    data = load("rdc.o")
    elf = read_elf(data)
    strings = elf.section(".strtab")
    assert strings is not None
    name = b"sample.cudafe1.cpp"
    at = bytes(elf.body(strings)).index(name) + strings.offset
    assert normalised_digest(put(data, at, b"semple")) != normalised_digest(data)
    comment = elf.section(".comment")
    assert comment is not None
    noisy = [put(data, comment.offset, b"tmpxft_%08x_00000000" % pid) for pid in (0x1234, 0xABCD)]
    assert file_digest(noisy[0]) != file_digest(noisy[1])
    assert normalised_digest(noisy[0]) == normalised_digest(noisy[1])


def test_comparison_of_two_builds() -> None:
    before = load("sm_90.cubin")
    after = put(before, before.index(b"pin_abc"), b"pin_abd")
    difference = compare(hold(before), hold(after))
    assert not difference.same
    assert {c.name: c.change for c in difference.kernels if c.change is not Change.SAME} == {
        "hello": Change.CHANGED
    }
    (hello,) = [c for c in difference.kernels if c.name == "hello"]
    assert hello.reasons == ("data it refers to",)
    assert difference.texts_removed == ("pin_abc %d\n",)
    assert difference.texts_added == ("pin_abd %d\n",)


def test_builds_that_differ_in_the_stamp_alone() -> None:
    """T52: two variants with the same machine code."""
    one, two = stamped(load("sm_90.cubin"), b"1"), stamped(load("sm_90.cubin"), b"2")
    difference = compare(hold(one), hold(two))
    assert (difference.same, difference.only_stamps) == (False, True)
    assert {change.change for change in difference.kernels} == {Change.SAME}
    assert difference.stamps == (("freshproof_stamp_sample", f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"),)


def test_kernels_that_came_and_went() -> None:
    difference = compare(hold(load("sm_75.cubin")), hold(load("sm_90.cubin")))
    assert {(c.arch, c.change) for c in difference.kernels} == {
        ("sm_75", Change.REMOVED),
        ("sm_90", Change.ADDED),
    }
    assert {c.name for c in difference.kernels} == EVERY
