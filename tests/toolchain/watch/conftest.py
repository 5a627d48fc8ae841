"""A watch as a program, its events, and trees to watch: with the real nvcc, and with a stand-in."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
SECONDS = 60
"""After which a watch that says nothing counts as broken."""


def hear_interrupts() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watch:
    """``freshproof watch --json``, with its events as they come."""

    def __init__(self, root: Path, *words: str, path: str = "", prefix: tuple[str, ...] = ()) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "orchestrator", "watch", "--json", *words],
            cwd=root,
            env={**os.environ, "PATH": path or os.environ["PATH"]},
            preexec_fn=hear_interrupts,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: queue.Queue[dict | None] = queue.Queue()
        self.seen: list[dict] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def next(self, timeout: float = SECONDS) -> dict:
        try:
            event = self.events.get(timeout=timeout)
        except queue.Empty:
            if timeout == SECONDS:
                raise AssertionError(f"the watch says nothing after {self.seen[-8:]}") from None
            raise
        if event is None:
            raise AssertionError(f"the watch ended: {self.process.stderr.read()}")
        self.seen.append(event)
        return event

    def until(self, kind: str, **fields) -> list[dict]:
        """All events up to one of this kind that has these fields."""
        found = []
        while True:
            found.append(self.next())
            if found[-1]["event"] == kind and fields.items() <= found[-1].items():
                return found

    def round(self, **fields) -> list[dict]:
        """All events up to the end of a round."""
        return self.until("round", **fields)

    def rest(self, seconds: float = 1.0) -> None:
        """Wait until it says nothing more."""
        while True:
            try:
                self.next(seconds)
            except queue.Empty:
                return

    @staticmethod
    def built(events: list[dict]) -> dict[str, str]:
        """Target to result."""
        return {event["target"]: event["result"] for event in events if event["event"] == "built"}

    def interrupt(self) -> None:
        """As Ctrl-C does it. Nothing that it started is left."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=60) == 130, self.process.stderr.read()
        left = [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
        assert not left
        assert nothing_half_written(self.root) == []


def nothing_half_written(root: Path) -> list[str]:
    """What an interrupted command may leave: private folders, and files under their first names."""
    build = root / "build"
    return [
        str(path.relative_to(root))
        for path in build.rglob("*")
        if path.parent == build / "work" or (path.name.startswith(".") and not path.is_dir())
    ]


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def watch():
    """Starts watches; each is ended, and must end cleanly."""
    made: list[Watch] = []

    def start(root: Path, *words: str, **more) -> Watch:
        made.append(Watch(root, *words, **more))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.interrupt()


REAL_TARGETS = """schema = 1
[target.k]
kind = "cubin"
arch = "sm_90"
sources = ["src/k.cu"]
include = ["first", "inc"]
[target.other]
kind = "cubin"
arch = "sm_90"
sources = ["src/other.cu"]
include = ["inc"]
[workload.sleep]
command = ["python", "-c", "import time; time.sleep(0.02)"]
uses = ["k"]
worker = false
samples = 4
[workload.other]
command = ["python", "-c", "pass"]
uses = ["other"]
worker = false
"""


@pytest.fixture
def real(tmp_path) -> Path:
    """Two small kernels for the real nvcc, one with a header."""
    files = {
        "manifests/targets.toml": REAL_TARGETS,
        "src/k.cu": '#include "v.cuh"\nextern "C" __global__ void k(int *p) { *p = V; }\n',
        "src/other.cu": 'extern "C" __global__ void other(int *p) { *p = 7; }\n',
        "inc/v.cuh": "#define V 1\n",
    }
    return write_tree(tmp_path / "tree", files)


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory) -> Path:
    """The folder of a toolkit whose nvcc is the stand-in."""
    top = tmp_path_factory.mktemp("toolkit")
    for folder in ("bin", "nvvm/bin"):
        (top / folder).mkdir(parents=True)
    (top / "nvvm" / "bin" / "cicc").write_text("")
    source = HERE / "stand_in.c"
    subprocess.run(["gcc", "-O1", "-w", f'-DTOP="{top}"', "-o", top / "bin" / "nvcc", source], check=True)
    return top


class Tree:
    """Some units and headers for the stand-in."""

    def __init__(self, root: Path, toolkit: Path, units: int, headers: int) -> None:
        self.root, self.toolkit = root, toolkit
        self.path = f"{toolkit}/bin:{os.environ['PATH']}"
        self.slow(0)
        self.log = toolkit / "LOG"
        self.log.write_text("")
        per_unit = headers // units
        targets, files = ["schema = 1\n"], {}
        for n in range(units):
            own = range(n * per_unit, (n + 1) * per_unit)
            quoted = [f'#include "h{h}.cuh"\n' for h in (*own, "all")]
            files[f"src/u{n}.cu"] = "".join(quoted)
            targets.append(
                f'[target.u{n}]\nkind = "ptx"\narch = "sm_90"\nsources = ["src/u{n}.cu"]\n'
                'include = ["first", "inc"]\n'
            )
            files |= {f"inc/h{h}.cuh": f"// {h}\n" for h in own}
        files["inc/hall.cuh"] = "// all\n"
        files["manifests/targets.toml"] = "".join(targets)
        write_tree(root, files)

    def slow(self, milliseconds: int) -> None:
        """How long each compile takes from now on, those at work too."""
        new = self.toolkit / "SLOW.new"
        new.write_text(f"{milliseconds}\n")
        new.rename(self.toolkit / "SLOW")

    def compiles(self) -> list[int]:
        """The process of each compile that began."""
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()]

    def run(self, *words: str, root: Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            cwd=root or self.root,
            env={**os.environ, "PATH": self.path},
            capture_output=True,
            text=True,
        )

    def artifacts(self, root: Path | None = None) -> dict[str, bytes]:
        folder = (root or self.root) / "build" / "bin"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def clean_artifacts(self) -> dict[str, bytes]:
        """What a build makes of the same files in an empty tree."""
        other = self.root.parent / f"{self.root.name}-{time.monotonic_ns()}"
        shutil.copytree(self.root, other, symlinks=True, ignore=shutil.ignore_patterns("build", ".git"))
        done = self.run("build", root=other)
        assert done.returncode == 0, done.stdout + done.stderr
        made = self.artifacts(other)
        shutil.rmtree(other)
        return made


@pytest.fixture
def tree(tmp_path, stand_in):
    """tree(units, headers): such a tree."""
    return lambda units, headers: Tree(tmp_path / "tree", stand_in, units, headers)
