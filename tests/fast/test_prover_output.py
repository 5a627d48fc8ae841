"""Files that appear whole, together, or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError, Missing
from prover.output import all_or_none, require_distinct, write_text


def write_all(files: dict[Path, str]) -> None:
    with all_or_none(files) as staged:
        for target, text in files.items():
            write_text(staged[target], text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_both_files_or_none(tmp_path: Path, monkeypatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_all({first: "1", second: "2"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if target == second and self.suffix == ".partial":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(Missing, match=r"second: cannot be written: No space"):
        write_all({first: "3", second: "4"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    with pytest.raises(Missing):
        write_all({tmp_path / "new": "5", second: "6"})
    assert names(tmp_path) == ["first", "second"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError, ConfigurationError("no")])
def test_work_that_ends_early_leaves_all_as_it_was(tmp_path: Path, fault) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    with pytest.raises((KeyboardInterrupt, MemoryError, ConfigurationError)):  # noqa: SIM117
        with all_or_none((first, second)) as staged:
            write_text(staged[first], "new")
            raise fault
    assert names(tmp_path) == ["first"] and first.read_text() == "old"


def test_interrupted_between_two_renames_leaves_all_as_it_was(tmp_path: Path, monkeypatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        replace(self, target)
        if target == second:
            raise KeyboardInterrupt
        return target

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all({first: "1", second: "2"})
    assert names(tmp_path) == ["first"] and first.read_text() == "old"


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    for target in (
        tmp_path / "folder",
        Path("/dev/null"),
        tmp_path / "missing" / "x",
        tmp_path / "circle",
        tmp_path / ("x" * 300),
        Path("/proc/x"),
    ):
        with pytest.raises(ConfigurationError, match="cannot be written") as caught:  # noqa: SIM117
            with all_or_none((tmp_path / "first", target)):
                raise AssertionError("work was begun")
        assert str(target) in caught.value.what and caught.value.remedy
    assert names(tmp_path) == ["circle", "folder"]


def test_long_names_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    write_all({target: "1", tmp_path / ("x" * 254): "2"})
    assert target.read_text() == "1"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to("real/a")
    (tmp_path / "real" / "a").write_text("old")
    dangling.symlink_to("real/b")
    write_all({link: "1", dangling: "2"})
    assert link.is_symlink() and dangling.is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "1" and (tmp_path / "real" / "b").read_text() == "2"
    assert names(tmp_path / "real") == ["a", "b"]


def test_a_fault_while_writing_names_the_target(tmp_path: Path, monkeypatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Missing) as caught:
        write_all({tmp_path / "key": "1"})
    assert caught.value.what == f"{tmp_path}/key: cannot be written: No space left on device"
    assert "free some space" in caught.value.remedy
    assert names(tmp_path) == []


def test_outputs_are_no_other_file_whatever_it_is_called(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    (tmp_path / "hard").hardlink_to(tmp_path / "a")
    (tmp_path / "soft").symlink_to("a")
    (tmp_path / "new").symlink_to("none")
    for inputs, outputs in (
        ({"--in": Path("a")}, {"--out": Path("a")}),
        ({"--in": Path("a")}, {"--out": tmp_path / "a"}),
        ({"--in": Path("a")}, {"--out": Path("hard")}),
        ({"--in": Path("a")}, {"--out": Path("soft")}),
        ({}, {"--in": Path("x"), "--out": Path("./x")}),
        ({}, {"--in": Path("new"), "--out": Path("none")}),
    ):
        with pytest.raises(ConfigurationError, match="--in and --out are the same file"):
            require_distinct(inputs, outputs)
    require_distinct({"--in": Path("a"), "--also": Path("a")}, {"--out": Path("b"), "--more": None})
