"""Random edits, moves, flags, tools, interruptions: what the gate calls fresh is what a clean compile gives.

The oracle runs nvcc directly on a copy of the tree and remembers its answer by the content of everything. It
knows nothing of closures. FRESHPROOF_FUZZ_EXAMPLES=100 runs a campaign of about 2,000 steps.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from orchestrator.build import build
from orchestrator.gate import admit
from orchestrator.workspace import Workspace

pytestmark = pytest.mark.toolchain

REAL = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
COUNTS: Counter[str] = Counter()
_ANSWERS: dict[str, bytes | None] = {}

HEADERS = (
    "one/a.cuh",
    "two/a.cuh",
    "src/a.cuh",
    "one/b.cuh",
    "two/b.cuh",
    "two/deep/c.cuh",
    "one/deep/c.cuh",
)
VALUES = st.integers(0, 3)
SOURCE = """\
#include "a.cuh"
#include <b.cuh>
#if __has_include("maybe.cuh")
#include "maybe.cuh"
#endif
#ifndef EXTRA
#define EXTRA 0
#endif
// {comment}
extern "C" __global__ void k(int *p) {{ *p = A + 10 * B + 100 * C + 1000 * EXTRA + {value}; }}
"""


class Tree:
    """A project and the tools in front of its PATH."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="freshproof-fuzz-"))
        self.flags = ["-O3"]
        self.variables: dict[str, str] = {}
        for folder in ("src", "one", "two/deep", "manifests", "tools"):
            (self.root / folder).mkdir(parents=True)
        self.wrapper("")
        self.write("src/k.cu", SOURCE.format(value=0, comment=""))
        self.write("two/a.cuh", '#define A 1\n#include "deep/c.cuh"\n')
        self.write("two/b.cuh", "#define B 1\n")
        self.write("two/deep/c.cuh", "#define C 1\n")
        self.targets()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def targets(self) -> None:
        flags = ", ".join(f'"{flag}"' for flag in self.flags)
        self.write(
            "manifests/targets.toml",
            'schema = 1\n[target.k]\nkind = "ptx"\narch = "sm_90"\nsources = ["src/k.cu"]\n'
            f'include = ["one", "two"]\nflags = [{flags}]\n',
        )

    def wrapper(self, extra: str) -> None:
        path = self.root / "tools" / "nvcc"
        path.write_text(f'#!/bin/sh\nexec {REAL} "$@" {extra}\n')
        path.chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.root}/tools:/usr/bin:/bin", **self.variables}

    def clean_answer(self) -> bytes | None:
        """What a clean compile of everything as it is now gives; `None` if it fails."""
        digest = hashlib.sha256(repr((self.flags, sorted(self.variables.items()))).encode())
        for folder in ("src", "one", "two", "tools"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_file():
                    digest.update(repr((str(path.relative_to(self.root)), path.read_bytes())).encode())
        key = digest.hexdigest().replace(str(self.root), "")
        if key not in _ANSWERS:
            COUNTS["clean compiles"] += 1
            _ANSWERS[key] = self._compile_cleanly()
        return _ANSWERS[key]

    def _compile_cleanly(self) -> bytes | None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("src", "one", "two"):
                shutil.copytree(self.root / name, Path(folder) / name)
            command = [f"{self.root}/tools/nvcc", "-ptx", "-arch=sm_90", *self.flags, "-Ione", "-Itwo"]
            done = subprocess.run(
                [*command, "-o", "out.ptx", "src/k.cu"], cwd=folder, env=self.environ, capture_output=True
            )
            return (Path(folder) / "out.ptx").read_bytes() if done.returncode == 0 else None

    def close(self) -> None:
        shutil.rmtree(self.root)


class Freshness(RuleBasedStateMachine):
    """Steps that a person, an editor, git or a package manager may take."""

    @initialize()
    def start(self) -> None:
        self.tree = Tree()

    def teardown(self) -> None:
        if hasattr(self, "tree"):
            self.check()
            self.tree.close()

    def check(self) -> bool:
        """The gate's answer; a fresh artifact is compared with a clean compile."""
        COUNTS["checks"] += 1
        admission = admit(self.tree.root, [], self.tree.environ)
        if admission.admitted:
            COUNTS["fresh"] += 1
            assert Path(admission.artifacts[0].path).read_bytes() == self.tree.clean_answer()
        return admission.admitted

    @rule(value=VALUES, comment=VALUES)
    def edit_source(self, value: int, comment: int) -> None:
        self.tree.write("src/k.cu", SOURCE.format(value=value, comment=comment))
        self.check()

    @rule(name=st.sampled_from(HEADERS), value=VALUES, keep_time=st.booleans())
    def write_header(self, name: str, value: int, keep_time: bool) -> None:
        path = self.tree.root / name
        before = path.stat() if path.exists() else None
        letter = path.stem.upper()
        more = '#include "deep/c.cuh"\n' if letter == "A" else ""
        self.tree.write(name, f"#define {letter} {value}\n{more}")
        if keep_time and before:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.check()

    @rule(name=st.sampled_from(HEADERS))
    def remove_header(self, name: str) -> None:
        (self.tree.root / name).unlink(missing_ok=True)
        self.check()

    @rule(folder=st.sampled_from(["src", "one", "two", "two/deep"]), there=st.booleans(), value=VALUES)
    def maybe(self, folder: str, there: bool, value: int) -> None:
        path = self.tree.root / folder / "maybe.cuh"
        if there:
            self.tree.write(f"{folder}/maybe.cuh", f"#undef EXTRA\n#define EXTRA {value}\n")
        else:
            path.unlink(missing_ok=True)
        self.check()

    @rule()
    def touch_everything(self) -> None:
        for number, path in enumerate(self.tree.root.glob("*/**/*.cu*")):
            os.utime(path, (number, number))
        self.check()

    @rule()
    def swap_folders(self) -> None:
        root = self.tree.root
        (root / "one").rename(root / "three")
        (root / "two").rename(root / "one")
        (root / "three").rename(root / "two")
        self.check()

    @rule(
        flags=st.lists(
            st.sampled_from(["-O3", "-DEXTRA=1", "-DEXTRA=2", "-use_fast_math"]), max_size=2, unique=True
        )
    )
    def set_flags(self, flags: list[str]) -> None:
        self.tree.flags = flags
        self.tree.targets()
        self.check()

    @rule(flag=st.sampled_from(["", "-DEXTRA=3", "-DNOTHING"]))
    def set_variable(self, flag: str) -> None:
        self.tree.variables = {"NVCC_APPEND_FLAGS": flag} if flag else {}
        self.check()

    @rule(extra=st.sampled_from(["", "-DEXTRA=7", "-DEXTRA=8"]))
    def edit_wrapper(self, extra: str) -> None:
        self.tree.wrapper(extra)
        self.check()

    @rule()
    def damage_artifact(self) -> None:
        for path in (self.tree.root / "build" / "artifacts").glob("*/*"):
            path.chmod(0o644)
            path.write_bytes(path.read_bytes()[:-1] + b" ")
        self.check()

    @rule()
    def build(self) -> None:
        COUNTS["builds"] += 1
        (outcome,) = build(Workspace(self.tree.root), [], self.tree.environ).outcomes
        compiles = self.tree.clean_answer() is not None
        assert self.check() == compiles, outcome

    @rule(wait=st.floats(0, 0.7))
    def killed_build(self, wait: float) -> None:
        COUNTS["killed builds"] += 1
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "build"], cwd=self.tree.root,
            env={**os.environ, **self.tree.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(wait)
        process.kill()
        process.wait()
        self.check()

    @rule(wait=st.floats(0, 0.5), value=VALUES, back=st.booleans())
    def edit_during_build(self, wait: float, value: int, back: bool) -> None:
        COUNTS["edits during builds"] += 1
        path = self.tree.root / "two" / "b.cuh"

        def disturb() -> None:
            time.sleep(wait)
            kept = path.read_bytes() if path.exists() else None
            path.write_text(f"#define B {value}\n")
            if back and kept is not None:
                time.sleep(0.02)
                path.write_bytes(kept)

        editor = threading.Thread(target=disturb)
        editor.start()
        build(Workspace(self.tree.root), [], self.tree.environ)
        editor.join()
        self.check()

    @precondition(lambda self: hasattr(self, "tree"))
    @rule()
    def lose_cache(self) -> None:
        shutil.rmtree(self.tree.root / "build" / "cache", ignore_errors=True)
        self.check()


TestFreshness = Freshness.TestCase
TestFreshness.settings = settings(
    max_examples=int(os.environ.get("FRESHPROOF_FUZZ_EXAMPLES", "3")),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)


def test_the_campaign_reached_both_answers(capsys):
    """After the machine above: it saw fresh and other states, or it proved nothing."""
    with capsys.disabled():
        sys.stdout.write(f"\n{dict(COUNTS)}\n")
    assert 0 < COUNTS["fresh"] < COUNTS["checks"]
