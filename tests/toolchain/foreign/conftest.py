"""Projects of other build systems, and the tool run in front of their builds."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_projects = importlib.util.spec_from_file_location("projects", Path(__file__).with_name("projects.py"))
projects = importlib.util.module_from_spec(_projects)
_projects.loader.exec_module(projects)

PROJECTS = {
    "make": (projects.MAKE, ("make",), ("out/prog",), "out"),
    "ninja": (projects.NINJA, ("ninja",), ("out/prog",), "out"),
    "cmake": (
        projects.CMAKE,
        ("sh", "-c", "test -d build || cmake -S . -B build && cmake --build build"),
        ("build/prog",),
        "build",
    ),
    "setuptools": (
        projects.SETUPTOOLS,
        (sys.executable, "setup.py", "-q", "build_ext", "--inplace"),
        (sys.executable, "run.py"),
        "build",
    ),
}
"""Files, build, program, folder of products."""

SYSTEMS = [
    *(pytest.param(name, marks=pytest.mark.needs(name)) for name in ("make", "ninja", "cmake")),
    "setuptools",
]

DATA = Path(__file__).parents[2] / "data"
NVCC = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
FRESH, REFUSED, NOT_STARTED, VOID = 0, 5, 125, 6


class Project:
    """One project on disk."""

    def __init__(self, root: Path, build: tuple[str, ...], program: tuple[str, ...]) -> None:
        self.root = root
        self.build = build
        self.program = program
        folders = [
            str(NVCC.parent),
            str(Path(sys.executable).parent),
            str(Path.home() / ".cargo" / "bin"),
            "/usr/local/bin",
            "/usr/bin",
            "/bin",
        ]
        keep = ("HOME", "CARGO_HOME", "RUSTUP_HOME", "XDG_CACHE_HOME")
        self.environ = {name: os.environ[name] for name in keep if name in os.environ}
        self.environ["PATH"] = os.pathsep.join(folders)

    def file(self, name: str, text: str | None = None) -> str:
        """Write a file if a text is given; its text."""
        path = self.root / name
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return path.read_text()

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.file(name)
        assert old in text
        self.file(name, text.replace(old, new))

    def edit_unseen(self, name: str, old: str, new: str) -> None:
        """An edit that leaves size and modification time as they were."""
        status = (self.root / name).stat()
        assert len(old) == len(new)
        self.edit(name, old, new)
        os.utime(self.root / name, ns=(status.st_atime_ns, status.st_mtime_ns))

    def tool(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nice", "-n", "10", sys.executable, "-m", "orchestrator", *words],
            cwd=self.root,
            env={**self.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def alone(self, *words: str) -> str:
        """A command, the build if none is given, without the tool; what it says."""
        done = subprocess.run(
            words or self.build, cwd=self.root, env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *build: str, options: tuple[str, ...] = (), **variables: str) -> dict[str, str]:
        """Build behind the tool; what it says of each CUDA source."""
        done = self.tool("run", "--json", *options, "--", *(build or self.build), **variables)
        assert done.returncode == 0, done.stderr
        self.document = json.loads(done.stderr.splitlines()[-1])
        return {row["source"]: row["state"] for row in self.document["sources"]}

    def gate(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.tool("gate", "--", *self.program, **variables)

    def verify(self, **variables: str) -> tuple[int, dict[str, str], str]:
        """Exit code, the state of each product, and all that is said."""
        done = self.tool("verify", "--json", **variables)
        targets = json.loads(done.stdout)["targets"]
        return done.returncode, {t["target"]: t["state"] for t in targets}, done.stdout


def lay_out(root: Path, files: dict[str, str]) -> None:
    """Write files; RUNTIME stands for what links the CUDA runtime, LIBRARIES for the toolkit's folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text.replace("RUNTIME", projects.RUNTIME).replace("LIBRARIES", f"{projects.CUDA}/lib64")
        )


def commit(root: Path) -> None:
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], cwd=root, check=True)


@pytest.fixture
def bare(tmp_path):
    """(files, build, program) -> a project without git, not built yet; see `lay_out`."""

    def make(
        files: dict[str, str], build: tuple[str, ...], program: tuple[str, ...], name: str = "project"
    ) -> Project:
        project = Project(Path(os.path.realpath(tmp_path)) / name, build, program)
        lay_out(project.root, files)
        return project

    return make


@pytest.fixture
def project_of(bare):
    """(build system) -> its project, not built yet."""

    def make(system: str, name: str = "project") -> Project:
        files, build, program, _products = PROJECTS[system]
        project = bare(files, build, program, name)
        commit(project.root)
        return project

    return make


def copy_story(root: Path) -> Path:
    """The story's sources at ``root``, linked with the toolkit that is here."""
    shutil.copytree(DATA / "story", root)
    recipe = root / "groth16-cuda" / "build.rs"
    recipe.write_text(recipe.read_text().replace("/usr/local/cuda-13.0", str(projects.CUDA)))
    return root


@pytest.fixture
def story_files(tmp_path):
    """A folder with the story's sources."""
    return copy_story(tmp_path / "story")


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """The workspace of the story, built once behind the tool."""
    root = copy_story(Path(os.path.realpath(tmp_path_factory.mktemp("story"))) / "zk")
    (root / ".gitignore").write_text("/target\n")
    commit(root)
    project = Project(root, ("cargo", "build", "--release", "--offline"), ("target/release/prove-bench",))
    states = project.run()
    assert states == {"groth16-cuda/cuda/groth16_cuda.cu": "compiled"}
    return project


@pytest.fixture
def restored(story):
    """The story's workspace, built; what a test changes is put back."""
    yield from settled(story, "target")


@pytest.fixture(scope="module", params=SYSTEMS)
def built(request, tmp_path_factory):
    """A project of each build system, built once behind the tool."""
    files, build, program, products = PROJECTS[request.param]
    root = Path(os.path.realpath(tmp_path_factory.mktemp(request.param))) / "project"
    project = Project(root, build, program)
    lay_out(root, files)
    commit(root)
    assert project.run() == {"cuda/kernel.cu": "compiled"}
    project.system, project.products = request.param, products
    return project


@pytest.fixture
def project(built):
    """The project, built; what a test changes is put back."""
    yield from settled(built, built.products)


@pytest.fixture
def runtime():
    """The words with which g++ links CUDA's runtime."""
    return projects.RUNTIME


@pytest.fixture
def plain_files():
    """Files of a small project for make, to be changed."""
    return dict(projects.PLAIN)


@pytest.fixture
def setuptools_files():
    """Files of a Python module with a kernel."""
    return dict(projects.SETUPTOOLS)


@pytest.fixture(scope="module")
def plain_built(tmp_path_factory):
    """A project for make with a shadowable header and library, built once behind the tool."""
    root = Path(os.path.realpath(tmp_path_factory.mktemp("plain"))) / "project"
    project = Project(root, ("make",), ("./prog",))
    lay_out(root, projects.PLAIN)
    (root / "first").mkdir()
    commit(root)
    assert project.run() == {"k.cu": "compiled"}
    return project


@pytest.fixture
def plain(plain_built):
    """The project, built; what a test changes is put back."""
    yield from settled(plain_built, "*.[ao]")


def settled(project: Project, products: str):
    """Build first: files that were put back have new times, which build systems go by."""
    project.run()
    before = project.gate()
    if before.returncode != FRESH:
        for path in project.root.glob(products):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        project.run()
        before = project.gate()
    assert before.returncode == FRESH, before.stdout + before.stderr
    yield project
    subprocess.run(["git", "checkout", "-q", "."], cwd=project.root, check=True)
    subprocess.run(["git", "clean", "-qfd", "-e", "Cargo.lock", "-e", "*.so"], cwd=project.root, check=True)
