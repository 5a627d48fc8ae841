"""Which tools are found, which settings reach a command, and what a plan is made of."""

import dataclasses
from pathlib import Path

import pytest

from orchestrator.model import Kind, Target
from orchestrator.options import chosen_inside, files_named, options_files, untold, words_inside
from orchestrator.plan import HONOURED, IGNORED, Surroundings, plan, recipe_environment
from orchestrator.tidy import tidy
from orchestrator.toolchain import find_nvcc, honoured, host_compiler_flags, search_path

SURROUNDINGS = Surroundings(
    nvcc="/cuda/bin/nvcc",
    search_path="/usr/bin",
    honoured=(("NVCC_APPEND_FLAGS", "-G"),),
    arch="sm_90",
    libraries=("/cuda/lib",),
)


def planned(*targets):
    """The action of the first of some targets."""
    return plan(targets[0], {t.name: t for t in targets}, SURROUNDINGS)


def tool(folder, name, to=None):
    """An executable, or a link to one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if to:
        path.symlink_to(to)
    else:
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return path


def test_the_path_comes_before_cuda_home_and_that_before_the_fetched_toolkit(tmp_path):
    installed = tmp_path / "toolchain"
    fetched = tool(installed / "nvidia" / "cu13" / "bin", "nvcc")
    nowhere = {"PATH": str(tmp_path / "empty")}
    if not Path("/usr/local/cuda/bin/nvcc").exists():
        assert find_nvcc(nowhere, installed).path == str(fetched)
    home = tool(tmp_path / "home" / "bin", "nvcc")
    assert find_nvcc({**nowhere, "CUDA_HOME": str(tmp_path / "home")}, installed).path == str(home)
    first = tool(tmp_path / "bin", "nvcc")
    found = find_nvcc({"PATH": str(tmp_path / "bin"), "CUDA_HOME": str(tmp_path / "home")}, installed)
    assert (found.path, found.reason) == (str(first), "first on the PATH")


def test_a_compiler_cache_is_passed_over(tmp_path):
    ccache = tool(tmp_path / "opt", "ccache")
    tool(tmp_path / "cached", "nvcc", ccache)
    tool(tmp_path / "cached", "g++", ccache)
    real = tool(tmp_path / "real", "nvcc")
    environ = {"PATH": f"{tmp_path}/cached:{tmp_path}/real"}
    assert find_nvcc(environ, tmp_path).path == str(real)
    path, caches = search_path(environ)
    assert path.split(":")[0] == f"{tmp_path}/real"
    assert f"{tmp_path}/cached" not in path
    assert len(caches) == 1


def test_folders_without_a_tool_and_relative_ones_are_left_out_of_the_path(tmp_path):
    tool(tmp_path / "gcc", "gcc")
    tool(tmp_path / "other", "python")
    path, _ = search_path({"PATH": f"bin:.::{tmp_path}/other:{tmp_path}/gcc:{tmp_path}/gcc:/usr/bin"})
    assert path == f"{tmp_path}/gcc:/usr/bin:/bin"


def test_nvccs_own_variables_are_honoured_and_no_others():
    environ = {name: "x" for name in (*HONOURED, *IGNORED)} | {"NVCC_CCBIN": ""}
    assert honoured(environ) == (("NVCC_PREPEND_FLAGS", "x"), ("NVCC_APPEND_FLAGS", "x"))


def test_a_command_sees_the_listed_environment_and_no_more():
    action = planned(Target("k", Kind.CUBIN, ("k.cu",), arch="auto"))
    assert dict(action.environment) == {
        "LC_ALL": "C",
        "NVCC_APPEND_FLAGS": "-G",
        "PATH": "/usr/bin",
        "SOURCE_DATE_EPOCH": "0",
        "TMPDIR": "build/work/k/tmp",
    }
    assert recipe_environment(action.environment).keys() == {
        "LC_ALL",
        "NVCC_APPEND_FLAGS",
        "SOURCE_DATE_EPOCH",
    }


@pytest.mark.parametrize(("asked", "got"), [("auto", "sm_90"), ("native", "sm_90"), ("sm_80", "sm_80")])
def test_the_arch_is_resolved_before_anything_is_digested(asked, got):
    action = planned(Target("k", Kind.CUBIN, ("k.cu",), arch=asked))
    assert action.arch == got
    assert f"-arch={got}" in action.argv
    assert "native" not in " ".join(action.argv)


def test_flags_are_kept_word_for_word():
    flags = ("-Xcompiler", ',"-ffast-math"', "-DS=a b", "-O3")
    action = planned(Target("k", Kind.CUBIN, ("a b/k.cu",), arch="sm_90", flags=flags))
    start = action.argv.index("-Xcompiler")
    assert action.argv[start : start + 4] == flags
    assert action.argv[-1] == "a b/k.cu"


def test_no_path_of_this_machine_is_in_the_recipe():
    for kind in (Kind.CUBIN, Kind.OBJECT, Kind.EXECUTABLE):
        action = planned(Target("k", kind, ("k.cu",), arch="sm_90"))
        assert not any(word.startswith(("/", "-L")) for word in action.recipe_argv)
    assert action.argv[-1] == "-L/cuda/lib"


def test_products_are_used_by_their_stable_names():
    object_, archive = Target("o", Kind.OBJECT, ("o.cu",)), Target("a", Kind.ARCHIVE, (), uses=("o",))
    action = planned(archive, object_)
    assert action.argv[-1] == "build/bin/o.o"
    assert action.members == ("build/bin/o.o",)
    assert action.generated == ()
    assert "-MD" not in action.argv


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (("-optf", "a,b"), ("a", "b")),
        (("--options-file=a",), ("a",)),
        (("@a",), ("a",)),
        (("-Xcompiler", "-O2,@a"), ("a",)),
        (("-Xcompiler=@a",), ("a",)),
        (("-Xcompiler", ',"@a"'), ("a",)),
        (("-Xptxas", "--options-file,d/p.opt"), ("d/p.opt",)),
        (("-Xptxas=-optf", "-O3", "-Xptxas=d/p.opt"), ("d/p.opt",)),
        (("-Xptxas", "--options-file", "-Xptxas", "d/p.opt"), ("d/p.opt",)),
        (("--ptxas-options", "-optf=d/p.opt"), ("d/p.opt",)),
        (("-Xlinker", "@a"), ("a",)),
        (("-DX=1", "k.cu"), ()),
    ],
)
def test_files_of_further_options_are_found(arguments, files):
    assert options_files(arguments) == files


def test_what_may_be_a_file_in_words_that_are_handed_on_is_named():
    words = (
        "-Xcompiler",
        "-O2,-specs=my/specs",
        "-Xcompiler=-fplugin=./p.so,-std=c++17",
        "-DX=not/handed/on",
    )
    assert files_named((*words, "-Xlinker", "-T,script.ld")) == ("my/specs", "./p.so", "c++17", "script.ld")


def test_what_the_command_itself_writes_is_no_input():
    linker = ("-Xlinker", "-Map=a.map,-Map,b.map", "-Xlinker", "--dependency-file=d")
    assert files_named((*linker, "-Xcompiler", "-fdump-tree-all=c")) == ()


def test_the_words_of_nvccs_variables_count_as_well():
    surroundings = dataclasses.replace(
        SURROUNDINGS, honoured=(("NVCC_APPEND_FLAGS", "-optf 'a b.rsp' -Xptxas -optf,p.opt"),)
    )
    target = Target("k", Kind.CUBIN, ("k.cu",), arch="sm_90")
    assert plan(target, {"k": target}, surroundings).options_files == ("a b.rsp", "p.opt")


@pytest.mark.parametrize(
    ("text", "files", "chosen"),
    [
        ("-Xcompiler -specs=my/specs", {"my/specs"}, ("-specs=my/specs",)),
        ("-O2 -fplugin=my/p.so", {"my/p.so"}, ()),
        ("-Xptxas --options-file,d/ptx.opt", {"d/ptx.opt"}, ()),
        ("-Xcompiler -wrapper,my/w", {"my/w"}, ("-wrapper",)),
        ("-Xcompiler -Btools -Xlinker -Bstatic", set(), ("-Btools",)),
    ],
)
def test_words_inside_of_an_options_file_are_looked_at_like_those_of_the_command(text, files, chosen):
    words = words_inside(["o.txt"], {"o.txt": text.encode()}.__getitem__)
    assert set(files_named(words)) >= files
    assert tuple(dict.fromkeys(chosen_inside(words))) == chosen


def test_options_of_gcc_that_read_a_file_without_naming_it_are_told():
    flags = (
        "-Xcompiler",
        "-O2,-fprofile-use,-fplugin=name",
        "-Xcompiler=-fprofile-use=d/prof,-fplugin=d/p.so",
    )
    assert untold(flags) == ("-fprofile-use", "-fplugin=name")


def test_flags_that_choose_the_host_compiler():
    flags = ("-O3", "-ccbin", "clang++", "-m64", "--compiler-bindir=/x")
    assert host_compiler_flags(flags) == ("-ccbin", "clang++", "--compiler-bindir=/x")
    flags = ("-Xcompiler", "-O2,-fuse-ld=gold", "-Xcompiler=-Btools/")
    assert host_compiler_flags(flags) == ("-Xcompiler", "-fuse-ld=gold", "-Xcompiler", "-Btools/")
    assert host_compiler_flags(("-target-dir", "x"), ("-Xcompiler", "-Bt")) == (
        "-Xcompiler",
        "-Bt",
        "-target-dir",
        "x",
    )


def test_names_are_shortened_only_where_the_file_system_agrees(tmp_path):
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to("../a/deep")
    assert tidy(f"{tmp_path}/a/../b/x.h") == f"{tmp_path}/b/x.h"
    through_link = f"{tmp_path}/b/link/../x.h"
    assert tidy(through_link) == through_link
