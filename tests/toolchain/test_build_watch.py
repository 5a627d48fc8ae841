"""``freshproof watch`` in a real tree: what a save affects is built and verified, and Ctrl-C ends it."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
TARGETS = """schema = 1
[target.k]
kind = "ptx"
arch = "sm_90"
sources = ["src/k.cu"]
include = ["later", "inc"]
[target.other]
kind = "ptx"
arch = "sm_90"
sources = ["src/other.cu"]
"""


def hear_interrupts() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watch:
    """The command, with its lines as they come."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "orchestrator", "watch"],
            cwd=root,
            env={**os.environ, "PATH": f"{Path(NVCC).parent}:/usr/bin:/bin"},
            preexec_fn=hear_interrupts,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.rstrip())

    def until(self, text: str) -> list[str]:
        """Lines up to one that holds ``text``."""
        seen = []
        while not seen or text not in seen[-1]:
            seen.append(self.lines.get(timeout=120))
        return seen


@pytest.fixture
def root(tmp_path) -> Path:
    files = {
        "manifests/targets.toml": TARGETS,
        "src/k.cu": '#include "v.cuh"\nextern "C" __global__ void k(int *p) { *p = V; }\n',
        "src/other.cu": 'extern "C" __global__ void other() {}\n',
        "inc/v.cuh": "#define V 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_save_builds_and_verifies_what_it_affects(root):
    watch = Watch(root)
    try:
        watch.until("verified k, other")
        (root / "inc" / "v.cuh").write_text("#define V 2\n")
        seen = watch.until("verified")
        assert seen[-1] == "  verified k"
        assert any("input changed: inc/v.cuh" in line for line in seen)
        (root / "later").mkdir()
        (root / "later" / "v.cuh").write_text("#define V 3\n")
        assert any("name appeared: later/v.cuh" in line for line in watch.until("verified k"))
        (root / "src" / "k.cu").write_text("nonsense\n")
        assert "k failed" in watch.until("--- ")[-1]
        (root / "manifests" / "targets.toml").write_text("schema = 2\n")
        watch.until("error: manifests/targets.toml:1: schema")
        (root / "manifests" / "targets.toml").write_text(TARGETS)
        (root / "src" / "k.cu").write_text('extern "C" __global__ void k() {}\n')
        watch.until("verified k")
    finally:
        watch.process.send_signal(signal.SIGINT)
        assert watch.process.wait(timeout=60) == 130
