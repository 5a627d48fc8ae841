"""What ninja and CMake say they would run, read; and which crates a build script concerns."""

import json

import pytest

from orchestrator.foreign import cmake_plan, ninja_plan
from orchestrator.foreign.made import Content, Made
from orchestrator.foreign.packages import Packages
from orchestrator.foreign.plans import acts_through
from orchestrator.foreign.steps import Tool

GRAPH = """\
digraph ninja {
"0x1" [label="prog"]
"0x2" [label="link", shape=ellipse]
"0x2" -> "0x1"
"0x3" -> "0x2" [arrowhead=none]
"0x4" -> "0x2" [arrowhead=none style=dotted]
"0x3" [label="main.o"]
"0x5" -> "0x3" [label=" cxx"]
"0x5" [label="main.cpp"]
"0x4" [label="gen.h"]
"0x6" [label="generate", shape=ellipse]
"0x6" -> "0x4"
"0x6" -> "0x7"
"0x7" [label="gen.c"]
}
"""
COMMANDS = {"prog": "link main.o", "main.o": "cc main.cpp", "gen.c": "gen --width 4", "other.o": "cc other.c"}


def ninja(**changes):
    names = ("prog", "main.o", "gen.h", "other.o")
    return ninja_plan.plans({**COMMANDS, **changes}, GRAPH, names)


def test_a_plan_of_ninja_holds_all_commands_behind_a_product_and_no_others():
    plain = ninja()
    assert plain.keys() == {"prog", "main.o"}, "gen.h is told by no command, other.o is in no graph"
    assert ninja(**{"other.o": "cc -O3 other.c"}) == plain
    changed = ninja(**{"gen.c": "gen --width 5"})
    assert changed["prog"] != plain["prog"], "gen.h is made by the command that makes gen.c"
    assert changed["main.o"] == plain["main.o"]
    assert ninja(**{"main.o": "cc -g main.cpp"})["prog"] != plain["prog"]


def test_what_a_script_of_cmake_makes_has_no_plan():
    assert ninja(**{"main.o": "/usr/bin/cmake -DX=1 -P embed.cmake"}) == {}


@pytest.mark.parametrize("bad", ["[1]", "[{}]", '[{"output": "x"}]', "no JSON", "[" * 100_000])
def test_another_answer_than_ninja_s_is_refused(bad):
    with pytest.raises(ValueError):
        ninja_plan.read_commands(bad.encode())
    good = json.dumps([{"output": "x", "command": "y", "file": "z", "directory": "."}])
    assert ninja_plan.read_commands(good.encode()) == {"x": "y"}


@pytest.fixture
def tree(tmp_path):
    """The files that CMake writes for a library with a generated header and a program."""
    rule = "{0}: deps\n\t@$(CMAKE_COMMAND) -E cmake_echo_color --progress-num=$(X) 'Building'\n\t{1}\n"
    link = "$(CMAKE_COMMAND) -E cmake_link_script {}/link.txt"
    kernel, prog = "CMakeFiles/kernel.dir", "CMakeFiles/prog.dir"
    files = {
        "CMakeFiles/Makefile2": f"all: {prog}/all\n{prog}/all: {kernel}/all\n",
        "CMakeFiles/TargetDirectories.txt": f"{tmp_path}/{kernel}\n{tmp_path}/{prog}\n",
        f"{kernel}/build.make": rule.format(f"{kernel}/k.cu.o", "nvcc $(CUDA_FLAGS) -c k.cu")
        + rule.format("gen.h", "generate --width 4 > gen.h")
        + rule.format("libkernel.a", link.format(kernel)),
        f"{kernel}/flags.make": "CUDA_FLAGS = -O2\n",
        f"{kernel}/link.txt": "ar qc libkernel.a k.cu.o\n",
        f"{prog}/build.make": rule.format(f"{prog}/main.o", "g++ -c main.cpp")
        + rule.format("prog", link.format(prog)),
        f"{prog}/flags.make": "CXX_FLAGS =\n",
        f"{prog}/link.txt": "g++ main.o libkernel.a\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    outputs = [f"{tmp_path}/{n}" for n in (f"{kernel}/k.cu.o", "libkernel.a", f"{prog}/main.o", "prog")]

    def changed_by(name, old, new):
        """Which of object, library, object of the program, program the edit reaches."""
        before = cmake_plan.plans(str(tmp_path), outputs)
        path = tmp_path / name
        path.write_text(path.read_text().replace(old, new))
        after = cmake_plan.plans(str(tmp_path), outputs)
        path.write_text(files[name])
        return [o in after and after[o][0] != before[o][0] for o in outputs], [o in after for o in outputs]

    return changed_by


def test_a_plan_of_cmake_holds_what_makes_a_product_and_the_project_s_own_commands(tree):
    kernel, prog = "CMakeFiles/kernel.dir", "CMakeFiles/prog.dir"
    assert tree(f"{kernel}/flags.make", "-O2", "-O3")[0] == [True, True, False, False]
    assert tree(f"{kernel}/build.make", "nvcc", "nvcc -g")[0] == [True, False, False, False]
    assert tree(f"{kernel}/build.make", "--width 4", "--width 5")[0] == [True] * 4, (
        "a header may be read by all"
    )
    assert tree(f"{prog}/link.txt", "main.o", "main.o -lm")[0] == [False, False, False, True]
    assert tree(f"{kernel}/build.make", "generate", "$(CMAKE_COMMAND) -P")[1] == [False] * 4


def test_files_that_act_through_the_plan_alone():
    for path in ("CMakeLists.txt", "x/CMakeLists.txt", "cmake/flags.cmake", "build/CMakeCache.txt"):
        assert acts_through(("cmake", "/b", "d"), path)
        assert not acts_through(("ninja", "/b", "d"), path)
        assert not acts_through((), path)
    assert acts_through(("ninja", "/b", "d"), "build.ninja")
    for path in ("gen.py", "params.json", "Makefile", "CMakeLists.txt.in"):
        assert not acts_through(("cmake", "/b", "d"), path)


def test_a_build_script_concerns_its_package_and_those_that_depend_on_it(tmp_path):
    def crate(name, *inputs, script=False):
        (tmp_path / name / "src").mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "Cargo.toml").write_text("")
        path = f"{tmp_path}/target/{'build_script_build-' if script else 'lib'}{name}"
        root = f"{name}/{'build.rs' if script else 'src/lib.rs'}"
        content = Content("d", 1, "archive")
        taken = tuple((f"{tmp_path}/target/lib{one}", "d") for one in inputs)
        common = {"materials": (), "listed": True, "manifest": "", "unknown": (), "receipt": "", "run": 1}
        common |= {"milliseconds": 0, "made_ns": 0, "mode": "compile", "folder": str(tmp_path)}
        return Made(path=path, tool=Tool.RUSTC, argv=("rustc", root), content=content, inputs=taken, **common)

    made = [crate("kern"), crate("kern", script=True), crate("plain"), crate("user", "kern")]
    made += [crate("tool", "kern"), crate("helped"), crate("helped", "tool", script=True)]
    packages = Packages({m.path: m for m in made})
    concerned = {
        m.path.rpartition("/lib")[2] for m in made if packages.concerns(f"{tmp_path}/kern/build.rs", m)
    }
    assert concerned - {m.path for m in made} == {"kern", "user", "tool", "helped"}
    assert packages.concerns("/nowhere/build.rs", made[2]), "of an unknown package nothing is known"
