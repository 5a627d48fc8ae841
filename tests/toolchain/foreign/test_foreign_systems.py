"""The same cases through make, ninja, CMake and setuptools."""

import os
import time

import pytest

pytestmark = pytest.mark.toolchain

KERNEL, HEADER, MAIN, TEXT = "cuda/kernel.cu", "include/params.cuh", "src/main.cpp", "src/text.h"
DESCRIPTIONS = {
    "make": ("Makefile", "other:\n\ttrue\n"),
    "ninja": ("build.ninja", "rule other\n  command = true\n"),
    "cmake": ("CMakeLists.txt", "message(STATUS other)\n"),
    "setuptools": ("setup.py", "print()\n"),
}
"""Each with something to add to it."""


def test_untouched_rebuilds_stay_fresh(project):
    for _ in range(3):
        assert project.run() == {KERNEL: "not compiled"}
    code, states, _said = project.verify()
    assert code == 0 and set(states.values()) == {"fresh"}


def test_the_program_runs(project):
    assert project.gate().stdout == "proof in 88 s\n"


@pytest.mark.parametrize("file, old, new", [(KERNEL, "return 88", "return 83"), (HEADER, "W 4", "W 5")])
def test_an_edit_after_the_build_is_refused_by_name(project, file, old, new):
    project.edit(file, old, new)
    done = project.gate()
    assert done.returncode == 125 and file in done.stdout


def test_host_code_of_the_same_program(project):
    if project.system == "setuptools":
        pytest.skip("its module has no other source")
    for file in (MAIN, TEXT):
        text = project.file(file)
        project.file(file, text + "// edited\n")
        done = project.gate()
        assert done.returncode == 125 and file in done.stdout
        project.file(file, text)
    assert project.gate().returncode == 0


def test_the_description_of_the_build(project):
    description, more = DESCRIPTIONS[project.system]
    project.file(description, project.file(description) + "\n# a comment\n")
    assert project.gate().returncode == (0 if description == "Makefile" else 125)
    project.file(description, project.file(description) + more)
    done = project.gate()
    assert done.returncode == 125 and description in done.stdout


def test_a_header_that_the_build_may_not_track(project):
    project.edit(HEADER, "WINDOW 4", "WINDOW 5")
    tracked = project.system == "cmake"
    assert project.run() == {KERNEL: "compiled" if tracked else "NOT COMPILED"}
    assert project.gate().returncode == (0 if tracked else 125)


def test_an_edit_that_is_built_is_fresh(project):
    project.edit(KERNEL, "return 88", "return 83")
    assert project.run() == {KERNEL: "compiled"}
    done = project.gate()
    assert (done.returncode, done.stdout) == (0, "proof in 83 s\n")


def test_restored_size_and_time_do_not_hide_an_edit(project):
    project.edit_unseen(KERNEL, "return 88", "return 87")
    assert project.run() == {KERNEL: "NOT COMPILED"}
    done = project.gate()
    assert done.returncode == 125 and KERNEL in done.stdout


@pytest.mark.parametrize("moment", [0, 2**31 + 5])
def test_times_alone_change_nothing(project, moment):
    for name in (KERNEL, HEADER, MAIN):
        os.utime(project.root / name, (moment, moment))
    assert project.gate().returncode == 0


def test_a_header_that_would_be_found_first(project):
    project.file("cuda/params.cuh", "#define WINDOW 9\n")
    done = project.gate()
    assert done.returncode == 125 and "cuda/params.cuh" in done.stdout


def test_flags_from_the_environment(project):
    done = project.gate(NVCC_PREPEND_FLAGS="-lineinfo")
    assert done.returncode == 125 and "NVCC_PREPEND_FLAGS" in done.stdout


def test_a_header_swapped_and_put_back_during_the_build(project):
    project.edit(KERNEL, "return 88", "return 89")
    swap = f"echo '#define WINDOW 5' > {HEADER}; git checkout -q {HEADER}"
    build = " ".join(project.build) if project.build[0] != "sh" else project.build[2]
    states = project.run("sh", "-c", f"{build}; {swap}")
    assert states == {KERNEL: "compiled, unproven"}
    assert project.gate().returncode == 125


def test_a_folder_of_headers_exchanged_during_the_build(project):
    """The files in it keep their times, and none was written."""
    project.edit(KERNEL, "return 88", "return 90")
    project.file("other/params.cuh", "#define WINDOW 5\n")
    time.sleep(0.1)
    build = " ".join(project.build) if project.build[0] != "sh" else project.build[2]
    project.run("sh", "-c", f"{build}; mv include aside; mv other include")
    done = project.gate()
    assert done.returncode == 125 and HEADER in done.stdout


def test_a_build_behind_the_tools_back(project):
    project.edit(KERNEL, "return 88", "return 86")
    project.alone()
    assert project.gate().returncode == 125
