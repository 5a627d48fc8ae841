"""`freshproof verify`, level by level: each has one mutation that yields exactly its finding and no other."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_project import edit, freshproof, lay_out

from orchestrator.canonical import digest_bytes
from orchestrator.manifest import to_bytes
from orchestrator.objects.elf import read_elf
from orchestrator.objects.stamp import read_stamps
from orchestrator.recorded import read_manifest
from orchestrator.workspace import Workspace

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SOURCES = {
    "k.cu": '#include <step.cuh>\nextern "C" __global__ void k(int *p) { *p += STEP; }\n',
    "a.cu": '#include "step.cuh"\n__device__ int next(int x) { return x + STEP; }\n',
    "b.cu": "__device__ int next(int);\n__global__ void run(int *p) { *p = next(*p); }\n",
    "host.cu": 'extern "C" int answer() { return 42; }\n',
    "step.cuh": "#define STEP 1\n",
    "manifests/targets.toml": """\
schema = 1
[target.k]
kind = "cubin"
arch = "sm_90"
sources = ["k.cu"]
include = ["first", "."]
flags = ["-O3"]
expect.kernels = ["k"]
[target.a]
kind = "object"
arch = "sm_90"
sources = ["a.cu"]
flags = ["-rdc=true"]
[target.b]
kind = "object"
arch = "sm_90"
sources = ["b.cu"]
flags = ["-rdc=true"]
[target.link]
kind = "device-link"
arch = "sm_90"
uses = ["a", "b"]
[target.host]
kind = "shared-library"
sources = ["host.cu"]
""",
}


class Tree:
    """A project, and an nvcc of its own: a wrapper in front of the real one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self.variables = {"PATH": f"{root}/wrap:/usr/bin:/bin", "LD_LIBRARY_PATH": ""}

    def write(self, name: str, text: str) -> None:
        lay_out(self.root, {name: text})

    def edit(self, name: str, old: str, new: str) -> None:
        edit(self.root / name, old, new)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return freshproof(self.root, *arguments, **self.variables)

    def build(self, *names: str) -> None:
        done = self.run("build", *names)
        assert done.returncode == 0, done.stdout + done.stderr

    def verify(self, target: str) -> tuple[int, dict[str, Any]]:
        """Exit code, and the verdict on one target."""
        done = self.run("verify", "--json", target)
        assert done.stdout, done.stderr
        return done.returncode, {v["target"]: v for v in json.loads(done.stdout)["targets"]}[target]

    def artifact(self, target: str) -> Path:
        return self.root / self.record(target).product.path

    def record(self, target: str) -> Any:
        manifest, problem = read_manifest(self.workspace, target)
        assert manifest is not None, problem
        return manifest

    def claim(self, target: str, data: bytes) -> None:
        """Make the record say that these bytes are the target's product."""
        manifest = self.record(target)
        digest = digest_bytes(data)
        path = self.workspace.artifact(digest, Path(manifest.product.path).name)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        product = replace(manifest.product, path=self.workspace.relative(path), digest=digest)
        self.workspace.manifest(target).unlink()
        self.workspace.manifest(target).write_bytes(to_bytes(replace(manifest, product=product)))


def make(root: Path) -> Tree:
    tree = Tree(lay_out(root, SOURCES))
    tree.write("wrap/nvcc", f'#!/bin/sh\nexec {NVCC} "$@"\n')
    (root / "wrap/nvcc").chmod(0o755)
    return tree


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = make(tmp_path_factory.mktemp("levels"))
    tree.build()
    return tree


@pytest.fixture
def tree(base: Tree) -> Tree:
    """The project as it was built, at its own place, since the wrapper's path is part of the command."""
    saved = base.root.with_name("saved")
    if not saved.exists():
        shutil.copytree(base.root, saved, symlinks=True)
    shutil.rmtree(base.root)
    shutil.copytree(saved, base.root, symlinks=True)
    base.variables["LD_LIBRARY_PATH"] = ""
    return base


def flip_a_byte(tree: Tree) -> None:
    """T18."""
    path = tree.artifact("k")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def forge_the_stamp(tree: Tree) -> None:
    data = tree.artifact("k").read_bytes()
    (stamp,) = read_stamps(read_elf(data))
    tree.claim("k", data[: stamp.offset] + b"7" * 64 + data[stamp.offset + 64 :])


def drop_the_kernel(tree: Tree) -> None:
    """T25: the artifact, as recorded, holds no such kernel."""
    data = tree.artifact("k").read_bytes()
    assert data.count(b"\0k\0") == 1
    tree.claim("k", data.replace(b"\0k\0", b"\0j\0"))


def build_a_member_alone(tree: Tree) -> None:
    tree.edit("step.cuh", "STEP 1", "STEP 2")
    tree.build("a")


def link_older_members(tree: Tree) -> None:
    """T50: a record says that the old device link was made from the new objects."""
    older = tree.artifact("link").read_bytes()
    tree.edit("step.cuh", "STEP 1", "STEP 2")
    tree.build()
    tree.claim("link", older)


def leave_an_older_copy(tree: Tree) -> None:
    shutil.copytree(tree.artifact("host").parent, tree.root / "installed")
    tree.edit("host.cu", "42", "43")
    tree.build()


MUTATIONS: list[tuple[str, str, Callable[[Tree], None], str, str]] = [
    ("k", "plan", lambda t: t.edit("manifests/targets.toml", "-O3", "-O2"), "flags-changed", "command of k"),
    ("k", "inputs", lambda t: t.edit("step.cuh", "1", "1 // "), "input-changed", "step.cuh"),
    ("k", "inputs", lambda t: t.write("first/step.cuh", "\n"), "name-appeared", "first/step.cuh"),
    ("k", "toolchain", lambda t: t.edit("wrap/nvcc", "exec", "exec "), "tool-changed", "wrap/nvcc"),
    ("k", "artifact", flip_a_byte, "artifact-changed", "k.cubin"),
    ("k", "contents", drop_the_kernel, "kernel-missing", "k"),
    ("k", "contents", forge_the_stamp, "stamp-differs", "freshproof_stamp_k"),
    ("link", "members", build_a_member_alone, "member-changed", "a"),
    ("link", "device-link", link_older_members, "device-link-stale", "link"),
    ("host", "copies", leave_an_older_copy, "copy-stale", "installed/host.so"),
]


@pytest.mark.parametrize(
    ("target", "link", "mutate", "code", "subject"), MUTATIONS, ids=[f"{m[1]}-{m[3]}" for m in MUTATIONS]
)
def test_each_mutation_yields_exactly_its_finding(
    tree: Tree, target: str, link: str, mutate: Callable[[Tree], None], code: str, subject: str
) -> None:
    assert tree.verify(target)[0] == 0
    mutate(tree)
    answer, verdict = tree.verify(target)
    assert [(f["link"], f["code"]) for f in verdict["findings"]] == [(link, code)]
    (finding,) = verdict["findings"]
    assert finding["subject"].endswith(subject)
    assert finding["recorded"] != finding["observed"]
    assert finding["remedy"]
    assert (answer, verdict["state"]) == (5, "stale")
    level = "stamp" if code.startswith("stamp") else link
    assert {row["level"]: row["findings"] for row in verdict["levels"] if row["findings"]} == {level: 1}


def test_all_levels_are_shown(tree: Tree) -> None:
    levels = {
        name: [row["level"] for row in tree.verify(name)[1]["levels"]] for name in ("k", "link", "host")
    }
    before, after = ["plan", "inputs", "toolchain", "artifact", "contents"], ["copies"]
    assert levels["k"] == levels["host"] == [*before, "stamp", *after]
    assert levels["link"] == [*before, "members", "device-link", *after]


def test_current_copies_are_counted_and_what_cannot_be_read_is_unproven(tree: Tree) -> None:
    """Under any name, in the project; by name in LD_LIBRARY_PATH; not in another project's own store."""
    (tree.root / "installed").mkdir()
    shutil.copy(tree.artifact("host"), tree.root / "installed" / "other-name")
    shutil.copytree(tree.root / "build", tree.root / "nested" / "build", symlinks=True)
    tree.write("nested/manifests/targets.toml", "schema = 1\n")
    answer, verdict = tree.verify("host")
    assert (answer, verdict["levels"][-1]["checked"]) == (0, "1 elsewhere, all current")
    elsewhere = tree.root.with_name("elsewhere")
    shutil.rmtree(elsewhere, ignore_errors=True)
    elsewhere.mkdir()
    (elsewhere / "host.so").write_bytes(tree.artifact("host").read_bytes()[:-8])
    assert tree.verify("host")[0] == 0
    tree.variables["LD_LIBRARY_PATH"] = str(elsewhere)
    answer, verdict = tree.verify("host")
    assert (answer, verdict["state"]) == (5, "unproven")
    assert [f["code"] for f in verdict["findings"]] == ["copy-unreadable"]
