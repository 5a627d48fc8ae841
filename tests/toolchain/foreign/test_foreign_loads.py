"""What is really linked and loaded: git dependencies, device links, other copies, processes that go on."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

LIBRARY = """\
__global__ void k(int *p) { *p = 1; }
extern "C" int answer() { k<<<1, 1>>>(nullptr); return 5; }
"""
SERVER = """\
#include <cstdio>
#include <unistd.h>
extern "C" int answer();
int main(int count, char **) {
    std::printf("%d\\n", answer());
    std::fflush(stdout);
    if (count > 1) sleep(60);
}
"""


@pytest.fixture
def shared(tmp_path, bare):
    """A program with a CUDA shared library, by make."""
    makefile = """\
all: libk.so server
libk.so: k.cu
\tnvcc -arch=sm_90 -shared -Xcompiler -fPIC -cudart static $< -o new.so && mv new.so $@
server: server.cpp libk.so
\tg++ $< -L. -lk -Wl,-rpath,'$$ORIGIN' -o $@
"""
    project = bare({"Makefile": makefile, "k.cu": LIBRARY, "server.cpp": SERVER}, ("make",), ("./server",))
    assert project.run() == {"k.cu": "compiled"}
    return project


def test_another_copy_of_the_library_is_not_loaded_unnoticed(shared):
    done = shared.gate()
    assert (done.returncode, done.stdout) == (0, "5\n")
    old = shared.root / "old"
    old.mkdir()
    source = shared.root / "old.cu"
    source.write_text(LIBRARY.replace("return 5", "return 4"))
    flags = ["-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-cudart", "static"]
    shared.alone("nvcc", *flags, "old.cu", "-o", "old/libk.so")
    source.unlink()
    done = shared.gate(LD_LIBRARY_PATH=str(old))
    assert done.returncode == 125
    assert f"{old}/libk.so would be loaded" in done.stdout
    shutil.move(old / "libk.so", old / "hidden.so")
    load = "import ctypes, sys; ctypes.CDLL('./libk.so'); ctypes.CDLL(sys.argv[1])"
    done = shared.tool("gate", "--", "/usr/bin/python3", "-c", load, "old/hidden.so")
    assert done.returncode == 125, "named on the command line"
    late = load.replace("sys.argv[1]", "'old/' + 'hidden.so'")
    done = shared.tool("gate", "--", "/usr/bin/python3", "-c", late)
    assert done.returncode == 6 and "hidden.so" in done.stderr, "seen only once it was loaded"


def test_a_process_that_still_runs_the_old_library(shared):
    server = subprocess.Popen(["./server", "stay"], cwd=shared.root, stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"5\n"
        shared.edit("k.cu", "return 5", "return 6")
        assert shared.run() == {"k.cu": "compiled"}
        code, states, said = shared.verify()
        assert code == 5
        assert states[f"process {server.pid} (server)"] == "stale"
        assert "still runs an older libk.so" in said
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert shared.verify()[0] == 0


def test_a_new_object_with_an_old_device_link(bare):
    makefile = """\
FLAGS = -arch=sm_90 -rdc=true
prog: a.o b.o link.o
\tg++ a.o b.o link.o -LLIBRARIES -lcudadevrt RUNTIME -o prog
link.o:
\tnvcc -arch=sm_90 -dlink a.o b.o -o link.o
%.o: %.cu
\tnvcc $(FLAGS) -c $< -o $@
link.o: | a.o b.o
"""
    files = {
        "Makefile": makefile,
        "a.cu": "__device__ int next(int x) { return x + 1; }\n",
        "b.cu": "__device__ int next(int);\n__global__ void k(int *p) { *p = next(*p); }\n"
        "int main() { k<<<1, 1>>>(nullptr); return 3; }\n",
    }
    project = bare(files, ("make",), ("./prog",))
    project.run()
    assert project.gate().returncode == 3
    project.edit("a.cu", "x + 1", "x + 2")
    assert project.run() == {"a.cu": "compiled", "b.cu": "not compiled"}
    done = project.gate()
    assert done.returncode == 125
    assert "link.o was made with an older" in done.stdout


def test_a_build_that_clears_its_environment_is_seen(bare):
    makefile = "k.cubin: k.cu\n\tenv -i PATH=$$PATH nvcc -arch=sm_90 -cubin $< -o $@\n"
    project = bare({"Makefile": makefile, "k.cu": LIBRARY}, ("make",), ("true",))
    assert project.run() == {"k.cu": "compiled"}
    assert project.verify()[1] == {"k.cubin": "fresh"}


def test_what_no_step_made_is_unproven(bare):
    """Objects of a build that was not watched, linked by one that is."""
    makefile = """\
prog: k.o main.o
\tg++ main.o k.o RUNTIME -o $@
k.o: k.cu
\tnvcc -arch=sm_90 -c $< -o $@
main.o: server.cpp
\tg++ -c $< -o $@
"""
    project = bare({"Makefile": makefile, "k.cu": LIBRARY, "server.cpp": SERVER}, ("make",), ("./prog",))
    project.alone("make", "k.o")
    project.run()
    code, states, said = project.verify()
    assert code == 5 and states == {"prog": "unproven"}
    assert "k.o: was made by no recorded step" in said


@pytest.mark.parametrize("driver", ["g++", "nvcc"])
def test_an_object_that_the_build_removes_leaves_its_program_unproven(bare, driver):
    """What went into the program cannot be read any more."""
    makefile = f"""\
prog: k.cu server.cpp
\tnvcc -arch=sm_90 -c k.cu -o k.o
\t{driver} server.cpp k.o RUNTIME -o $@
\trm k.o
"""
    project = bare({"Makefile": makefile, "k.cu": LIBRARY, "server.cpp": SERVER}, ("make",), ("./prog",))
    project.run()
    code, states, said = project.verify()
    assert code == 5 and states == {"prog": "unproven"}
    assert "k.o: is gone" in said


@pytest.mark.needs("cargo", "git")
def test_a_git_dependency_edited_in_place(tmp_path, bare, story_files):
    crate = tmp_path / "upstream"
    shutil.copytree(story_files / "groth16-cuda", crate)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-C", str(crate)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *words], check=True)
    files = {
        "Cargo.toml": '[package]\nname = "prove-bench"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\ngroth16-cuda = {{ git = "file://{crate}" }}\n',
        "src/main.rs": (story_files / "prove-bench/src/main.rs").read_text(),
        ".gitignore": "/target\n",
    }
    project = bare(files, ("cargo", "build"), ("target/debug/prove-bench",))
    project.environ["CARGO_HOME"] = str(tmp_path / "cargo-home")
    project.environ.setdefault("RUSTUP_HOME", str(Path.home() / ".rustup"))
    project.run()
    assert project.gate().returncode == 0
    (source,) = (tmp_path / "cargo-home").glob("git/checkouts/*/*/cuda/groth16_cuda.cu")
    source.write_text(source.read_text().replace("return 88", "return 83"))
    done = project.gate()
    assert done.returncode == 125 and os.fspath(source) in done.stdout
    # A newer cargo takes it for fresh; cargo 0.66 compiles it, unrecorded. The gate refuses either way.
    project.alone()
    assert project.gate().returncode == 125


def test_an_earlier_library_under_another_name_elsewhere(shared, tmp_path):
    assert shared.gate().returncode == 0
    old = shutil.copy(shared.root / "libk.so", tmp_path / "other.so")
    shared.edit("k.cu", "return 5", "return 7")
    assert shared.run() == {"k.cu": "compiled"}
    late = f"import ctypes; ctypes.CDLL('{tmp_path}/' + 'other.so')"
    done = shared.tool("gate", "--", "/usr/bin/python3", "-c", late)
    assert done.returncode == 6
    assert f"{old} was loaded; the recorded build made libk.so" in done.stderr
    assert shared.tool("gate", "--", "/usr/bin/python3", "-c", late, old).returncode == 125
