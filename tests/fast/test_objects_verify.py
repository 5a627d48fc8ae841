"""Every check of `verify` has one mutation of a real cubin that yields exactly its finding."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.freshness import judge
from orchestrator.model import Evidence, Expectations, Finding, Kind, Link, State, Target
from orchestrator.objects.elf import Elf, Section, read_elf
from orchestrator.objects.stamp import read_stamps
from orchestrator.verify import observe_contents

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
RECIPE = "0123456789abcdef" * 4
TARGET = Target(
    name="sample",
    kind=Kind.CUBIN,
    sources=("sample.cu",),
    arch="sm_90",
    expect=Expectations(
        kernels=("hello", "add", "void add<float>(float*, float const*, int)", "spills"),
        symbols=("counter", "table"),
        archs=("sm_90",),
        no_spills=True,
        max_registers=24,
        max_code_bytes=3200,
        texts_present=("pin_abc", "/pin_[a-z]+ %d/"),
        texts_absent=("pin_xyz",),
    ),
)


def load(name: str) -> bytes:
    return (OBJECTS / name).read_bytes()


def put(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def section_of(data: bytes, name: str) -> tuple[Elf, Section]:
    elf = read_elf(data)
    section = elf.section(name)
    assert section is not None
    return elf, section


def rename_symbol(data: bytes, old: bytes, new: bytes) -> bytes:
    """In the table of symbol names alone, so that sections keep theirs."""
    elf, names = section_of(data, ".strtab")
    return put(data, names.offset + bytes(elf.body(names)).index(b"\0" + old + b"\0") + 1, new)


def unmark_spills(data: bytes) -> bytes:
    """The marks of spill instructions become an attribute that says nothing."""
    elf, info = section_of(data, ".nv.info.spills")
    at = bytes(elf.body(info)).index(b"\x04\x55")
    return put(data, info.offset + at, b"\x04\x5e")


def good() -> bytes:
    """sample.cu for sm_90, stamped, and without the spills that it has on purpose."""
    data = unmark_spills(load("sm_90.cubin"))
    (stamp,) = read_stamps(read_elf(data))
    return put(data, stamp.offset, RECIPE.encode())


def findings(data: bytes, target: Target = TARGET, arch: str | None = "sm_90") -> tuple[Finding, ...]:
    observations = observe_contents(data, target, f"sha256:{RECIPE}", arch)
    return judge(Evidence(target.name, frozenset({Link.CONTENTS}), observations)).findings


def with_arch(data: bytes) -> bytes:
    return put(data, 0x31, b"\x50")  # bits 8-15 of e_flags: 90 becomes 80


def with_registers(data: bytes) -> bytes:
    elf, info = section_of(data, ".nv.info")
    at = bytes(elf.body(info)).index(b"\x04\x2f\x08\x00")
    return put(data, info.offset + at + 8, struct.pack("<I", 25))


def with_spills(data: bytes) -> bytes:
    elf, info = section_of(data, ".nv.info.spills")
    at = bytes(elf.body(info)).index(b"\x04\x5e")
    return put(data, info.offset + at, b"\x04\x55")


def with_more_code(data: bytes) -> bytes:
    _elf, text = section_of(data, ".text.hello")
    headers = int.from_bytes(data[0x28:0x30], "little")
    return put(data, headers + 64 * text.number + 0x20, struct.pack("<Q", text.size + 128))


def with_text(data: bytes) -> bytes:
    _elf, constants = section_of(data, ".nv.constant3")
    return put(data, constants.offset, b"pin_xyz")


def with_stamp(data: bytes) -> bytes:
    (stamp,) = read_stamps(read_elf(data))
    return put(data, stamp.offset, b"f")


MUTATIONS: list[tuple[str, Callable[[bytes], bytes], str, str]] = [
    ("object-malformed", lambda data: data[:-1], "sample", "program headers"),
    ("kind-differs", lambda _data: load("none.fatbin"), "sample", "fatbin"),
    ("stamp-differs", with_stamp, "freshproof_stamp_sample", f"sha256:f{RECIPE[1:]}"),
    (
        "stamp-missing",
        lambda data: rename_symbol(data, b"freshproof_stamp_sample", b"freshproof_stamp_simple"),
        "freshproof_stamp_sample",
        "absent",
    ),
    ("kernel-missing", lambda data: rename_symbol(data, b"hello", b"jello"), "hello", "absent"),
    ("symbol-missing", lambda data: rename_symbol(data, b"counter", b"coumter"), "counter", "absent"),
    ("registers-over", with_registers, "void add<float>(float*, float const*, int)", "25 registers"),
    ("spills", with_spills, "spills", "64 spilled bytes"),
    ("code-too-large", with_more_code, "sample", "3328 bytes of code"),
    ("text-absent", lambda data: put(data, data.index(b"pin_abc"), b"pin_abd"), "pin_abc", "absent"),
    ("text-present", with_text, "pin_xyz", "present in .nv.constant3, table at byte 0x1088"),
]


@pytest.mark.parametrize(("code", "mutate", "subject", "observed"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_each_mutation_yields_exactly_its_finding(
    code: str, mutate: Callable[[bytes], bytes], subject: str, observed: str
) -> None:
    assert findings(good()) == ()
    (finding,) = findings(mutate(good()))
    assert (finding.code, finding.subject, finding.state) == (code, subject, State.STALE)
    assert finding.observed is not None
    assert observed in finding.observed
    assert finding.remedy


def test_another_architecture_than_was_built_for() -> None:
    target = replace(TARGET, expect=replace(TARGET.expect, archs=()))
    assert findings(good(), target) == ()
    (finding,) = findings(with_arch(good()), target)
    assert (finding.code, finding.recorded, finding.observed) == ("arch-differs", "sm_90", "sm_80")


def test_an_architecture_that_is_demanded_and_not_there() -> None:
    (finding,) = findings(with_arch(good()), arch=None)
    assert (finding.code, finding.recorded, finding.observed) == ("arch-missing", "sm_90", "sm_80")


def test_a_stamp_that_was_never_written() -> None:
    unstamped = unmark_spills(load("sm_90.cubin"))
    (finding,) = findings(unstamped)
    assert finding.code == "stamp-differs"
    assert finding.observed == "the placeholder: never stamped"


def test_the_placeholder_is_no_recipe() -> None:
    observations = observe_contents(unmark_spills(load("sm_90.cubin")), TARGET, f"sha256:{'0' * 64}", "sm_90")
    assert [o.code for o in observations if o.recorded != o.observed] == ["stamp-differs"]


def test_a_cubin_without_any_kernel() -> None:
    """T25: it must not pass for want of expectations."""
    bare = replace(TARGET, expect=Expectations())
    assert findings(good(), bare) == ()
    data = good()
    for name in (b"hello", b"calls", b"spills", b"_Z3addIfEvPT_PKS0_i"):
        data = rename_symbol(data, name, b"x" * len(name))
    (finding,) = findings(data, bare)
    assert (finding.code, finding.subject, finding.observed) == ("kernel-missing", "any kernel", "absent")


def demanding(kind: Kind, **expect: object) -> Target:
    return Target("sample", kind, ("sample.cu",), expect=Expectations(**expect))  # type: ignore[arg-type]


def codes(data: bytes, target: Target, arch: str | None) -> dict[str, str]:
    """Findings but for the stamp, which compressed entries cannot carry: code and observed value."""
    found = findings(data, target, arch)
    return {f.code: f.observed or "unknown" for f in found if not f.code.startswith("stamp-")}


def test_a_kernel_must_be_there_for_every_architecture() -> None:
    """Two containers after each other, as a linker leaves them."""
    kernel = demanding(Kind.FATBIN, kernels=("hello",))
    assert codes(load("none.fatbin") + load("lto.fatbin"), kernel, "sm_90") == {}
    raw = load("none.fatbin")
    cubin = load("sm_90.cubin")
    without = rename_symbol(cubin, b"hello", b"jello")
    one_lacks_it = put(raw, raw.index(cubin), without) + load("none.fatbin").replace(cubin, with_arch(cubin))
    found = codes(one_lacks_it, kernel, "sm_90")
    assert found == {"kernel-missing": "absent for sm_90"}


def test_only_ptx_is_no_machine_code() -> None:
    """T41: the driver would compile it, so that what runs depends on the driver."""
    data = load("none.fatbin")
    first = int.from_bytes(data[24:32], "little") + int.from_bytes(data[20:24], "little")
    header, rest = data[:16], data[16 + first :]
    only_ptx = header[:8] + struct.pack("<Q", len(rest)) + rest
    found = codes(only_ptx, demanding(Kind.FATBIN, kernels=("hello",), max_registers=40), "sm_90")
    assert found["arch-differs"].startswith("only PTX for sm_90")
    assert found["registers-over"] == "unknown"
    assert set(found) == {"arch-differs", "registers-over"}


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        (("-gencode", "arch=compute_90,code=sm_90", "-gencode=arch=compute_90,code=compute_90"), []),
        (("--generate-code=arch=compute_90,code=[sm_90,compute_90]",), []),
        (("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"), ["sm_80"]),
        (("-gencode", "arch=compute_80,code=[compute_80,sm_90]"), ["compute_80"]),
        (("-gencode", "code=sm_100a,arch=compute_100a"), ["sm_100a"]),
    ],
)
def test_architectures_that_flags_name_are_there(flags: tuple[str, ...], missing: list[str]) -> None:
    target = replace(demanding(Kind.FATBIN), flags=flags)
    found = findings(load("none.fatbin"), target, None)
    assert [(f.code, f.recorded) for f in found] == [("arch-differs", name) for name in missing]


def test_what_is_sealed_is_unproven_and_never_passed() -> None:
    target = demanding(Kind.FATBIN, kernels=("gone",), texts_absent=("pin_xyz",), texts_present=("pin_xyz",))
    states = {f.code: f.state for f in findings(load("lto.fatbin"), target, "sm_80") if "stamp" not in f.code}
    assert states == {
        "kernel-missing": State.UNPROVEN,
        "text-present": State.UNPROVEN,
        "text-absent": State.UNPROVEN,
    }


def test_a_text_in_a_compressed_entry_is_found() -> None:
    """T51."""
    found = codes(load("size.fatbin"), demanding(Kind.FATBIN, texts_absent=("pin_abc",)), "sm_90")
    assert found == {"text-present": "present in entry 1 (sm_90) .nv.global.init, $str at byte 0x1d84"}


def test_spills_of_an_older_toolkit_are_unknown() -> None:
    """Without marks, a kernel that uses the stack may spill or may have local arrays."""
    data = good()
    _elf, note = section_of(data, ".note.nv.cuinfo")
    at = data.index(struct.pack("<H", 130), note.offset + 20)
    older = put(data, at, struct.pack("<H", 128))
    (finding,) = findings(older)
    assert (finding.code, finding.state) == ("spills", State.UNPROVEN)


HOST = Target(
    "host",
    Kind.SHARED_LIBRARY,
    ("host.c",),
    expect=Expectations(symbols=("exported",), max_code_bytes=100, texts_absent=("pin_abc",)),
)


def test_a_host_library_and_its_mutations() -> None:
    data = load("host.so")
    (stamp,) = read_stamps(read_elf(data))
    good = put(data, stamp.offset, RECIPE.encode())
    assert findings(good, HOST, None) == ()
    mutations = {
        "stamp-differs": (put(good, stamp.offset, b"f"), HOST),
        "stamp-missing": (good.replace(b"freshproof_stamp_host\0", b"freshproof_stamp_hose\0"), HOST),
        "symbol-missing": (good.replace(b"\0exported\0", b"\0exposted\0"), HOST),
        "object-malformed": (good[:-1], HOST),
        "kind-differs": (good, replace(HOST, kind=Kind.EXECUTABLE)),
        "code-too-large": (good, replace(HOST, expect=replace(HOST.expect, max_code_bytes=1))),
        "text-present": (good.replace(b"$ORIGIN/lib", b"pin_abc/lib"), HOST),
    }
    found = {
        code: [f.code for f in findings(bytes_, target, None)] for code, (bytes_, target) in mutations.items()
    }
    assert found == {code: [code] for code in mutations}


def test_a_hidden_function_is_no_symbol_for_a_loader() -> None:
    target = replace(HOST, expect=Expectations(symbols=("exported", "hidden")))
    assert [f.subject for f in findings(load("host.so"), target, None) if "stamp" not in f.code] == ["hidden"]
