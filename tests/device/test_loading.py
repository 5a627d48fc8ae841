"""What gets into the GPU: the admitted bytes, the newest build, and nothing compiled on the way."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.errors import Missing, Refused
from prover.artifact import Artifact

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __device__ const char freshproof_stamp_version[76] = "freshproof:" STAMP;
extern "C" __global__ void version(unsigned* out) { *out = VERSION; }
"""
STAMP = "5eed" * 16


@pytest.fixture
def build(tmp_path, gpu):
    """Builds the kernel of some version at one and the same path."""
    source = tmp_path / "version.cu"
    source.write_text(SOURCE)
    cubin = tmp_path / "version.cubin"

    def build(version: int, kind: str = "-cubin") -> Artifact:
        defines = [f"-DVERSION={version}", f'-DSTAMP="{STAMP}"']
        subprocess.run(["nvcc", kind, f"-arch={gpu.arch}", *defines, "-o", cubin, source], check=True)
        digest = "sha256:" + hashlib.sha256(cubin.read_bytes()).hexdigest()
        return Artifact("version", cubin, digest, STAMP, gpu.arch)

    return build


@pytest.fixture
def version_of(gpu, memory, stream):
    from prover.backends.cuda_module import LoadedModule

    def version_of(artifact: Artifact) -> int:
        out = memory.allocate(4, "the version")
        LoadedModule.load(gpu, artifact).kernel("version")(1, 1, (out,), stream)
        return int(out.download(stream).view(np.uint32)[0])

    return version_of


def test_a_rebuild_at_the_same_path_runs_at_once(build, version_of):
    assert version_of(build(1)) == 1
    assert version_of(build(2)) == 2


def test_the_trap_that_loading_by_path_is(build, memory, stream):
    """CuPy remembers modules by path: after a rebuild it runs the old kernel."""
    import cupy

    out = memory.allocate(4, "the version")

    path = str(build(1).path)

    def by_path() -> int:
        kernel = cupy.RawModule(path=path).get_function("version")
        with stream:
            kernel((1,), (1,), (np.uint64(out.ptr),))
        return int(out.download(stream).view(np.uint32)[0])

    assert by_path() == 1
    build(2)
    assert by_path() == 1, "CuPy now loads what is at the path"


def test_other_bytes_than_admitted_are_refused(build, version_of):
    admitted = build(1)
    build(2)
    with pytest.raises(Refused, match="the gate admitted"):
        version_of(admitted)


def test_another_stamp_is_refused(build, version_of):
    with pytest.raises(Refused, match="stamp"):
        version_of(replace(build(1), stamp="0" * 64))


def test_a_module_without_the_stamp_is_refused(build, version_of):
    with pytest.raises(Refused, match="no symbol"):
        version_of(replace(build(1), target="another"))


def test_ptx_is_refused(build, version_of):
    with pytest.raises(Refused, match="no cubin"):
        version_of(build(1, "-ptx"))


def test_code_for_another_gpu_is_missing(build, version_of):
    with pytest.raises(Missing, match="sm_70"):
        version_of(replace(build(1), arch="sm_70"))


def test_a_kernel_that_is_not_there_is_refused(build, gpu):
    from prover.backends.cuda_module import LoadedModule

    with pytest.raises(Refused, match="no kernel"):
        LoadedModule.load(gpu, build(1)).kernel("nothing")


def test_memory_says_need_and_have(gpu, memory):
    _, total = gpu.memory()
    with pytest.raises(Missing, match=r"GiB of GPU memory are needed for twice the memory; .* GiB free"):
        memory.allocate(2 * total, "twice the memory")
    assert memory.used == 0


def test_a_launch_that_cannot_be_is_an_error(build, gpu, stream, memory):
    from orchestrator.errors import BrokenRun
    from prover.backends.cuda_module import LoadedModule

    kernel = LoadedModule.load(gpu, build(1)).kernel("version")
    with pytest.raises(BrokenRun, match="version"):
        kernel(1, 4096, (memory.allocate(4, "out"),), stream)


def test_a_kernel_asked_for_twice_keeps_the_larger_limit_of_shared_memory(build, gpu, memory, stream):
    """The driver has one limit a kernel: two users of different sizes must not lower each other's."""
    from prover.backends.cuda_module import LoadedModule

    out = memory.allocate(4, "the version")
    module = LoadedModule.load(gpu, build(1))
    large, small = module.kernel("version"), module.kernel("version")
    for kernel, shared in ((large, 96 << 10), (small, 64 << 10), (large, 96 << 10)):
        kernel(1, 1, (out,), stream, shared=shared)
    assert int(out.download(stream).view(np.uint32)[0]) == 1
