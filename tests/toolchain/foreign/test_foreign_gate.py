"""What runs behind the gate: benchmark tools, test runners, programs that open code or are copies of it."""

import fcntl
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.toolchain

CUBINS = """\
all: a.cubin b.cubin p.ptx
%.cubin: %.cu
\tnvcc -arch=sm_90 -cubin $< -o $@
p.ptx: a.cu
\tnvcc -arch=compute_90 -ptx $< -o $@
"""
KERNEL = "__global__ void k(int *p) { *p = 1; }\n"
NVML = """\
#include <stdlib.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { return *device = device + index, 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    return *major = atoi(getenv("FAKE_GPU")) / 10, *minor = atoi(getenv("FAKE_GPU")) % 10, 0;
}
"""


@pytest.fixture
def cubins(bare):
    """Device code in files of its own, which programs open by name."""
    files = {"Makefile": CUBINS, "a.cu": KERNEL, "b.cu": KERNEL.replace("= 1", "= 3")}
    project = bare(files, ("make",), ("sh", "-c", "cat *.cubin > /dev/null", "a.cubin"))
    project.run()
    return project


def test_code_that_is_opened_and_not_named(cubins):
    assert cubins.gate().returncode == 0
    cubins.edit("b.cu", "*p = 3", "*p = 2")
    done = cubins.gate()
    assert done.returncode == 6 and "b.cu: its content changed" in done.stderr
    assert cubins.tool("gate", "--", "wc", "-c", "a.cubin").returncode == 0, (
        "what is not opened does not matter"
    )
    (cubins.root / "b.cubin").rename(cubins.root / "older.cubin")
    cubins.run()
    done = cubins.gate()
    assert done.returncode == 6 and "older.cubin: stale" in done.stderr


def test_the_architecture_of_the_gpu_that_is_here(cubins, tmp_path):
    library = tmp_path / "libnvidia-ml.so.1"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=NVML, text=True, env=cubins.environ, check=True)

    def on(gpu, *command):
        return cubins.tool("gate", "--", *command, LD_LIBRARY_PATH=str(tmp_path), FAKE_GPU=gpu)

    assert on("90", "wc", "-c", "a.cubin").returncode == 0
    done = on("80", "wc", "-c", "a.cubin")
    assert done.returncode == 125
    assert "holds machine code for sm_90, and the GPU here is sm_80" in done.stdout
    done = on("90", "wc", "-c", "p.ptx")
    assert done.returncode == 125
    assert "no machine code, only PTX for compute_90; the driver would compile" in done.stdout


def test_copies_of_a_program(plain, tmp_path):
    copies = [tmp_path / "prog", tmp_path / "old-prog"]
    for copy in copies:
        copy.write_bytes((plain.root / "prog").read_bytes())
        copy.chmod(0o755)
        assert plain.tool("gate", "--", copy).stdout == "5\n"
    plain.edit("k.cu", "return 5", "return 6")
    plain.run()
    done = plain.tool("gate", "--", copies[0])
    assert done.returncode == 125 and f"{copies[0]} would be loaded" in done.stdout
    done = plain.tool("gate", "--", copies[1])
    assert done.returncode == 125 and "and this is an earlier one of it" in done.stdout
    done = plain.tool("gate", "--", "sh", "-c", f"cd {tmp_path}; ./old-*")
    assert done.returncode == 6 and "this is an earlier one of it" in done.stderr


@pytest.mark.needs("hyperfine")
def test_hyperfine(plain):
    for words in (("-N", "./prog"), ("./prog --size 20",)):
        done = plain.tool("gate", "--", "hyperfine", "--runs", "2", *words)
        assert done.returncode == 0 and "2 runs" in done.stdout
        plain.edit("include/params.cuh", "4", "5")
        assert plain.tool("gate", "--", "hyperfine", "--runs", "2", *words).returncode == 125
        plain.edit("include/params.cuh", "5", "4")


def test_pip_install_and_pytest(bare, setuptools_files):
    files = {**setuptools_files, "test_zk.py": "import zk\n\ndef test(): assert zk.prove() == 88\n"}
    options = "--no-build-isolation --no-deps --disable-pip-version-check --target site"
    pip = (sys.executable, "-m", "pip", "-q", "install", *options.split())
    project = bare(files, (*pip, "."), (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"))
    project.environ |= {"PYTHONPATH": "site", "PYTHONDONTWRITEBYTECODE": "1"}
    assert project.run() == {"cuda/kernel.cu": "compiled"}
    done = project.gate()
    assert done.returncode == 0 and "1 passed" in done.stdout
    project.edit("cuda/kernel.cu", "return 88", "return 87")
    assert project.gate().returncode == 125
    project.run(*pip, "--upgrade", ".")
    done = project.gate()
    assert done.returncode == 1 and "1 failed" in done.stdout, "pytest's own exit code"


def test_a_recorded_build_waits_for_a_benchmark_of_the_same_tree(bare):
    files = {"manifests/targets.toml": 'schema = "freshproof/targets/1"\n', "build/keep": ""}
    project = bare(files, ("true",), ("true",))
    tool = [sys.executable, "-m", "orchestrator"]
    with (project.root / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        # A command within it takes the lock too, and is not held up by the run that it belongs to.
        words = [*tool, "run", "--", *tool, "clean"]
        run = subprocess.Popen(
            words, cwd=project.root, env=project.environ, stderr=subprocess.PIPE, text=True
        )
        assert "a benchmark is at work in this tree" in run.stderr.readline()
        assert run.poll() is None
    said = run.stderr.read()
    run.stderr.close()
    assert run.wait() == 0, said


def test_records_are_removed_by_name(bare):
    project = bare({"x.txt": ""}, ("true",), ("true",))
    assert project.tool("clean", "--recorded").returncode == 1
    project.run()
    done = project.tool("clean")
    assert (done.returncode, done.stdout) == (0, f"removed {project.root}/.freshproof\n")
    assert not os.path.lexists(project.root / ".freshproof")


@pytest.mark.needs("make")
def test_where_the_tool_itself_writes_to_is_no_part_of_the_project(bare, plain_files):
    project = bare(plain_files, ("make",), ("./prog",))

    def tool(*words):
        with (project.root / "result.txt").open("w") as out, (project.root / "said.txt").open("w") as said:
            command = [sys.executable, "-m", "orchestrator", *words]
            done = subprocess.run(
                command, cwd=project.root, env=project.environ, stdout=out, stderr=said, check=False
            )
        return done.returncode

    assert tool("run", "--", "make") == 0
    assert project.gate().returncode == 0
    assert tool("gate", "--", "./prog") == 0 and project.file("result.txt") == "5\n"
    project.edit("k.cu", "return 5", "return 6")
    project.run()
    assert tool("gate", "--", "./prog") == 0 and project.file("result.txt") == "6\n"
    project.file("config.txt", "another file that is new")
    assert tool("gate", "--", "./prog") == 125
