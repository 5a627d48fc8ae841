"""Copies of code on the disk and in processes: current, stale, linked, loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from small_project import build_project, freshproof

from orchestrator.loader import libraries_of

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
KERNEL = """
extern "C" __global__ void kernel(int *p) { *p = VALUE; }
extern "C" void start() { kernel<<<1, 1>>>(0); }
"""
MAIN = 'extern "C" void start();\nint main() { start(); return 0; }\n'
SOURCES = {
    "src/host.cu": 'extern "C" int answer() { return 42; }\n',
    "src/device.cu": 'extern "C" __global__ void kernel(int *p) { *p = 42; }\n',
    "manifests/targets.toml": """schema = 1
[project]
name = "small"
source-roots = ["src"]
[target.host]
kind = "shared-library"
sources = ["src/host.cu"]
[target.device]
kind = "cubin"
arch = "sm_90"
sources = ["src/device.cu"]
""",
}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def audit(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code, and for each group the state of each file by the folder that it lies in."""
    done = freshproof(folder, "audit", "--json", *arguments, **variables)
    assert done.returncode in (0, 1), done.stderr
    groups = json.loads(done.stdout)["groups"]
    return done.returncode, {
        group["name"]: {Path(copy["path"]).parent.name: copy["state"] for copy in group["copies"]}
        for group in groups
    }


@pytest.fixture(scope="module")
def hash_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three folders with an archive of one name; a program is linked from the second.

    The third differs from it in host code alone.
    """
    root = tmp_path_factory.mktemp("cargo")
    sources = {
        "aaa111": KERNEL,
        "bbb222": KERNEL,
        "ccc333": KERNEL.replace("{ kernel", "{ volatile int x = 3; kernel"),
    }
    for folder, value in (("aaa111", "1"), ("bbb222", "2"), ("ccc333", "2")):
        place = root / "build" / folder
        place.mkdir(parents=True)
        (root / "kernel.cu").write_text(sources[folder])
        run(root, NVCC, "-c", "-arch=sm_90", f"-DVALUE={value}", "kernel.cu", "-o", str(place / "kernel.o"))
        run(place, "ar", "rc", "libkernel.a", "kernel.o")
        (place / "kernel.o").unlink()
    (root / "main.cpp").write_text(MAIN)
    run(root, NVCC, "main.cpp", "build/bbb222/libkernel.a", "-o", "program")
    return root


def test_three_archives_of_one_name(hash_folders: Path) -> None:
    """T53: all are listed; which one is used cannot be told without a program."""
    code, groups = audit(hash_folders, "build")
    assert (code, groups) == (
        0,
        {"libkernel.a": {"aaa111": "unknown", "bbb222": "unknown", "ccc333": "unknown"}},
    )


def test_which_of_three_archives_is_linked(hash_folders: Path) -> None:
    code, groups = audit(hash_folders, "build", "--program", "program")
    assert (code, groups) == (1, {"libkernel.a": {"aaa111": "stale", "bbb222": "current", "ccc333": "stale"}})
    told = freshproof(hash_folders, "audit", "build", "--program", "program")
    assert "linked into" in told.stdout
    assert "not the build that is used; its device code is the same" in told.stdout


def test_a_stripped_program_tells_only_what_device_code_tells(hash_folders: Path, tmp_path: Path) -> None:
    shutil.copy(hash_folders / "program", tmp_path / "stripped")
    run(tmp_path, "strip", "--strip-all", "stripped")
    code, groups = audit(hash_folders, "build", "--program", str(tmp_path / "stripped"))
    assert (code, groups) == (
        1,
        {"libkernel.a": {"aaa111": "stale", "bbb222": "unknown", "ccc333": "unknown"}},
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A built project with a host library and a cubin."""
    return build_project(tmp_path / "project", SOURCES)


def artifact(root: Path, target: str) -> Path:
    manifest = json.loads((root / "build" / "manifests" / f"{target}.json").read_text())
    return root / manifest["product"]["path"]


def test_copies_of_artifacts(project: Path, tmp_path: Path) -> None:
    """A copy of the current build, then the same copy after the source went on."""
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(artifact(project, "device"), copies / "renamed.bin")
    assert audit(project, str(copies)) == (0, {"device": {"copies": "current"}})
    (project / "src" / "device.cu").write_text('extern "C" __global__ void kernel(int *p) { *p = 43; }\n')
    assert audit(project, str(copies)) == (1, {"device": {"copies": "stale"}})
    assert freshproof(project, "build").returncode == 0
    assert audit(project, str(copies)) == (1, {"device": {"copies": "stale"}})
    told = freshproof(project, "audit", str(copies)).stdout
    assert "carries the stamp of another recipe" in told


def test_the_library_that_a_program_would_load(project: Path, tmp_path: Path) -> None:
    """T44: LD_LIBRARY_PATH picks an older copy."""
    name = artifact(project, "host").name
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    shutil.copy(artifact(project, "host"), tmp_path / "old" / name)
    (project / "src" / "host.cu").write_text('extern "C" int answer() { return 43; }\n')
    assert freshproof(project, "build").returncode == 0
    shutil.copy(artifact(project, "host"), tmp_path / "new" / name)
    (tmp_path / "main.cpp").write_text('extern "C" int answer();\nint main() { return answer(); }\n')
    run(
        tmp_path, "g++", "main.cpp", "-Lnew", f"-l:{name}", "-o", "program",
        f"-Wl,--enable-new-dtags,-rpath,{tmp_path}/new",
    )  # fmt: skip

    def used(**variables: str) -> dict[str, tuple[str, bool]]:
        places = [str(tmp_path / folder) for folder in ("old", "new")]
        asked = ("--program", str(tmp_path / "program"))
        done = freshproof(project, "audit", "--json", *places, *asked, **variables)
        assert done.returncode == 1, done.stderr
        (group,) = json.loads(done.stdout)["groups"]
        return {
            Path(copy["path"]).parent.name: (copy["state"], bool(copy["used_by"])) for copy in group["copies"]
        }

    older = str(tmp_path / "old")
    assert used() == {"old": ("stale", False), "new": ("current", True)}
    assert used(LD_LIBRARY_PATH=older) == {"old": ("stale", True), "new": ("current", False)}
    program = str(tmp_path / "program")
    assert freshproof(project, "gate", "--", program).returncode == 43
    refused = freshproof(project, "gate", "--", program, LD_LIBRARY_PATH=older)
    assert refused.returncode == 125
    assert f"{older}/{name} would be loaded (LD_LIBRARY_PATH), and is not the current host" in refused.stdout
    (tmp_path / "old" / name).write_bytes(artifact(project, "host").read_bytes()[:-8])
    damaged = freshproof(project, "gate", "--", "env", f"LD_LIBRARY_PATH={older}", program)
    assert damaged.returncode == 6, "a search path that the command sets for itself is seen when it has ended"
    assert f"{older}/{name} was loaded" in damaged.stderr
    damaged = freshproof(project, "gate", "--", program, LD_LIBRARY_PATH=older)
    assert damaged.returncode == 125
    assert "cannot be read" in damaged.stdout


HOLDER = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('loaded', flush=True); sys.stdin.read()"


@contextmanager
def holding(library: Path) -> Iterator[str]:
    """The number of a process that has loaded a library."""
    command = [sys.executable, "-c", HOLDER, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        yield str(process.pid)
        process.communicate("")


@pytest.mark.parametrize("name", ["host.so", "renamed.bin"])
def test_a_process_that_runs_replaced_code(project: Path, tmp_path: Path, name: str) -> None:
    """T42 and T59: a copy is loaded, then deleted or replaced, then the target is built anew."""
    (tmp_path / "installed").mkdir()
    library = Path(shutil.copy(artifact(project, "host"), tmp_path / "installed" / name))
    with holding(library) as pid:
        assert mine(project, pid)[1] == [("host", "fresh")]  # what others run decides the code as well
        assert freshproof(project, "gate", "host", "--pid", pid).returncode == 0
        (project / "src" / "host.cu").write_text('extern "C" int answer() { return 43; }\n')
        assert freshproof(project, "build").returncode == 0
        assert mine(project, pid) == (1, [("host", "stale")])
        library.unlink()
        assert mine(project, pid) == (1, [("host", "stale")])
        library.write_bytes(artifact(project, "host").read_bytes())
        assert mine(project, pid) == (1, [("host", "stale")])
        told = freshproof(project, "audit", "--processes", str(project / "src")).stdout
        assert f"{library}: runs a file that was replaced or deleted since it was loaded" in told
        refused = freshproof(project, "gate", "host", "--pid", pid)
        assert refused.returncode == 5
        assert "replaced" in refused.stdout


def test_a_process_of_another_project_is_its_own_affair(project: Path, tmp_path: Path) -> None:
    """Targets of two projects may have one name."""
    other = tmp_path / "other"
    shutil.copytree(project, other, symlinks=True)
    (project / "src" / "host.cu").write_text('extern "C" int answer() { return 43; }\n')
    assert freshproof(project, "build").returncode == 0
    with holding(artifact(other, "host")) as pid:
        assert mine(project, pid)[1] == []
        assert mine(other, pid)[1] == [("host", "fresh")]
        assert freshproof(project, "gate", "host", "--pid", pid).returncode == 5


def test_the_example_of_a_program_that_asks_about_itself(project: Path) -> None:
    """As manifests/README.md has it."""
    text = (Path(__file__).parents[2] / "manifests" / "README.md").read_text()
    example = text.split("## The code in your own process")[1].split("```python\n")[1].split("```")[0]

    def ask() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", example]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    done = ask()
    digest = f"sha256:{sha256(artifact(project, 'host').read_bytes()).hexdigest()}"
    assert done.stdout == f"mapped-file {digest} 42\n()\n", done.stderr
    (project / "src" / "host.cu").write_text('extern "C" int answer() { return 43; }\n')
    done = ask()
    assert (done.returncode, done.stdout) == (1, "")
    assert "Refused: host is stale: src/host.cu: its content changed" in done.stderr


def test_a_process_that_runs_nothing_of_the_target(project: Path) -> None:
    with subprocess.Popen(["sleep", "300"]) as process:  # not this one: other tests load libraries into it
        other = freshproof(project, "gate", "host", "--pid", str(process.pid))
        process.kill()
    assert other.returncode == 5
    assert "unproven" in other.stdout


def mine(project: Path, pid: str) -> tuple[int, list[tuple[str, str]]]:
    """Exit code, and for each file of a target that the process maps: target and state."""
    done = freshproof(project, "audit", "--processes", "--json", str(project / "src"))
    found = [one for one in json.loads(done.stdout)["processes"] if one["pid"] == int(pid)]
    return done.returncode, [(one["target"], one["state"]) for one in found]


@pytest.mark.parametrize("program", ["/usr/bin/env", sys.executable, "/usr/bin/ld"])
def test_the_search_is_that_of_the_loader(program: str) -> None:
    if not Path(program).exists():
        pytest.skip(f"{program} is not here")
    told = run(Path("/"), "ldd", program)
    expected = {
        line.split()[0]: os.path.realpath(line.split()[2]) for line in told.splitlines() if "=> /" in line
    }
    found = {one.name: os.path.realpath(one.path or "") for one in libraries_of(Path(program), os.environ)}
    assert expected
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("tag", ["--enable-new-dtags", "--disable-new-dtags"])
def test_rpath_runpath_and_library_path(tmp_path: Path, tag: str) -> None:
    """RPATH comes before LD_LIBRARY_PATH, RUNPATH after it."""
    for folder in ("linked", "listed"):
        (tmp_path / folder).mkdir()
        (tmp_path / "part.cpp").write_text(f'extern "C" const char *where() {{ return "{folder}"; }}\n')
        run(tmp_path, "g++", "-shared", "-fPIC", "part.cpp", "-o", f"{folder}/libpart.so")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\nextern "C" const char *where();\nint main() { puts(where()); }\n'
    )
    run(
        tmp_path, "g++", "main.cpp", "-Llinked", "-lpart", "-o", "program",
        f"-Wl,{tag},-rpath,$ORIGIN/linked",
    )  # fmt: skip
    environ = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "listed")}
    ran = subprocess.run([tmp_path / "program"], env=environ, capture_output=True, text=True, check=True)
    (part,) = [one for one in libraries_of(tmp_path / "program", environ) if one.name == "libpart.so"]
    assert part.path is not None
    assert Path(part.path).parent.name == ran.stdout.strip()
    assert ("LD_LIBRARY_PATH" in part.why) == (ran.stdout.strip() == "listed")
