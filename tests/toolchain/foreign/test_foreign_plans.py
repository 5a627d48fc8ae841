"""An edit of what describes the build: what it does not reach is fresh again once that is shown."""

import pytest

pytestmark = pytest.mark.toolchain

KERNEL = "cuda/kernel.cu"
NINJA_OTHER = "build out/other.o: cxx src/other.cpp\n"
CMAKE_OTHER = "add_library(other OBJECT src/other.cpp)\n"


def cmake(generator):
    configure = f"test -d build || cmake -G '{generator}' -S . -B build && cmake --build build"
    return ("sh", "-c", configure)


CASES = {
    "ninja": ("ninja", None, "build.ninja", NINJA_OTHER, ("-Iinclude", "-Iinclude -lineinfo")),
    "cmake": ("cmake", "Unix Makefiles", "CMakeLists.txt", CMAKE_OTHER, None),
    "cmake-ninja": ("cmake", "Ninja", "CMakeLists.txt", CMAKE_OTHER, None),
}


@pytest.fixture(
    params=[
        pytest.param("ninja", marks=pytest.mark.needs("ninja")),
        pytest.param("cmake", marks=pytest.mark.needs("cmake")),
        pytest.param("cmake-ninja", marks=[pytest.mark.needs("cmake"), pytest.mark.needs("ninja")]),
    ]
)
def described(request, project_of):
    """A built project, the file that describes its build, and an addition to that."""
    system, generator, file, other, flags = CASES[request.param]
    project = project_of(system)
    if generator:
        project.build = cmake(generator)
    flags = flags or (
        "PRIVATE include)",
        "PRIVATE include)\ntarget_compile_options(kernel PRIVATE -lineinfo)",
    )
    project.file("src/other.cpp", "int other() { return 1; }\n")
    assert project.run() == {KERNEL: "compiled"}
    assert project.gate().returncode == 0
    only = ("ninja", "out/other.o")
    if generator:
        only = ("sh", "-c", "cmake -S . -B build && cmake --build build --target other")
    return project, file, other, flags, only


def test_what_an_edit_does_not_reach_is_fresh_after_a_build(described):
    project, file, other, _flags, _only = described
    project.file(file, project.file(file) + other)
    assert project.gate().returncode == 125, "until it is built"
    assert project.run() == {KERNEL: "not compiled"}
    done = project.gate()
    assert done.returncode == 0, done.stdout
    project.run()
    assert project.gate().returncode == 0
    project.file(file, project.file(file) + "# a comment\n")
    assert project.gate().returncode == 125


def test_what_an_edit_reaches_and_the_build_left_alone_is_not(described):
    project, file, other, flags, only = described
    project.file(file, project.file(file) + other)
    project.edit(file, *flags)
    assert project.run(*only)[KERNEL].lower() == "not compiled"
    done = project.gate()
    assert done.returncode == 125 and f"{file} changed since" in done.stdout
    assert project.run() == {KERNEL: "compiled"}
    assert project.gate().returncode == 0


def test_an_edit_that_the_build_system_did_not_see_is_no_plan(described):
    project, file, _other, flags, _only = described
    if file == "build.ninja":
        pytest.skip("ninja reads it in every build")
    project.file(file, project.file(file) + f"{' ' * 200}\n")
    project.run()
    text = project.file(file)
    project.file(file, text.rstrip() + "\n")
    project.run()
    assert project.gate().returncode == 0
    old = flags[0] + " " * (len(flags[1]) - len(flags[0]))
    project.edit(file, flags[0], old)
    project.run()
    project.edit_unseen(file, old, flags[1])
    assert project.run()[KERNEL].lower() == "not compiled"
    assert project.gate().returncode == 125


def test_an_edit_of_the_same_target_reaches_what_it_changes_alone(described):
    project, file, _other, flags, _only = described
    project.edit(file, *flags)
    assert project.run() == {KERNEL: "compiled"}
    assert project.gate().returncode == 0, "the host's object was left alone, and its command is as before"
