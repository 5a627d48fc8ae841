"""What each build system, and ccache, did about an edit, and what the gate says before and after the build.

Small projects for make, ninja, CMake, setuptools and cargo, whichever are installed, are built behind
`freshproof run`. Each case changes one thing, asks the gate, builds as one does after an edit, asks again.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
KERNEL, HEADER = "cuda/kernel.cu", "include/params.cuh"
LONG_AGO = 1_000_000_000


@dataclass
class System:
    """A project of one build system; ``prefix`` is the folder of its CUDA sources."""

    name: str
    files: dict[str, str]
    build: tuple[str, ...]
    products: str
    host: str
    description: str
    archive: str = ""
    prefix: str = ""
    kernel: str = KERNEL
    root: Path = field(default_factory=Path)

    def path(self, name: str) -> Path:
        return self.root / self.prefix / (self.kernel if name == KERNEL else name)


@dataclass
class Case:
    """One change. ``row`` is its number in the collection of cases that have bitten people."""

    row: str
    what: str
    change: Callable[[System], None]
    variables: dict[str, str] = field(default_factory=dict)
    asks_ccache: bool = True


def edit(name: str, old: str, new: str, when: int | None = None) -> Callable[[System], None]:
    """Replace a text; ``when`` sets the file's time, 0 keeps it."""

    def change(system: System) -> None:
        path = system.path(name)
        status, text = path.stat(), path.read_text()
        assert old in text, (path, old)
        path.write_text(text.replace(old, new))
        if when is not None:
            os.utime(path, ns=(status.st_atime_ns, when * 10**9 or status.st_mtime_ns))

    return change


def edit_host(system: System) -> None:
    path = system.root / system.host
    path.write_text(path.read_text() + "// edited\n")


def describe_anew(system: System) -> None:
    """A comment, and in a makefile, where that says nothing, a target that nothing needs."""
    path = system.root / system.description
    more = "unused:\n" if path.name == "Makefile" else ""
    path.write_text(path.read_text() + f"\n# edited\n{more}")


def shadow(system: System) -> None:
    (system.path(KERNEL).parent / "params.cuh").write_text("#define WINDOW 9\n")


def touch(system: System) -> None:
    for name in (KERNEL, HEADER):
        os.utime(system.path(name))


def take_out(system: System) -> None:
    for archive in system.root.glob(system.archive):
        objects = subprocess.run(["ar", "t", archive], capture_output=True, text=True, check=True).stdout
        subprocess.run(["ar", "d", archive, *objects.split()], check=True)


CASES = (
    Case("T27 T46", "kernel edited", edit(KERNEL, "return 88", "return 83")),
    Case("T26 T30", "kernel edited, size and time as before", edit(KERNEL, "return 88", "return 87", 0)),
    Case("T30", "kernel edited, dated back", edit(KERNEL, "return 88", "return 86", LONG_AGO)),
    Case("T29", "header edited", edit(HEADER, "WINDOW 4", "WINDOW 5")),
    Case("T09", "a header that is found first appears", shadow),
    Case("T32", "times moved, content the same", touch),
    Case("T23", "NVCC_APPEND_FLAGS=-lineinfo", lambda _: None, {"NVCC_APPEND_FLAGS": "-lineinfo"}),
    Case("T69", "host source edited", edit_host, asks_ccache=False),
    Case("T70", "description of the build edited", describe_anew, asks_ccache=False),
    Case("T53", "object taken out of the archive", take_out, asks_ccache=False),
)


def systems() -> list[System]:
    """Those whose tools are here."""
    spec = importlib.util.spec_from_file_location("projects", TESTS / "toolchain" / "foreign" / "projects.py")
    projects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(projects)
    cmake = ("sh", "-c", "test -d build || cmake -S . -B build && cmake --build build")
    setup = (sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    story = TESTS / "data" / "story"
    rust = {str(p.relative_to(story)): p.read_text() for p in story.rglob("*") if p.is_file()}
    rust["groth16-cuda/build.rs"] = rust["groth16-cuda/build.rs"].replace(
        "/usr/local/cuda-13.0", str(projects.CUDA)
    )
    rust[".gitignore"] = "/target\n"
    cargo = ("cargo", "build", "--release", "--offline")
    found = [
        System("make", projects.MAKE, ("make",), "out", "src/main.cpp", "Makefile", "out/*.a"),
        System("ninja", projects.NINJA, ("ninja",), "out", "src/main.cpp", "build.ninja", "out/*.a"),
        System("cmake", projects.CMAKE, cmake, "build", "src/main.cpp", "CMakeLists.txt", "build/*.a"),
        System("setuptools", projects.SETUPTOOLS, setup, "build", "run.py", "setup.py"),
        System(
            "cargo", rust, cargo, "target", "prove-bench/src/main.rs", "groth16-cuda/Cargo.toml",
            "target/release/build/*/out/*.a", "groth16-cuda", "cuda/groth16_cuda.cu",
        ),
    ]  # fmt: skip
    return [one for one in found if one.name == "setuptools" or shutil.which(one.name)]


def tool(system: System, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *words],
        cwd=system.root, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def verdict(system: System, **variables: str) -> str:
    """The worst state of all products."""
    targets = json.loads(tool(system, "gate", "--json", **variables).stdout)["targets"]
    states = {target["state"] for target in targets}
    return next(state for state in ("stale", "unproven", "fresh") if state in states)


def products(system: System) -> dict[Path, int]:
    """Code that the build made, with the times at which it was written."""
    found = (*system.root.glob(f"{system.products}/**/*"), *system.root.glob("*.so"))
    files = (path for path in found if path.is_file() and not path.is_symlink())
    return {path: path.stat().st_mtime_ns for path in files if path.read_bytes()[:4] in (b"\x7fELF", b"!<ar")}


def begin(system: System, root: Path) -> None:
    system.root = root
    for name, text in system.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git = ["git", "-c", "user.name=story", "-c", "user.email=story@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *words], cwd=root, check=True)


def put_back(system: System) -> None:
    """The project as it was, built."""
    subprocess.run(["git", "checkout", "-q", "."], cwd=system.root, check=True)
    clean = ["git", "clean", "-qfd", "-e", "Cargo.lock", "-e", "*.so"]
    subprocess.run(clean, cwd=system.root, check=True)
    tool(system, "run", "--quiet", "--", *system.build)
    if verdict(system) != "fresh":
        shutil.rmtree(system.root / system.products)
        done = tool(system, "run", "--", *system.build)
        assert verdict(system) == "fresh", done.stdout + done.stderr


def told(system: System, case: Case) -> str:
    """What the gate says after the change, what the build did, and what the gate says then."""
    if case.change is take_out and not system.archive:
        return "-"
    put_back(system)
    case.change(system)
    before, had = verdict(system, **case.variables), products(system)
    tool(system, "run", "--quiet", "--", *system.build, **case.variables)
    did = "does nothing" if products(system) == had else "builds"
    return f"{before}; {did}; {verdict(system, **case.variables)}"


def asked_of_ccache(system: System, case: Case, cache: str) -> str:
    """Whether ccache, if it were asked to compile the kernel now, would give the object of before."""
    if not case.asks_ccache or not shutil.which("ccache"):
        return "-" if shutil.which("ccache") else "not installed"
    put_back(system)
    command = ["ccache", "nvcc", "-arch=sm_90", "-Iinclude", "-c", KERNEL, "-o", f"{cache}/kernel.o"]
    before = {**os.environ, "CCACHE_DIR": cache}
    subprocess.run(command, cwd=system.root, env=before, check=True)
    case.change(system)
    after = {**before, **case.variables, "CCACHE_LOGFILE": f"{cache}/log"}
    Path(cache, "log").unlink(missing_ok=True)
    subprocess.run(command, cwd=system.root, env=after, check=True)
    log = Path(cache, "log").read_text()
    return "gives the old object" if "Result: direct_cache_hit" in log or "cache_hit" in log else "compiles"


def compare() -> int:
    """Print the table; 1 if a change was called fresh before it was built, or though nothing was."""
    present = systems()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        for system in present:
            begin(system, Path(os.path.realpath(folder)) / system.name)
        for case in CASES:
            print(f"{case.what} ...", file=sys.stderr, flush=True)
            cells = [told(system, case) for system in present]
            rows.append((case.row, case.what, asked_of_ccache(present[0], case, f"{folder}/ccache"), *cells))
            real = case.row != "T32"
            wrong += rows[-1:] if real and any(map(_is_wrong, cells)) else []
    print("\nBefore the build; what the build system does; after it:\n")
    _print([("case", "change", "ccache", *(system.name for system in present)), *rows])
    for row in wrong:
        print(f"wrong: {row}", file=sys.stderr)
    return 1 if wrong else 0


def rebuild(rounds: int) -> int:
    """Build each project again and again untouched; 1 if anything was ever called other than fresh."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        for system in systems():
            begin(system, Path(os.path.realpath(folder)) / system.name)
            put_back(system)
            states = []
            for _ in range(rounds):
                done = tool(system, "run", "--json", "--", *system.build)
                said = json.loads(done.stderr.splitlines()[-1])
                sources = {row["state"] for row in said["sources"]}
                states += [verdict(system) if sources == {"not compiled"} else str(sources)]
            other = [state for state in states if state != "fresh"]
            wrong += len(other)
            print(f"{system.name}: {rounds} untouched rebuilds, {len(other)} not called fresh", flush=True)
    return 1 if wrong else 0


def _is_wrong(cell: str) -> bool:
    return cell.startswith("fresh") or cell.endswith("does nothing; fresh")


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
