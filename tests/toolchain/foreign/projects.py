"""Small projects with one CUDA library and one program, for make, ninja, CMake and setuptools."""

import re
import shutil
import subprocess
from pathlib import Path


def _toolkit() -> Path:
    """The toolkit of the nvcc that is found first, which may be a wrapper: nvcc tells in its dry run."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    said = subprocess.run([nvcc, "--dryrun", "x.cu"], capture_output=True, text=True, check=False).stderr
    return Path(re.search(r"^#\$ TOP=(.*)$", said, re.MULTILINE)[1]).resolve()


CUDA = _toolkit()
RUNTIME = f"-L{CUDA}/lib64 -lcudart_static -lrt -lpthread -ldl"
"""What a program with kernels is linked with."""

SOURCES = {
    "cuda/kernel.cu": """\
#include "params.cuh"
__global__ void msm(int *p) { *p = WINDOW; }
extern "C" int prove() { msm<<<1, 1>>>(nullptr); return 88; }
""",
    "include/params.cuh": "#define WINDOW 4\n",
    "src/main.cpp": """\
#include <cstdio>
#include "text.h"
extern "C" int prove();
int main() { std::printf(TEXT, prove()); }
""",
    "src/text.h": '#define TEXT "proof in %d s\\n"\n',
    ".gitignore": "/out/\n/build/\n*.egg-info\n",
}

MAKE = {
    **SOURCES,
    "Makefile": f"""\
LIBS = -Lout -lkernel {RUNTIME}
out/prog: out/main.o out/libkernel.a
\tg++ out/main.o $(LIBS) -o $@
out/libkernel.a: out/kernel.o
\tar crs $@ $^
out/kernel.o: cuda/kernel.cu
\tmkdir -p out
\tnvcc -arch=sm_90 -Iinclude -c $< -o $@
out/main.o: src/main.cpp
\tmkdir -p out
\tg++ -c $< -o $@
""",
}

NINJA = {
    **SOURCES,
    "build.ninja": f"""\
rule cuda
  command = nvcc -arch=sm_90 -Iinclude -c $in -o $out
rule cxx
  command = g++ -MD -MF $out.d -c $in -o $out
  depfile = $out.d
rule archive
  command = rm -f $out && ar crs $out $in
rule link
  command = g++ $in {RUNTIME} -o $out
build out/kernel.o: cuda cuda/kernel.cu
build out/main.o: cxx src/main.cpp
build out/libkernel.a: archive out/kernel.o
build out/prog: link out/main.o out/libkernel.a
""",
}

CMAKE = {
    **SOURCES,
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(prog LANGUAGES CXX CUDA)
set(CMAKE_CUDA_ARCHITECTURES 90)
add_library(kernel STATIC cuda/kernel.cu)
target_include_directories(kernel PRIVATE include)
add_executable(prog src/main.cpp)
target_link_libraries(prog kernel)
""",
}

SETUPTOOLS = {
    **SOURCES,
    "cuda/kernel.cu": SOURCES["cuda/kernel.cu"]
    + """\
#include <Python.h>
static PyObject *call(PyObject *, PyObject *) { return PyLong_FromLong(prove()); }
static PyMethodDef methods[] = {{"prove", call, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "zk", "", -1, methods};
extern "C" PyObject *PyInit_zk() { return PyModule_Create(&module); }
""",
    "setup.py": f"""\
import os, subprocess, sysconfig
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Cuda(build_ext):
    def build_extensions(self):
        self.compiler.src_extensions.append(".cu")
        def compile(obj, src, ext, cc_args, extra, opts):
            python = "-I" + sysconfig.get_paths()["include"]
            nvcc = ["nvcc", "-arch=sm_90", "-Iinclude", python, "-Xcompiler", "-fPIC", "-c", src, "-o", obj]
            subprocess.check_call(nvcc)
        self.compiler._compile = compile
        super().build_extensions()

extension = Extension("zk", ["cuda/kernel.cu"], library_dirs=["{CUDA}/lib64"],
                      libraries=["cudart_static", "rt", "pthread", "dl", "stdc++"])
setup(name="zk", version="1", packages=[], ext_modules=[extension], cmdclass={{"build_ext": Cuda}})
""",
    "run.py": 'import zk\nprint("proof in", zk.prove(), "s")\n',
}

PLAIN = {
    "k.cu": '#include "params.cuh"\n__global__ void k(int *p) { *p = WINDOW; }\n'
    'extern "C" int answer() { k<<<1, 1>>>(nullptr); return 5; }\n',
    "include/params.cuh": "#define WINDOW 4\n",
    "src/main.cpp": '#include "text.h"\n#include <cstdio>\nextern "C" int answer();\n'
    "int main() { std::printf(TEXT, answer()); }\n",
    "headers/text.h": '#define TEXT "%d\\n"\n',
    ".gitignore": "*.o\n*.a\n/prog\n/first\n",
    "Makefile": f"""\
prog: main.o libk.a
\tg++ main.o -Lfirst -L. -lk {RUNTIME} -o $@
libk.a: k.o
\tar crs $@ $^
k.o: k.cu
\tnvcc -arch=sm_90 -Iinclude -c $< -o $@
main.o: src/main.cpp
\tg++ -Iheaders -c $< -o $@
""",
}
"""Sources in folders that others can stand in front of."""
