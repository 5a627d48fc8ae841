"""inspect and diff as a user meets them: what they say, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli import cli
from orchestrator.errors import AnswerIsNo, ConfigurationError, FreshproofError, Undecided
from orchestrator.objects.digests import file_digest
from orchestrator.objects.elf import read_elf
from orchestrator.objects.search import search, text_pattern
from orchestrator.objects.stamp import read_stamps

OBJECTS = Path(__file__).parents[1] / "data" / "objects"


def invoke(*arguments: object) -> tuple[object, str]:
    """The command's own answer and what it printed; typed errors come through."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def written(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_inspect_shows_every_kernel_with_its_measures() -> None:
    _code, shown = invoke("inspect", OBJECTS / "sm_90.cubin")
    assert "\x1b" not in shown
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("spills ")]
    assert row == ["spills", "sm_90", "24", "32/32", "40", "40", "0", "536", "24", "1,664"]
    assert "void add<float>(float*, float const*, int)" in shown
    assert "ptxas V13.0.88 -arch sm_90 -m 64" in shown
    assert "not written: the placeholder" in shown


def columns(shown: str, kernel: str) -> dict[str, str]:
    """The cells of one kernel's row by their headers, which are aligned to the right but for two."""
    lines = shown.splitlines()
    (head,) = [line for line in lines if line.startswith("Kernel ")]
    (row,) = [line for line in lines if line.startswith(kernel)]
    headers = ["Threads", "Min blocks", "Register limit"]
    return {name: row[head.index(name) : head.index(name) + len(name)].strip() for name in headers}


def test_least_number_of_blocks_is_told_where_a_file_holds_it() -> None:
    """``__launch_bounds__(128, 2)``: a cubin has the threads alone, PTX both."""
    expected = {"Threads": "128", "Min blocks": "?", "Register limit": ""}
    assert columns(invoke("inspect", OBJECTS / "sm_90.cubin")[1], "void add") == expected
    expected["Min blocks"] = "2"
    for name in ("none.fatbin", "sample.ptx"):
        shown = invoke("inspect", OBJECTS / name)[1]
        assert columns(shown, "void add") == expected
        assert columns(shown, "spills") == {"Threads": "", "Min blocks": "", "Register limit": "24"}


def test_inspect_says_what_needs_another_compile() -> None:
    assert (
        "PTX only: the driver compiles it when it is loaded" in invoke("inspect", OBJECTS / "sample.ptx")[1]
    )
    shown = invoke("inspect", OBJECTS / "sample.ltoir")[1]
    assert "no machine code: the device link makes it" in shown
    assert "its body is obfuscated" in shown
    assert "no device code" in invoke("inspect", OBJECTS / "host.so")[1]


def test_inspect_as_json() -> None:
    _code, shown = invoke("inspect", "--json", "--digests", "--texts", OBJECTS / "size.fatbin")
    (file,) = json.loads(shown)["files"]
    assert file["form"] == "fatbin"
    assert file["digests"]["file"] == file_digest((OBJECTS / "size.fatbin").read_bytes())
    assert set(file["digests"]) == {"file", "normalised", "unstamped", "device"}
    assert [(p["form"], p["arch"], p["compression"]) for p in file["pieces"][1:]] == [
        ("cubin", "sm_90", "zstd"),
        ("ptx", "compute_90", "zstd"),
    ]
    kernels = {f["demangled"]: f["registers"] for f in file["pieces"][1]["functions"]}
    assert kernels["void add<float>(float*, float const*, int)"] == 12
    assert "pin_abc %d\n" in file["texts"]


def test_find() -> None:
    _code, shown = invoke("inspect", "--find", "pin_abc", OBJECTS / "size.fatbin", OBJECTS / "none.fatbin")
    assert shown.count("$str") == 4
    assert "entry 1 (sm_90) .nv.global.init, $str at byte 0x1d84 of that part: 'pin_abc %d" in shown
    with pytest.raises(AnswerIsNo, match="'pin_xyz' is not in"):
        invoke("inspect", "--find", "pin_xyz", OBJECTS / "none.fatbin")
    with pytest.raises(Undecided, match="obfuscated"):
        invoke("inspect", "--find", "pin_xyz", OBJECTS / "none.fatbin", OBJECTS / "lto.fatbin")
    with pytest.raises(ConfigurationError, match="no regular expression"):
        invoke("inspect", "--find", "/(/", OBJECTS / "none.fatbin")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("add<float>", 5),
        ("/^void add<float>\\(.*int\\)$/", 5),
        ("_Z3addIfEvPT_PKS0_i", 0),
        ("add<double>", None),
    ],
)
def test_find_in_names_as_the_source_spells_them(text: str, places: int | None) -> None:
    """The mangled name is found in the bytes; a name is not told twice for one place."""
    if places is None:
        with pytest.raises(AnswerIsNo):
            invoke("inspect", "--find", text, OBJECTS / "none.fatbin")
        return
    _code, shown = invoke("inspect", "--find", text, OBJECTS / "none.fatbin", OBJECTS / "rdc.o")
    told = [line for line in shown.splitlines() if "name _Z3addIfEvPT_PKS0_i" in line]
    assert len(told) == places
    assert all("'void add<float>(float*, float const*, int)'" in line for line in told)
    assert shown


@pytest.mark.parametrize("text", ["", "//", "/a*/", r"/\b/", "/(?=p)/"])
def test_find_of_nothing_is_a_wrong_word(text: str) -> None:
    with pytest.raises(ConfigurationError, match="empty text"):
        invoke("inspect", "--find", text, OBJECTS / "sm_90.cubin")


@pytest.mark.parametrize("command", [["inspect", ""], ["diff", "", "x"], ["audit", ""]])
def test_an_empty_word_is_no_file(command: list[str]) -> None:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2
    assert "an empty word is no name of a file" in result.stderr


def test_find_in_a_damaged_file_is_no_answer(tmp_path: Path) -> None:
    """Though nothing of the text is in its bytes."""
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    cut = written(tmp_path, "cut.cubin", data[: len(data) // 2])
    with pytest.raises(ConfigurationError, match="byte 0x"):
        invoke("inspect", "--find", "nowhere", cut)


def test_find_gives_up_on_an_expression_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.objects.search._SECONDS", 0.05)
    data = (OBJECTS / "sm_90.cubin").read_bytes() + b"0" * 3000
    with pytest.raises(ConfigurationError, match="took more than"):
        search(data, text_pattern("/(0|0)*[#!]x?/"))


def test_diff(tmp_path: Path) -> None:
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    before = written(tmp_path, "before", data)
    assert invoke("diff", before, before) == (0, "identical, byte by byte\n")
    after = written(tmp_path, "after", data.replace(b"pin_abc", b"pin_abd"))
    code, shown = invoke("diff", before, after)
    assert code == 1
    assert shown.splitlines()[-1] == "1 of 4 kernels changed"
    assert "- 'pin_abc %d\\n'" in shown
    assert "+ 'pin_abd %d\\n'" in shown
    assert [line.split()[0] for line in shown.splitlines() if "data it refers to" in line] == ["hello"]


def test_diff_says_resources_with_their_values(tmp_path: Path) -> None:
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    elf = read_elf(data)
    more = bytearray(data)
    changes: list[tuple[str, bytes, int | None]] = [
        (".nv.info", b"\x04\x2f\x08\x00", 36),  # registers of the first function noted: add
        (".nv.info._Z3addIfEvPT_PKS0_i", b"\x04\x05\x0c\x00", 64),  # its launch bounds
        (".nv.info.spills", b"\x04\x55", None),  # the marks of spills
    ]
    for section, attribute, value in changes:
        info = elf.section(section)
        assert info is not None
        at = info.offset + bytes(elf.body(info)).index(attribute)
        if value is None:
            more[at + 1] = 0x5E
        else:
            more[at + (8 if section == ".nv.info" else 4)] = value
    after = written(tmp_path, "after", bytes(more))
    code, shown = invoke("diff", OBJECTS / "sm_90.cubin", after)
    why = {line.split()[0]: line for line in shown.splitlines() if " changed " in line}
    assert code == 1
    assert why["void"].endswith("registers 12 -> 36, threads 128x1x1 -> 64x1x1")
    assert why["spills"].endswith("spills 32/32 -> 0 B")


def test_diff_of_builds_that_differ_in_the_stamp(tmp_path: Path) -> None:
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    (stamp,) = read_stamps(read_elf(data))
    other = data[: stamp.offset] + b"7" * 64 + data[stamp.offset + 64 :]
    code, shown = invoke("diff", written(tmp_path, "a", data), written(tmp_path, "b", other))
    assert code == 1
    assert shown.splitlines()[-1] == "0 of 4 kernels changed; only stamps differ"


def test_diff_says_what_differs_where_kernels_do_not(tmp_path: Path) -> None:
    """Only packing; only a constant of PTX outside of the kernels; only a note of the compiler."""
    code, shown = invoke("diff", OBJECTS / "none.fatbin", OBJECTS / "size.fatbin")
    assert code == 1
    assert "other: packing of cubin sm_90 changed" in shown.splitlines()[-1]
    text = (OBJECTS / "sample.ptx").read_bytes()
    other = written(tmp_path, "other.ptx", b"// another comment\n" + text)
    code, shown = invoke("diff", OBJECTS / "sample.ptx", other)
    assert code == 1
    assert shown.splitlines()[-1].endswith("other: text of ptx compute_90 changed")
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    noted = written(tmp_path, "noted.cubin", data.replace(b"-m 64", b"-m 65"))
    code, shown = invoke("diff", OBJECTS / "sm_90.cubin", noted)
    assert code == 1
    assert "other: sm_90 .note.nv.tkinfo changed" in shown.splitlines()[-1]


def test_diff_as_json() -> None:
    code, shown = invoke("diff", "--json", OBJECTS / "sm_75.cubin", OBJECTS / "sm_90.cubin")
    document = json.loads(shown)
    assert code == 1
    assert document["summary"] == "0 of 8 kernels changed, 4 added, 4 removed"
    assert {kernel["change"] for kernel in document["kernels"]} == {"added", "removed"}


@pytest.mark.parametrize(
    "command", [["inspect"], ["inspect", "--find", "x"], ["diff", OBJECTS / "sm_90.cubin"]]
)
def test_a_damaged_file_is_named_with_the_byte(tmp_path: Path, command: list[object]) -> None:
    cut = written(tmp_path, "cut.cubin", (OBJECTS / "sm_90.cubin").read_bytes()[:-8])
    with pytest.raises(FreshproofError) as caught:
        invoke(*command, cut)
    assert caught.value.exit_code == 2
    assert str(cut) in caught.value.what
    assert "byte 0x" in caught.value.what


@pytest.mark.parametrize("more", [[], ["--json"], ["--find", "pin_abc"]])
def test_a_damaged_file_does_not_hide_the_others(tmp_path: Path, more: list[str]) -> None:
    first = written(tmp_path, "first.cubin", (OBJECTS / "sm_90.cubin").read_bytes()[:-8])
    last = written(tmp_path, "last.cubin", b"nothing known")
    result = CliRunner().invoke(
        cli, ["inspect", *more, str(first), str(OBJECTS / "sm_90.cubin"), str(last)], standalone_mode=False
    )
    assert isinstance(result.exception, ConfigurationError)
    assert str(last) in result.exception.what
    assert f"error: {first}" in result.stderr
    assert str(OBJECTS / "sm_90.cubin") in result.stdout
    if more == ["--json"]:
        assert [one["path"] for one in json.loads(result.stdout)["unreadable"]] == [str(first), str(last)]


def test_a_file_of_no_known_kind_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_all(_data: object) -> str:
        raise AssertionError("the whole file was read")

    monkeypatch.setattr("orchestrator.cli.inspect.file_digest", read_all)
    with pytest.raises(ConfigurationError, match="none of the kinds"):
        invoke("inspect", written(tmp_path, "other", b"nothing known"))


DOCUMENTS = {
    "freshproof/inspect/1": ["inspect", "--digests", "--texts", OBJECTS / "none.fatbin", OBJECTS / "rdc.o"],
    "freshproof/find/1": ["inspect", "--find", "pin_abc", OBJECTS / "none.fatbin"],
    "freshproof/diff/1": ["diff", OBJECTS / "sm_90.cubin", OBJECTS / "sm_75.cubin"],
    "freshproof/audit/1": ["audit", OBJECTS],
}


def names_in(value: object) -> set[str]:
    """Every key of a document, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("schema", DOCUMENTS)
def test_documents_are_described(schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key that a document has stands in manifests/README.md, in the row of its schema or below."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "manifests" / "README.md").read_text()
    (row,) = [line for line in text.splitlines() if f"`{schema}`" in line]
    piece = text.split("A piece of `inspect` is")[1]
    document = json.loads(invoke(*DOCUMENTS[schema], "--json")[1])
    assert document.pop("schema") == schema
    told = set(re.findall(r"`(\w+)`", row))
    assert set(document) <= told
    assert names_in(document) <= told | set(re.findall(r"`(\w+)`", piece)) | DIGESTS


DIGESTS = {"file", "normalised", "unstamped", "device"}
