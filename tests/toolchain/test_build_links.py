"""Objects, device links, archives, executables, fat binaries and PTX, with a real nvcc."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from small_project import edit, lay_out

from orchestrator.build import build
from orchestrator.gate import admit
from orchestrator.rebuild import rebuild
from orchestrator.rebuild_report import rebuilt_lines
from orchestrator.recorded import Records, read_manifest
from orchestrator.workspace import Workspace

pytestmark = pytest.mark.toolchain

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SOURCES = {
    "a.cu": '#include "step.cuh"\n__device__ int next(int x) { return x + STEP; }\n',
    "b.cu": """\
__device__ int next(int);
__global__ void k(int *p) { *p = next(*p); }
extern "C" int run() { k<<<1, 1>>>(nullptr); return 5; }
""",
    "main.cu": 'extern "C" int run();\nint main() { return run(); }\n',
    "two.cu": """\
#if __CUDA_ARCH__ == 800
extern "C" __global__ void k(int *p) { *p = 1; }
#else
extern "C" __global__ void k(int *p) { *p = 2; }
#endif
""",
    "step.cuh": "#define STEP 1\n",
    "manifests/targets.toml": """\
schema = 1
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
[target.all]
kind = "archive"
uses = ["a", "b", "link"]
[target.program]
kind = "executable"
arch = "sm_90"
sources = ["main.cu"]
uses = ["all"]
[target.two]
kind = "fatbin"
sources = ["two.cu"]
flags = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"]
expect.kernels = ["k"]
expect.archs = ["sm_80", "sm_90"]
[target.text]
kind = "ptx"
arch = "sm_90"
sources = ["two.cu"]
""",
}
EVERYTHING = {"a", "b", "link", "all", "program", "two", "text"}


class Tree:
    """A project of several linked targets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": f"{Path(NVCC).parent}:/usr/bin:/bin"}

    def results(self, *names: str) -> dict[str, str]:
        outcomes = build(Workspace(self.root), names, self.environ, jobs=2).outcomes
        return {o.target: f"{o.result} {o.message}".strip() for o in outcomes}

    def stale(self, *names: str) -> dict[str, set[str]]:
        """Targets that the gate does not find fresh, with the codes of its findings."""
        verdicts = admit(self.root, names, self.environ).verdicts
        return {v.target: {f.code for f in v.findings} for v in verdicts if v.findings}

    def edit(self, name: str, old: str, new: str) -> None:
        edit(self.root / name, old, new)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Tree:
    tree = Tree(lay_out(tmp_path_factory.mktemp("links"), SOURCES))
    assert tree.results() == dict.fromkeys(EVERYTHING, "built")
    return tree


@pytest.fixture
def tree(base, tmp_path) -> Tree:
    root = tmp_path / "tree"
    shutil.copytree(base.root, root, symlinks=True)
    return Tree(root)


def test_all_kinds_are_built_once_and_admitted(tree):
    assert tree.results() == dict.fromkeys(EVERYTHING, "fresh")
    assert tree.stale() == {}
    program = tree.root / "build" / "bin" / "program"
    assert subprocess.run([program], check=False).returncode == 5


def test_an_edit_reaches_everything_that_uses_it_and_nothing_else(tree):
    tree.edit("step.cuh", "STEP 1", "STEP 2")
    assert tree.stale() == {
        "a": {"input-changed"},
        "link": {"member-stale"},
        "all": {"member-stale"},
        "program": {"member-stale"},
    }
    results = tree.results()
    assert {t for t, r in results.items() if r == "built"} == {"a", "link", "all", "program"}
    assert tree.stale() == {}


def test_only_what_was_asked_for_and_what_it_uses_is_looked_at(tree):
    tree.edit("two.cu", "= 1", "= 3")
    assert tree.results("program").keys() == EVERYTHING - {"two", "text"}
    assert tree.stale("program") == {}
    assert tree.stale() == {"two": {"input-changed"}, "text": {"input-changed"}}


def test_an_edit_for_one_architecture_of_two_is_stale(tree):
    tree.edit("two.cu", "= 2", "= 4")
    assert tree.stale("two") == {"two": {"input-changed"}}


def test_a_new_object_beside_an_old_device_link_is_refused(tree):
    """Built by hand in this order, it links without a word and runs the old kernel."""
    tree.edit("step.cuh", "STEP 1", "STEP 2")
    assert tree.results("a") == {"a": "built"}
    stale = tree.stale("link", "program")
    assert stale["link"] >= {"member-changed"}
    assert stale.keys() == {"link", "all", "program"}


def test_a_device_link_of_an_older_member_is_one_finding(tree):
    """T50: by the digests of the members, and by the code itself where a record claims otherwise."""
    workspace = Workspace(tree.root)
    older = read_manifest(workspace, "link")[0].product
    old_bytes = (tree.root / older.path).read_bytes()
    tree.edit("step.cuh", "STEP 1", "STEP 2")
    tree.results("a")
    (finding,) = findings_of(tree, "link")
    assert (finding.link, finding.code, finding.subject) == ("members", "member-changed", "a")
    tree.results()
    assert findings_of(tree, "link") == ()
    record = read_manifest(workspace, "link")[0]
    assert record.product.digest != older.digest
    place = workspace.artifact(older.digest, "link.o")
    place.parent.mkdir(exist_ok=True)
    if not place.exists():
        place.write_bytes(old_bytes)
    workspace.manifest("link").unlink()
    Records(workspace).write(replace(record, product=older))
    (finding,) = findings_of(tree, "link")
    assert (finding.link, finding.code) == ("device-link", "device-link-stale")
    assert "linked from other code" in finding.message


def findings_of(tree, target):
    verdicts = {v.target: v for v in admit(tree.root, [target], tree.environ).verdicts}
    return verdicts[target].findings


def test_what_uses_a_failed_target_is_not_begun(tree):
    tree.edit("a.cu", "return", "retrun")
    results = tree.results()
    assert results["a"].startswith("failed a: nvcc ended")
    assert {t for t, r in results.items() if r == "failed"} == {"link", "all", "program"}
    assert results["b"] == "fresh"


def test_linked_libraries_are_inputs(tree):
    def inputs(target):
        manifest, _ = read_manifest(Workspace(tree.root), target)
        closure = manifest.closure
        return {Path(m.path).name for m in (*closure.materials, *closure.common.materials)}

    assert {"a.o", "b.o", "libcudadevrt.a"} <= inputs("link")
    assert {"all.a", "libcudart_static.a", "main.cu"} <= inputs("program")


def test_fat_binaries_and_ptx_are_the_same_bytes_anywhere(tree, base):
    shutil.rmtree(tree.root / "build")
    tree.results("two", "text")
    for name in ("two.fatbin", "text.ptx"):
        both = [(t.root / "build" / "bin" / name).read_bytes() for t in (tree, base)]
        assert both[0] == both[1]


def test_second_builds_give_what_was_promised(base):
    """In the same folder: relocatable code holds a hash of its source's path."""
    rebuilt = {one.target: one for one in rebuild(Workspace(base.root), [], base.environ, print)}
    assert {one.target for one in rebuilt.values() if one.kept} == EVERYTHING
    assert {name for name, one in rebuilt.items() if one.promised == "bytes"} == {"two", "text"}
    assert rebuilt["two"].difference.identical


def test_a_record_that_a_second_build_does_not_confirm_is_told(tree):
    """The source says something else than what was built: kernels are named."""
    tree.edit("two.cu", "= 2", "= 5")
    (one,) = rebuild(Workspace(tree.root), ["two"], tree.environ, print)
    assert not one.kept
    said = rebuilt_lines([one])
    assert any("kernel k sm_90" in line for line in said)
    for level in ("file", "normalised", "device"):
        assert any(line.startswith(f"    {level} digest sha256:") for line in said), level


def test_a_flag_that_forbids_byte_identity_is_named(tree):
    text = SOURCES["manifests/targets.toml"].replace('code=sm_90"]', 'code=sm_90", "-lineinfo"]')
    (tree.root / "manifests" / "targets.toml").write_text(text)
    tree.results("two")
    (one,) = rebuild(Workspace(tree.root), ["two"], tree.environ, print)
    assert (one.promised, one.kept) == ("normalised", True)
    assert "-lineinfo" in one.note
    assert {level for level, *_sides in one.digests} == {"file", "normalised", "device"}


def test_nvcc_is_asked_once_for_commands_that_differ_in_their_own_names_alone(tmp_path):
    """Each question takes a tenth of a small compile."""
    tree = Tree(tmp_path)
    asked = tmp_path / "asked"
    path = tmp_path / "tools" / "nvcc"
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\ncase " $* " in *" --dryrun "*) echo >> "${{0%/*}}/../asked";; esac\nexec {NVCC} "$@"\n'
    )
    path.chmod(0o755)
    tree.environ["PATH"] = f"{path.parent}:/usr/bin:/bin"
    names = ("one", "two", "three", "four")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "targets.toml").write_text(
        "schema = 1\n"
        + "".join(f'[target.{n}]\nkind = "ptx"\narch = "sm_90"\nsources = ["{n}.cu"]\n' for n in names)
    )
    for name in names:
        (tmp_path / f"{name}.cu").write_text("__global__ void k() {}\n")
    assert tree.results() == dict.fromkeys(names, "built")
    # Once what the toolchain is; what the commands do at most once for each that begins before an answer.
    assert asked.read_text().count("\n") <= 3
