"""Programs and libraries that an installer gave another RPATH."""

import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.toolchain, pytest.mark.needs("cmake")]

DESCRIPTION = """\
cmake_minimum_required(VERSION 3.18)
project(prog LANGUAGES CXX CUDA)
set(CMAKE_CUDA_ARCHITECTURES 90)
add_library(kernel SHARED cuda/kernel.cu)
target_include_directories(kernel PRIVATE include)
add_executable(prog src/main.cpp)
target_link_libraries(prog kernel)
install(TARGETS prog kernel)
"""
BUILD = "cmake -S . -B build -DCMAKE_INSTALL_RPATH='{}' -DCMAKE_INSTALL_LIBDIR=lib && cmake --build build"


@pytest.fixture
def installed(bare, tmp_path):
    """(RPATH) -> a project that is built and installed, and the folder where."""

    def make(rpath):
        files = {
            "cuda/kernel.cu": '#include "params.cuh"\n__global__ void k(int *p) { *p = WINDOW; }\n'
            'extern "C" int prove() { k<<<1, 1>>>(nullptr); return 88; }\n',
            "include/params.cuh": "#define WINDOW 4\n",
            "src/main.cpp": '#include <cstdio>\nextern "C" int prove();\n'
            'int main() { std::printf("%d", prove()); }\n',
            "CMakeLists.txt": DESCRIPTION,
        }
        folder = tmp_path / "installed"
        project = bare(files, ("sh", "-c", BUILD.format(rpath)), (str(folder / "bin" / "prog"),))
        project.run()
        install(project, folder)
        return project, folder

    return make


def install(project, folder):
    command = ["cmake", "--install", "build", "--prefix", str(folder)]
    subprocess.run(command, cwd=project.root, env=project.environ, check=True, capture_output=True)


@pytest.mark.parametrize("rpath", ["$ORIGIN/../lib", ""], ids=["replaced", "removed"])
def test_an_installed_copy_is_the_product_but_for_where_it_looks(installed, rpath):
    project, folder = installed(rpath)
    search = {} if rpath else {"LD_LIBRARY_PATH": str(folder / "lib")}
    first = project.root / "build" / "prog"
    assert first.read_bytes() != (folder / "bin" / "prog").read_bytes()
    done = project.gate(**search)
    assert (done.returncode, done.stdout) == (0, "88"), done.stdout + done.stderr
    project.edit("src/main.cpp", '"%d"', '"%x"')
    done = project.gate(**search)
    assert done.returncode == 125 and "src/main.cpp: its content changed" in done.stdout
    project.run()
    done = project.gate(**search)
    assert done.returncode == 125 and "another of its name" in done.stdout
    install(project, folder)
    assert project.gate(**search).stdout == "58"


def test_an_old_library_behind_a_new_program_is_what_counts(installed):
    project, folder = installed("$ORIGIN/../lib")
    (library,) = (folder / "lib").glob("libkernel.so")
    old = shutil.copy(library, folder / "old.so")
    project.edit("cuda/kernel.cu", "return 88", "return 87")
    project.run()
    install(project, folder)
    assert project.gate().stdout == "87"
    shutil.copy(old, library)
    done = project.gate()
    assert done.returncode == 125 and str(library) in done.stdout


def test_another_difference_is_another_program(installed):
    project, folder = installed("$ORIGIN/../lib")
    program = folder / "bin" / "prog"
    data = bytearray(program.read_bytes())
    at = data.index(b"%d\0")
    data[at : at + 2] = b"%x"
    program.write_bytes(data)
    assert project.gate().returncode == 125
