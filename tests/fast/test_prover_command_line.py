"""File names on the command line of `groth16`, the same for all of its commands."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from orchestrator.protocol import Failure, parse_message

BLS = Path(__file__).parents[1] / "data" / "bls12381"
REFERENCE = ("--backend", "reference")
SYNTH = ("synth", "--curve", "bls12_381", "--constraints", 5, *REFERENCE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a circuit, its key and its witness."""
    for kind in ("r1cs", "zkey", "wtns"):
        shutil.copy(BLS / f"mul.{kind}", tmp_path / f"c.{kind}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


PROVE = ("prove", "--zkey", "c.zkey", "--wtns", "c.wtns", *REFERENCE)
TWICE = {
    "setup, two outputs": ("setup", "--r1cs", "c.r1cs", "--zkey", "m.x", "--vk", "m.x", *REFERENCE),
    "setup, its input": ("setup", "--r1cs", "c.r1cs", "--zkey", "./c.r1cs", *REFERENCE),
    "setup, its input as key for verifiers": (
        *("setup", "--r1cs", "c.r1cs", "--zkey", "m", "--vk", "c.r1cs", *REFERENCE),
    ),
    "synth, two outputs": (*SYNTH, "--zkey", "d.x", "--wtns", "d.x"),
    "synth, the circuit too": (*SYNTH, "--zkey", "d", "--wtns", "e", "--r1cs", "./d"),
    "prove, the circuit": (*PROVE, "--r1cs", "c.r1cs", "--proof", "c.r1cs", "--public", "u"),
    "prove, the key": (*PROVE, "--proof", "p", "--public", "c.zkey"),
    "prove, two outputs": (*PROVE, "--proof", "p", "--public", "p"),
}


@pytest.mark.parametrize("name", TWICE)
def test_no_command_writes_over_its_own_files(groth16, folder: Path, name: str) -> None:
    before = contents(folder)
    code, out, err = groth16(*TWICE[name])
    assert code == 2 and "are the same file" in err and out == ""
    assert contents(folder) == before


NOWHERE = {
    "prove, proof": (*PROVE, "--proof", "no/p", "--public", "u"),
    "prove, public": (*PROVE, "--proof", "p", "--public", "no/u"),
    "setup, zkey": ("setup", "--r1cs", "c.r1cs", "--zkey", "no/k", *REFERENCE),
    "setup, vk": ("setup", "--r1cs", "c.r1cs", "--zkey", "k", "--vk", "no/v", *REFERENCE),
    "synth, zkey": (*SYNTH, "--zkey", "no/k", "--wtns", "w"),
    "synth, wtns": (*SYNTH, "--zkey", "k", "--wtns", "no/w"),
    "synth, r1cs": (*SYNTH, "--zkey", "k", "--wtns", "w", "--r1cs", "no/c"),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_an_output_without_a_folder_is_said_before_the_work(
    groth16, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = contents(folder)
    monkeypatch.setattr("prover.loading.gated", lambda *_: pytest.fail("work was begun"))
    code, _, err = groth16(*NOWHERE[name])
    assert code == 2 and "no/" in err and "cannot be written: No such file or directory" in err
    assert contents(folder) == before


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("prover.setup.write_test_key", (*SYNTH, "--zkey", "k", "--wtns", "w", "--r1cs", "c.r1cs")),
        (
            "prover.formats.snarkjs.verification_key_json",
            ("setup", "--r1cs", "c.r1cs", "--zkey", "c.zkey", "--vk", "v", *REFERENCE),
        ),
        ("prover.formats.snarkjs.proof_json", (*PROVE, "--proof", "p", "--public", "u")),
    ],
    ids=["synth", "setup", "prove"],
)
def test_an_interrupted_command_leaves_all_files_as_they_were(
    groth16, folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, arguments: tuple[object, ...]
) -> None:
    before = contents(folder)
    monkeypatch.setattr(where, interrupted)
    code, out, err = groth16(*arguments)
    assert code == 130 and out == "" and "interrupted: every file is whole, or as it was" in err
    assert contents(folder) == before


@pytest.mark.parametrize("arguments", [("info",), (*PROVE, "--public", "u", "--proof"), ("verify", "--vk")])
@pytest.mark.parametrize(("name", "words"), [("", "it is empty"), ("-", "standard input and output are not")])
def test_what_names_no_file_is_refused(
    groth16, folder: Path, arguments: tuple[object, ...], name: str, words: str
) -> None:
    before = contents(folder)
    code, _, err = groth16(*arguments, name)
    assert code == 2 and words in err
    assert contents(folder) == before


def test_a_file_called_minus_can_be_named(groth16, folder: Path) -> None:
    code, _, _ = groth16(*PROVE, "--public", "u", "--proof", "./-")
    assert code == 0 and (folder / "-").is_file()


def test_proof_written_through_a_link_reaches_its_file(groth16, folder: Path) -> None:
    (folder / "p").symlink_to("real")
    assert groth16(*PROVE, "--public", "u", "--proof", "p")[0] == 0
    assert (folder / "p").is_symlink() and "pi_a" in (folder / "real").read_text()


# --- a worker that cannot begin -------------------------------------------------------------------------


WORKER = ("worker", "--zkey", "c.zkey", "--wtns", "c.wtns")
CANNOT_BEGIN = {
    "a mistyped backend": ((*WORKER, "--backend", "hst"), "'hst' is not one of"),
    "a mistyped option": ((*WORKER, *REFERENCE, "--colt"), "--colt"),
    "no backend": (WORKER, "--backend"),
    "an empty name": ((*WORKER, *REFERENCE, "--zkey", ""), "it is empty"),
    "a mistyped command": (("wroker", *WORKER[1:]), "wroker"),
    "memory that is no number": ((*WORKER, *REFERENCE, "--gpu-memory", "8G"), "8G"),
}


@pytest.mark.parametrize("name", CANNOT_BEGIN)
def test_usage_errors_of_a_worker_reach_the_orchestrator(
    groth16, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arguments, words = CANNOT_BEGIN[name]
    ours, theirs = os.pipe()
    monkeypatch.setenv("FRESHPROOF_FD", str(theirs))
    code, _, err = groth16(*arguments)
    with os.fdopen(ours, "rb") as answers:
        failure = parse_message(answers.readline())
        assert answers.readline() == b"", "the other end is closed"
    assert isinstance(failure, Failure) and failure.exit_code == code == 2
    assert words in failure.message and words in err and "worker --help" in failure.remedy


def test_a_descriptor_that_is_no_pipe_is_left_alone(
    groth16, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable may come from further up, and its number may be that of another file here."""
    with (folder / "mine").open("w") as mine:
        monkeypatch.setenv("FRESHPROOF_FD", str(mine.fileno()))
        assert groth16("prove", "--nonsense")[0] == 2
        mine.write("kept")
    assert (folder / "mine").read_text() == "kept"


def test_a_file_that_may_not_be_read_is_a_message_and_not_a_usage_error(
    groth16, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under any user: as root, who may read everything, access() is what tells."""
    opened = os.open

    def refuse(path: object, *more: object, **options: object) -> int:
        if Path(os.fsdecode(path)).name == "c.zkey":  # type: ignore[arg-type]
            raise PermissionError(13, "Permission denied")
        return opened(path, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    for arguments in (("info", "c.zkey"), (*PROVE, "--proof", "p", "--public", "u")):
        code, _, err = groth16(*arguments)
        assert code == 2 and "c.zkey: cannot be opened: Permission denied" in err and "Usage" not in err
    ours, theirs = os.pipe()
    monkeypatch.setenv("FRESHPROOF_FD", str(theirs))
    assert groth16(*WORKER, *REFERENCE)[0] == 2
    assert "cannot be opened" in json.loads(os.read(ours, 10_000))["message"]
    os.close(ours)
