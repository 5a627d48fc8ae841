"""The code in this process: found to be the admitted one, or refused."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.canonical import digest_bytes
from orchestrator.errors import Refused
from orchestrator.loaded import check_library, check_module
from orchestrator.objects.elf import read_elf
from orchestrator.objects.stamp import read_stamps

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
RECIPE = "sha256:" + "0" * 64

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the library is for x86_64")


@dataclass(frozen=True)
class Claim:
    """What must be found."""

    target: str
    path: Path
    digest: str
    stamp: str = RECIPE


def reader(data: bytes):
    """Reads device variables as if the cubin were in a GPU."""
    (stamp,) = read_stamps(read_elf(data))

    def read_symbol(name: str, size: int) -> bytes:
        assert name == stamp.symbol
        start = stamp.offset - len(b"freshproof:")
        return data[start : start + size]

    return read_symbol


def test_the_stamp_in_a_module() -> None:
    data = (OBJECTS / "sm_90.cubin").read_bytes()
    claim = Claim("sample", OBJECTS / "sm_90.cubin", digest_bytes(data))
    found = check_module(claim, reader(data))
    assert (found.target, found.digest, found.stamp, found.how) == (
        "sample", claim.digest, RECIPE, "module-readback",
    )  # fmt: skip
    (stamp,) = read_stamps(read_elf(data))
    other = data[: stamp.offset] + b"7" * 64 + data[stamp.offset + 64 :]
    with pytest.raises(Refused, match="carries the stamp b'freshproof:7777"):
        check_module(claim, reader(other))
    with pytest.raises(Refused):
        check_module(replace(claim, stamp="sha256:" + "1" * 64), reader(data))


@pytest.fixture
def library(tmp_path: Path) -> tuple[ctypes.CDLL, Claim, int]:
    """A library loaded from a place of its own, its claim, and the address of a function in it."""
    path = Path(shutil.copy(OBJECTS / "host.so", tmp_path / "host.so"))
    loaded = ctypes.CDLL(str(path))
    address = ctypes.cast(loaded.exported, ctypes.c_void_p).value
    assert address
    return loaded, Claim("host", path, digest_bytes(path.read_bytes())), address


@x86_64
def test_a_loaded_library(library) -> None:
    _loaded, claim, address = library
    for where in (address, None):
        found = check_library(claim, where)
        assert (found.digest, found.how) == (claim.digest, "mapped-file")
    with pytest.raises(Refused, match="its digest is"):
        check_library(replace(claim, digest=RECIPE), address)


@x86_64
def test_a_library_that_is_not_loaded(library, tmp_path: Path) -> None:
    _loaded, claim, address = library
    other = Path(shutil.copy(claim.path, tmp_path / "other.so"))
    with pytest.raises(Refused, match="in no mapping of this process"):
        check_library(replace(claim, path=other))
    with pytest.raises(Refused, match="is not what this process runs"):
        check_library(replace(claim, path=other), address)
    with pytest.raises(Refused, match="cannot be read"):
        check_library(replace(claim, path=tmp_path / "gone.so"), address)


@x86_64
@pytest.mark.parametrize("how", ["delete", "replace"])
def test_a_library_replaced_after_it_was_loaded(library, how: str) -> None:
    """T59: equal bytes at the path are not those that run."""
    _loaded, claim, address = library
    data = claim.path.read_bytes()
    if how == "delete":
        claim.path.unlink()
        claim.path.write_bytes(data)
    else:
        new = claim.path.with_name("new")
        new.write_bytes(data)
        new.replace(claim.path)
    for where in (address, None):
        with pytest.raises(Refused, match="is not what this process runs"):
            check_library(claim, where)


@x86_64
def test_code_changed_in_memory(library) -> None:
    _loaded, claim, address = library
    page = address & -mmap.PAGESIZE
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, 7) == 0
    ctypes.memmove(page + mmap.PAGESIZE - 1, b"\xcc", 1)
    with pytest.raises(Refused, match="the code in memory differs"):
        check_library(claim, address)


PACKAGE = """
import sys
from pathlib import Path
from orchestrator.loaded import running_sources
import mine.part
for source in running_sources(Path(sys.argv[1]), ["mine"]):
    print(source.path, source.digest)
"""


@pytest.mark.parametrize("started", [["-m", "mine.main"], ["mine/main.py"]])
def test_sources_by_content(tmp_path: Path, started: list[str]) -> None:
    """T58: where a .pyc could have run in a source's place, nothing is claimed."""
    (tmp_path / "mine").mkdir()
    for name, text in (("__init__", ""), ("part", "x = 1\n"), ("main", PACKAGE)):
        (tmp_path / "mine" / f"{name}.py").write_text(text)
    command = [sys.executable, *started, str(tmp_path)]
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    environ |= {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}
    clean = {**environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "empty"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, check=True)
    names = [f"mine/{name}.py" for name in ("__init__", "main", "part")]
    expected = {f"{name} {digest_bytes((tmp_path / name).read_bytes())}" for name in names}
    assert set(done.stdout.splitlines()) == expected
    subprocess.run([sys.executable, "-c", "import mine.part"], env=environ, cwd=tmp_path, check=True)
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "may run from" in done.stderr and "not from its source" in done.stderr


def test_folders_without_code_are_no_sources(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name, text in (("part", "x = 1\n"), ("main", PACKAGE)):
        (tmp_path / "mine" / f"{name}.py").write_text(text)
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    environ |= {"PYTHONPYCACHEPREFIX": str(tmp_path / "empty"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mine.main", str(tmp_path)]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["mine/main.py", "mine/part.py"]
