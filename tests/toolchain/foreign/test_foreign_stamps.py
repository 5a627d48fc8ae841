"""`run --stamp`: notes in what nvcc makes, carried into what is linked; verdicts as without."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

NOTHING_TO_DO = {"make": "up to date", "ninja": "no work to do", "cmake": "Built target prog"}


def told(project, *words):
    """What is said of a stamped build."""
    project.run(*words, options=("--stamp",))
    return project.document


def inspected(project, name):
    """The stamps in a file with the steps that they name."""
    done = project.tool("inspect", "--json", name)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["files"][0].get("steps", [])


@pytest.mark.parametrize(
    "system", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("make", "ninja", "cmake")]
)
def test_a_stamped_build_is_fresh_tells_its_steps_and_has_nothing_left_to_do(project_of, system):
    project = project_of(system)
    document = told(project)
    (given,) = document["stamped"]
    assert given["sources"] == ["cuda/kernel.cu"] and document["not_stamped"] == []
    assert project.gate().returncode == 0

    (found,) = inspected(project, project.program[0])
    assert (found["digest"], found["sources"]) == (given["stamp"], ["cuda/kernel.cu"])
    assert found["step"]["path"] == given["path"] and found["changed"] == []
    closure = project.root / ".freshproof" / "manifests" / f"{found['step']['manifest'][7:]}.json"
    assert "include/params.cuh" in closure.read_text()
    project.edit_unseen("include/params.cuh", "WINDOW 4", "WINDOW 5")
    (found,) = inspected(project, project.program[0])
    assert found["changed"] == [str(project.root / "include/params.cuh")]
    project.edit_unseen("include/params.cuh", "WINDOW 5", "WINDOW 4")

    path = Path(given["path"])
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert NOTHING_TO_DO[system] in project.alone()
    assert told(project)["stamped"] == []
    assert before == (path.read_bytes(), path.stat().st_mtime_ns)
    assert project.gate().returncode == 0


@pytest.mark.needs("cargo")
def test_a_stamp_of_a_build_script_reaches_the_program(story_files, bare):
    project = bare({}, ("cargo", "build", "--release", "--offline"), ("target/release/prove-bench",), "story")
    (given,) = told(project)["stamped"]
    assert given["sources"] == ["groth16-cuda/cuda/groth16_cuda.cu"]
    (found,) = inspected(project, "target/release/prove-bench")
    assert found["digest"] == given["stamp"]
    assert told(project)["stamped"] == []
    assert project.gate().returncode == 0


def verdicts(project, *options):
    """What the tool says of a series of edits, in each build of them."""
    said = []

    def build():
        states = project.run(options=options)
        said.append((states, project.gate().returncode))

    build()
    old = (project.root / "out/libkernel.a").read_bytes()
    project.edit("cuda/kernel.cu", "return 88", "return 83")
    said.append(project.gate().returncode)
    build()
    project.edit("include/params.cuh", "WINDOW 4", "WINDOW 5")
    build()
    (project.root / "out/kernel.o").unlink()
    build()
    (project.root / "out/libkernel.a").write_bytes(old)
    build()
    return said


@pytest.mark.needs("make")
def test_verdicts_are_the_same_with_stamps_and_words_sharper(project_of):
    project = project_of("make")
    stamped = verdicts(project, "--stamp")
    refusal = project.gate().stdout
    assert "made with an older out/libkernel.a" in refusal
    assert "by its stamps out/prog holds cuda/kernel.cu (made 20" in refusal
    assert "as out/kernel.o; changed since: cuda/kernel.cu, include/params.cuh)" in refusal
    assert stamped[-1] == ({"cuda/kernel.cu": "not compiled"}, 125)
    assert verdicts(project_of("make", "plain")) == stamped


STEADY = {
    "k.cu": '__global__ void k() {}\nextern "C" void f() { k<<<1, 1>>>(); }\n',
    "Makefile": "k.o: k.cu\n\tmkdir -p keep\n\tnvcc -arch=sm_90 --keep --keep-dir keep -c k.cu -o k.o\n",
}


@pytest.mark.needs("make")
def test_equal_builds_in_two_folders_give_equal_bytes(bare):
    """nvcc gives its temporary files names of their own unless it is told to keep them."""
    plain, other = (bare(STEADY, ("make",), (), name) for name in ("plain", "plain2"))
    for project in (plain, other):
        project.alone("make")
    assert (plain.root / "k.o").read_bytes() == (other.root / "k.o").read_bytes()

    stamped, again = (bare(STEADY, ("make",), (), name) for name in ("stamped", "elsewhere"))
    for project in (stamped, again):
        assert [one["sources"] for one in told(project, "make")["stamped"]] == [["k.cu"]]
    data = (stamped.root / "k.o").read_bytes()
    assert data == (again.root / "k.o").read_bytes()
    size = (plain.root / "k.o").stat().st_size
    assert data[64:size] == (plain.root / "k.o").read_bytes()[64:], "what nvcc wrote is where it was"


@pytest.mark.needs("make")
def test_steps_of_every_kind_and_what_is_left_alone(bare):
    project = bare(
        {
            "a.cu": "__device__ int two() { return 2; }\n",
            "b.cu": "extern __device__ int two();\n__global__ void k(int *p) { *p = two(); }\n"
            "int main() { k<<<1, 1>>>(nullptr); return 7; }\n",
            "c.cpp": "int c() { return 3; }\n",
            "Makefile": "NVCC = nvcc -arch=sm_90\n"
            "all: prog whole k.cubin k.ptx link.o host.o\n"
            "a.o b.o &: a.cu b.cu\n\t$(NVCC) -dc a.cu b.cu\n"
            "dl.o: a.o b.o\n\t$(NVCC) -dlink $^ -o $@\n"
            "prog: a.o b.o dl.o\n\tg++ $^ $(LIBS) -o $@\n"
            "whole: a.cu b.cu\n\t$(NVCC) -rdc=true $^ -o $@\n"
            "k.cubin: a.cu\n\t$(NVCC) -cubin $< -o $@\n"
            "k.ptx: a.cu\n\tnvcc -ptx $< -o $@\n"
            "link.o: c.cpp\n\tln -sf real.o $@; nvcc -c $< -o $@\n"
            "host.o: c.cpp\n\tg++ -c $< -o $@\n"
            "LIBS = RUNTIME\n",
        },
        ("make",),
        (),
    )
    document = told(project, "make")
    names = {Path(one["path"]).name: one["sources"] for one in document["stamped"]}
    assert names == {"a.o": ["a.cu"], "b.o": ["b.cu"], "dl.o": ["a.o", "b.o"]}
    left = {Path(one["path"]).name: one["reason"] for one in document["not_stamped"]}
    assert left.pop("link.o") == "Too many levels of symbolic links"
    assert left == {
        "whole": "compiled and linked in one step",
        "k.cubin": "no relocatable object of host code",
        "k.ptx": "no relocatable object of host code",
    }
    assert inspected(project, "host.o") == inspected(project, "real.o") == []
    assert len(inspected(project, "prog")) == 3
    assert subprocess.run([project.root / "prog"], check=False).returncode == 7
    assert project.tool("verify").returncode == 0

    # what strip and ar do to notes
    for name, commands in {
        "stripped": ("cp prog stripped", "strip stripped"),
        "less.a": ("ar crs less.a a.o b.o", "ar d less.a a.o"),
        "kept.o": ("cp a.o kept.o", "strip -g kept.o"),
        "joined.o": ("ld -r a.o b.o -o joined.o",),
    }.items():
        for words in commands:
            project.alone(*words.split())
        count = {"stripped": 3, "less.a": 1, "kept.o": 1, "joined.o": 2}[name]
        assert len(inspected(project, name)) == count, name
    project.alone("objcopy", "--remove-section", ".note.freshproof", "prog", "bare")
    assert inspected(project, "bare") == []
    assert subprocess.run([project.root / "bare"], check=False).returncode == 7


@pytest.mark.needs("make", "ccache")
def test_a_cache_of_objects_keeps_them_as_nvcc_made_them(bare):
    project = bare(
        {
            "k.cu": "__global__ void k() {}\n",
            "Makefile": "all: k.o plain.o\nk.o: k.cu\n\tccache nvcc -arch=sm_90 -c k.cu -o k.o\n"
            "plain.o: k.cu\n\tnvcc -arch=sm_90 -c k.cu -o plain.o\n",
        },
        ("make",),
        (),
    )
    project.environ["CCACHE_DIR"] = str(project.root.parent / "cache")
    document = told(project, "make")
    assert [Path(one["path"]).name for one in document["stamped"]] == ["plain.o"]
    (left,) = document["not_stamped"]
    assert left["reason"].startswith("ccache ran nvcc")
    assert inspected(project, "k.o") == []
    (project.root / "k.o").unlink()
    project.alone("make")
    assert "Freshproof" not in project.alone("readelf", "-n", "k.o")


@pytest.mark.needs("make")
def test_a_build_that_cannot_reach_the_stamper_is_as_ever(bare):
    """nvcc without the observer's variables, as in a container, and one that fails."""
    project = bare(
        {
            "k.cu": "__global__ void k() {}\n",
            "Makefile": "all: a.o b.o\n"
            "a.o: k.cu\n\trm -f $${FRESHPROOF_OBSERVER_LOG}.stamps; nvcc -c $< -o $@\n"
            "b.o: k.cu\n\tnvcc -c $< -o $@\n",
        },
        ("make",),
        (),
    )
    document = told(project, "make")
    assert document["stamped"] == [] and len(document["not_stamped"]) == 2
    assert {one["reason"] for one in document["not_stamped"]} == {
        "nvcc was not seen to end well, or could not ask"
    }
    assert project.tool("verify").returncode == 0
    project.file("k.cu", "no C++\n")
    done = project.tool("run", "--stamp", "--", "make")
    assert done.returncode == 2 and "stamped" not in done.stderr
