"""Files that appear whole, together, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError
from prover.output import write_all


def test_both_files_or_none(tmp_path: Path, monkeypatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_all({first: "1", second: "2"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if target == second:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(ConfigurationError, match=r"second: cannot be written: No space"):
        write_all({first: "3", second: "4"})
    assert (first.read_text(), second.read_text()) == ("1", "2")
    with pytest.raises(ConfigurationError):
        write_all({tmp_path / "new": "5", second: "6"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "second"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "folder", Path("/dev/null"), tmp_path / "missing" / "x"):
        with pytest.raises(ConfigurationError, match="cannot be written"):
            write_all({tmp_path / "first": "1", target: "2"})
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
