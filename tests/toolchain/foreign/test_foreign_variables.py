"""Variables by names of the project's own: build systems do not watch them, and leave old products alone."""

import sys

import pytest

pytestmark = pytest.mark.toolchain


@pytest.fixture
def chosen(bare, plain_files):
    """A makefile that takes its architecture from outside."""
    makefile = plain_files["Makefile"].replace("-arch=sm_90", "-arch=$(ARCH)")
    makefile = (
        f"all: prog\nARCH ?= sm_90\n{makefile}install: prog\n\tmkdir -p $(PREFIX) && cp prog $(PREFIX)\n"
    )
    project = bare({**plain_files, "Makefile": makefile}, ("make",), ("./prog",))
    assert project.run() == {"k.cu": "compiled"}
    assert project.gate().returncode == 0
    return project


@pytest.mark.needs("make")
def test_a_variable_that_a_makefile_reads(chosen):
    done = chosen.gate(ARCH="sm_80")
    assert done.returncode == 125 and "ARCH: was unset in the recorded build" in done.stdout
    assert chosen.run(ARCH="sm_80") == {"k.cu": "NOT COMPILED"}, "make does not see it"
    assert chosen.gate(ARCH="sm_80").returncode == 125
    assert chosen.gate(OTHER="1").returncode == 0
    assert chosen.gate().returncode == 0


@pytest.mark.needs("make")
def test_a_variable_on_the_command_line_of_make(chosen):
    assert chosen.run("make", "ARCH=sm_80") == {"k.cu": "NOT COMPILED"}
    done = chosen.gate()
    assert done.returncode == 125
    assert "it was made by `make`, and the last build was `make ARCH=sm_80`" in done.stdout
    (chosen.root / "k.o").unlink()
    assert chosen.run("make", "ARCH=sm_80") == {"k.cu": "compiled"}
    assert chosen.gate().returncode == 125, "the host's object may be another with it, too"
    (chosen.root / "main.o").unlink()
    chosen.run("make", "ARCH=sm_80")
    assert chosen.gate().returncode == 0
    assert chosen.run("make", "install", "PREFIX=out", "ARCH=sm_80") == {"k.cu": "not compiled"}
    assert chosen.gate().returncode == 0
    chosen.run("make")
    assert chosen.gate().returncode == 125


def test_a_variable_that_setup_py_reads(bare, setuptools_files):
    setup = setuptools_files["setup.py"].replace(
        '"-arch=sm_90"', '"-arch=" + os.environ.get("ARCH", "sm_90")'
    )
    build = (sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    project = bare({**setuptools_files, "setup.py": setup}, build, (sys.executable, "run.py"))
    assert project.run() == {"cuda/kernel.cu": "compiled"}
    assert project.gate().returncode == 0
    assert project.run(ARCH="sm_80") == {"cuda/kernel.cu": "NOT COMPILED"}
    assert project.gate(ARCH="sm_80").returncode == 125
    assert project.gate().returncode == 0
