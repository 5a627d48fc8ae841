"""Tools of the build that change, misbehave or are chosen in odd ways, each with a real nvcc."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.build import Result
from orchestrator.build_report import trouble_lines
from orchestrator.errors import BuildFailed, ConfigurationError

pytestmark = pytest.mark.toolchain

LIBRARY = '[target.host]\nkind = "shared-library"\nsources = ["src/host.cu"]\ninclude = ["first", "inc"]\n'


def program(tree, name: str, text: str) -> Path:
    """A script in the project's folder of tools."""
    path = tree.root / "tools" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_every_tool_of_the_toolkit_is_looked_at(tree):
    """Swapped all at once, with size and time stamps restored where that is possible."""
    top = tree.own_toolkit()
    text = tree.TARGETS.replace('"forced.cuh", ', '"forced.cuh", "-include", "thrust/version.h", ')
    tree.write("manifests/targets.toml", text)
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()
    names = (
        "bin/ptxas", "bin/nvcc.profile", "bin/cudafe++", "bin/fatbinary", "bin/nvlink",
        "nvvm/bin/cicc", "nvvm/libdevice/libdevice.10.bc",
    )  # fmt: skip
    swapped = [tree.own(top / name) for name in names]
    for path in swapped:
        path.write_bytes(path.read_bytes() + b"\n# other\n")
    headers = [tree.own(top / "include" / name) for name in ("cuda_runtime.h", "cccl/thrust/version.h")]
    for path in headers:
        path.write_bytes(path.read_bytes() + b"// other\n")
    found = tree.findings("k")["k"]
    assert {Path(s).resolve() for code, s in found if code == "tool-changed"} == set(swapped)
    changed = {(tree.root / s).resolve() for code, s in found if code == "input-changed"}
    assert changed == set(headers)


def test_a_tool_that_appears_where_the_host_compiler_looks_is_used_and_seen(tree):
    """The build asks the compiler again, and does not go by what it answered before."""
    (tree.root / "tools").mkdir()
    flags = f'flags = ["-Xcompiler", "-B{tree.root}/tools/"]\n'
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}{flags}")
    assert tree.results() == {"host": "built"}
    assert tree.results() == {"host": "fresh"}
    for name in ("as", "ld"):
        appeared = program(tree, name, f'exec {shutil.which(name)} "$@"')
        assert tree.findings() == {"host": {("tool-changed", str(appeared))}}
        assert tree.results() == {"host": "built"}
        assert tree.findings() == {"host": set()}
    appeared.unlink()
    assert tree.results() == {"host": "built"}


def test_a_compiler_that_a_script_would_rather_run_is_seen_when_it_appears(tree):
    better, compiler = tree.root / "tools" / "better", shutil.which("g++")
    program(tree, "g++", f'[ -x {better} ] && exec {better} "$@"\nexec {compiler} "$@"')
    tree.write("manifests/targets.toml", f'schema = 1\n{LIBRARY}flags = ["-ccbin", "tools/g++"]\n')
    assert tree.results() == {"host": "built"}
    assert tree.results() == {"host": "fresh"}
    program(tree, "better", f'exec {compiler} "$@"')
    assert tree.findings()["host"]
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}


def test_a_library_that_appears_in_the_toolkit_is_seen(tree):
    top = tree.own_toolkit()
    assert tree.results("k")["k"] == "built"
    folder = (top / "nvvm" / "libdevice").resolve()
    assert folder.is_relative_to(tree.root.resolve())
    (folder / "libdevice.11.bc").write_bytes(b"")
    assert {code for code, _subject in tree.findings("k")["k"]} == {"tool-set-changed"}
    assert tree.results("k")["k"] == "built"


def test_libnvvm_counts_where_nvlink_compiles(tree):
    top = tree.own_toolkit()
    tree.write("src/k.cu", 'extern "C" __global__ void k(int *p) { *p = 1; }\n')
    flags = 'arch = "sm_90"\nflags = ["-dlto", "-rdc=true"]\n'
    tree.write(
        "manifests/targets.toml",
        f'schema = 1\n[target.o]\nkind = "object"\nsources = ["src/k.cu"]\n{flags}'
        f'[target.link]\nkind = "device-link"\nuses = ["o"]\n{flags}',
    )
    assert tree.results() == {"o": "built", "link": "built"}
    assert tree.findings() == {"o": set(), "link": set()}
    folder = next(f for f in (top / "nvvm/lib64", top / "nvvm/lib") if f.is_dir())
    library = tree.own(next(p for p in folder.iterdir() if p.name.startswith("libnvvm.so")))
    library.write_bytes(library.read_bytes() + b"\0")
    found = tree.findings("link")["link"]
    assert {s for code, s in found if code == "tool-changed"} >= {str(library)}


def test_the_programs_behind_a_host_compiler_are_looked_at(tree):
    """A driver behind a script, and a cc1plus and an assembler that it is told to use."""
    real = {name: subprocess.check_output(["g++", f"-print-prog-name={name}"], text=True).strip()
            for name in ("cc1plus", "as")}  # fmt: skip
    parts = [program(tree, name, f'exec {shutil.which(path)} "$@"') for name, path in real.items()]
    driver = program(tree, "g++", f'exec {shutil.which("g++")} -B{tree.root}/tools/ "$@"')
    tree.write("manifests/targets.toml", f'schema = 1\n{LIBRARY}flags = ["-ccbin", "tools/g++"]\n')
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    for path in (*parts, driver):
        path.write_text(path.read_text() + "# other\n")
    assert {Path(s).name for _code, s in tree.findings()["host"]} == {"cc1plus", "as", "g++"}


def test_a_host_compiler_named_in_an_options_file_is_noticed(tree):
    program(tree, "g++-other", f'exec {shutil.which("g++")} "$@"')
    tree.write("options.txt", f"-ccbin {tree.root}/tools/g++-other")
    tree.write("manifests/targets.toml", f'schema = 1\n{LIBRARY}flags = ["-optf", "options.txt"]\n')
    (outcome,) = tree.build().outcomes
    assert outcome.result is Result.UNPROVEN
    assert "g++-other" in outcome.reason
    assert {code for code, _subject in tree.findings()["host"]} == {"input-unfollowed"}


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_a_preprocessor_that_prints_nothing_is_an_error(tree, kind):
    """It ends well and writes an empty file: nothing would compile to an empty program."""
    script = f"""out=
for word; do case "$word" in *.ii) out=$word;; esac; done
case " $* " in *" -E "*) [ -n "$out" ] && : > "$out" && exit;; esac
exec {shutil.which("g++")} "$@\""""
    program(tree, "g++", script)
    text = f'schema = 1\n[target.k]\nkind = "{kind}"\narch = "sm_90"\nsources = ["src/other.cu"]\n'
    tree.write("manifests/targets.toml", text + 'flags = ["-ccbin", "tools/g++"]\n')
    (outcome,) = tree.build().outcomes
    assert outcome.result is Result.FAILED
    assert outcome.message
    assert tree.findings()["k"]


def test_native_is_resolved_before_anything_is_recorded(tree, monkeypatch):
    """A recorded build for one GPU is not fresh beside another."""
    from orchestrator import situation

    tree.write("manifests/targets.toml", tree.TARGETS.replace('"sm_90"', '"native"'))
    monkeypatch.setattr(situation, "find_arch", lambda _environ: ("sm_80", "the GPU that is here"))
    assert tree.results("k")["k"] == "built"
    manifest = tree.manifest("k")
    assert manifest["arch"] == "sm_80"
    assert "-arch=sm_80" in manifest["argv"]
    assert not any("native" in word for word in manifest["argv"])
    assert tree.findings("k")["k"] == set()
    monkeypatch.setattr(situation, "find_arch", lambda _environ: ("sm_90", "the GPU that is here"))
    codes = {code for code, _subject in tree.findings("k")["k"]}
    assert codes >= {"arch-changed", "flags-changed"}


def test_odd_quoting_and_spaces_reach_nvcc_word_for_word(tree):
    tree.write("with space/a b.cu", '#include "c d.cuh"\nextern "C" int f() { return VALUE(TEXT); }\n')
    tree.write("in c/c d.cuh", "#define VALUE(x) sizeof(x)\n")
    flags = ["-Xcompiler", ',"-ffast-math"', r"-DTEXT='$'", "-O1"]
    written = ", ".join(map(_basic, flags))
    tree.write(
        "manifests/targets.toml",
        'schema = 1\n[target.f]\nkind = "shared-library"\nsources = ["with space/a b.cu"]\n'
        f'include = ["in c"]\nflags = [{written}]\n',
    )
    (outcome,) = tree.build().outcomes
    assert outcome.message == ""
    argv = tree.manifest("f")["argv"]
    start = argv.index("-ffast-math") if "-ffast-math" in argv else argv.index(',"-ffast-math"')
    assert argv[start - 1 : start + 3] == flags
    assert argv[-1] == "with space/a b.cu"
    assert tree.findings() == {"f": set()}


def _basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_flags_that_a_careless_join_would_confuse_are_different_actions(tree):
    tree.write("src/host.cu", 'extern "C" int f() { return A; }\n')
    together, apart = ("-DA=1 -DB=2",), ("-DA=1", "-DB=2")
    seen = []
    for flags in (together, apart):
        written = ", ".join(f'"{flag}"' for flag in flags)
        tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}flags = [{written}]\n")
        outcome = tree.build().outcomes[0]
        seen.append((outcome.result, tree.manifest("host")["recipe_digest"]))
    assert seen[1][0] is Result.BUILT
    assert seen[0][1] != seen[1][1]


def test_a_compiler_named_by_nvccs_variable_is_part_of_the_action(tree):
    tree.environ["NVCC_CCBIN"] = shutil.which("g++")
    assert ("environment-changed", "NVCC_CCBIN") in tree.findings("k")["k"]
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()


def test_a_library_of_another_language_that_is_linked_in_is_an_input(tree):
    """Rebuilt by its own build system after ours: stale, and named; so is one that would be found earlier."""

    def library(folder: str, value: int) -> None:
        (tree.root / folder).mkdir(exist_ok=True)
        source = tree.root / folder / "other.c"
        source.write_text(f"int other(void) {{ return {value}; }}\n")
        subprocess.run(["gcc", "-c", source, "-o", source.with_suffix(".o")], check=True)
        subprocess.run(["ar", "rcD", source.with_name("libother.a"), source.with_suffix(".o")], check=True)

    library("lib", 3)
    tree.write("src/main.cu", 'extern "C" int other();\nint main() { return other(); }\n')
    tree.write(
        "manifests/targets.toml",
        'schema = 1\n[target.program]\nkind = "executable"\narch = "sm_90"\nsources = ["src/main.cu"]\n'
        'flags = ["-Lnewer", "-Llib", "-lother"]\n',
    )
    assert tree.results() == {"program": "built"}
    assert tree.findings() == {"program": set()}
    library("lib", 4)
    assert tree.findings() == {"program": {("input-changed", "lib/libother.a")}}
    library("lib", 3)
    assert tree.findings() == {"program": set()}
    library("newer", 5)
    assert tree.findings() == {"program": {("name-appeared", "newer/libother.a")}}


def test_time_stamps_of_1970_and_2038_and_backwards_decide_nothing(tree):
    for number, name in enumerate(tree.SOURCES):
        when = (0, 2**31 - 1, 2**31 + 5)[number % 3]
        os.utime(tree.root / name, (when, when))
    assert tree.results() == {"k": "fresh", "host": "fresh"}
    tree.write("inc/a.cuh", (tree.root / "inc/a.cuh").read_text().replace("A 1", "A 2"))
    os.utime(tree.root / "inc/a.cuh", (0, 0))
    assert tree.findings() == {t: {("input-changed", "inc/a.cuh")} for t in ("k", "host")}
    assert tree.results() == {"k": "built", "host": "built"}


@pytest.mark.needs("clang++")
def test_clang_as_host_compiler(tree):
    compiler = shutil.which("clang++")
    text = tree.TARGETS.replace('"-DHDR=<h.cuh>"]', f'"-DHDR=<h.cuh>", "-ccbin", "{compiler}"]')
    tree.write("manifests/targets.toml", text + f'flags = ["-ccbin", "{compiler}"]\n')
    assert tree.results() == {"k": "built", "host": "built"}
    assert tree.findings() == {"k": set(), "host": set()}
    tree.edit("inc/deep/c.cuh", "C 3", "C 4")
    tree.write("first/maybe.cuh", "")
    assert tree.findings() == {
        "k": {("input-changed", "inc/deep/c.cuh"), ("name-appeared", "first/maybe.cuh")},
        "host": {("input-changed", "inc/deep/c.cuh")},
    }


def test_a_link_on_the_way_to_a_system_header_that_leads_elsewhere_is_stale(tree):
    """gcc lists such a header by its path without links when that is shorter."""
    for version in ("1", "2"):
        tree.write(f"v{version}/system.h", f"#define S {version}\n")
        tree.write(f"v{version}/plain.h", "#define P 1\n")
    folder, file = tree.root / "the-current-version", tree.root / "links" / "alternative.h"
    folder.symlink_to("v1")
    file.parent.mkdir()
    file.symlink_to("../v1/plain.h")
    tree.write(
        "src/host.cu", '#include <system.h>\n#include <alternative.h>\nextern "C" int f() { return S; }\n'
    )
    flags = f'flags = ["-isystem", "{folder}", "-isystem", "{file.parent}"]\n'
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}{flags}")
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    tree.write("v2/plain.h", "#define P 2\n")
    file.unlink()
    file.symlink_to("../v2/plain.h")
    assert tree.findings() == {"host": {("input-changed", "links/alternative.h")}}
    folder.unlink()
    folder.symlink_to("v2")
    assert ("input-changed", "the-current-version/system.h") in tree.findings()["host"]
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}


def test_a_precompiled_header_in_the_place_of_a_forced_one_is_an_input(tree):
    """gcc takes it without a look at the header, and does not list it."""
    tree.write("pre/first.h", "#define A 1\n")
    tree.write("src/host.cu", 'extern "C" int f() { return A; }\n')
    flags = 'flags = ["-include", "pre/first.h"]\n'
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}{flags}")
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    tree.write("pre/first.h.gch", "for another compiler")
    assert tree.findings() == {"host": {("name-appeared", "pre/first.h.gch")}}
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    tree.edit("pre/first.h.gch", "another", "mine   ")
    assert tree.findings() == {"host": {("input-changed", "pre/first.h.gch")}}


def test_options_files_that_options_files_name_are_inputs(tree):
    tree.write("src/host.cu", 'extern "C" int f() { return ONE + TWO + THREE; }\n')
    tree.write("outer.txt", "-DONE=1 -optf inner.txt -Xcompiler @list")
    tree.write("inner.txt", "-DTWO=2")
    tree.write("list", "-DTHREE=3")
    tree.write("manifests/targets.toml", f'schema = 1\n{LIBRARY}flags = ["-optf", "outer.txt"]\n')
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    for name, old, new in (("inner.txt", "2", "3"), ("list", "3", "4")):
        tree.edit(name, old, new)
        assert tree.findings() == {"host": {("input-changed", name)}}
        tree.edit(name, new, old)


def test_what_chooses_programs_inside_of_an_options_file_makes_the_target_unproven(tree):
    """Whatever the file that it names holds, and in the place that a variable gives it."""
    tree.write("my.specs", "")
    tree.write("of.txt", "-Xcompiler -specs=my.specs")
    tree.environ["NVCC_APPEND_FLAGS"] = "-optf of.txt"
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}")
    (outcome,) = tree.build().outcomes
    assert outcome.result is Result.UNPROVEN
    assert "-specs=my.specs" in outcome.reason
    tree.write("my.specs", "# other\n")
    assert ("input-changed", "my.specs") in tree.findings()["host"]


def test_programs_that_options_of_the_host_compiler_choose_are_looked_at(tree):
    linker = shutil.which("ld")
    chosen = program(tree, "ld.gold", f'exec {linker} "$@"')
    flags = f'flags = ["-Xcompiler", "-B{tree.root}/tools/,-fuse-ld=gold"]\n'
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}{flags}")
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    chosen.write_text(chosen.read_text() + "# other\n")
    assert tree.findings() == {"host": {("tool-changed", str(chosen))}}


def test_options_files_of_nvccs_variables_are_inputs(tree):
    tree.write("of.rsp", "-DEXTRA=1")
    tree.write("p.opt", "-O3")
    tree.environ["NVCC_APPEND_FLAGS"] = "-optf of.rsp -Xptxas -optf,p.opt"
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()
    tree.edit("of.rsp", "1", "2")
    tree.edit("p.opt", "3", "2")
    assert tree.findings("k")["k"] == {("input-changed", "of.rsp"), ("input-changed", "p.opt")}


def test_a_tool_that_the_path_gives_in_the_place_of_nvccs_own_is_looked_at(tree):
    """ptxas is not beside nvcc; a script on the PATH stands in for it, in a folder that holds an ld too."""
    top = tree.own_toolkit()
    real = (top / "bin" / "ptxas").resolve()
    (top / "bin" / "ptxas").unlink()
    path = program(tree, "ptxas", f'exec {real} "$@"')
    program(tree, "ld", f'exec {shutil.which("ld")} "$@"')
    tree.environ["PATH"] = f"{top}/bin:{path.parent}:/usr/bin:/bin"
    assert tree.results("k")["k"] == "built"
    assert tree.findings("k")["k"] == set()
    path.write_text(path.read_text() + "# other\n")
    assert tree.findings("k")["k"] == {("tool-changed", str(path))}


def test_files_that_options_of_the_host_compiler_read_are_inputs(tree):
    tree.write("d/my.specs", "*cc1plus_options:\n+ -DSPECS=1\n\n")
    tree.write("src/host.cu", 'extern "C" int f() { return 1; }\n')
    words = '"-specs=d/my.specs,-fprofile-use=d/profile", "-Xlinker", "-Map=d/list.map"'
    flags = f'flags = ["-Xcompiler", {words}]\n'
    tree.write("manifests/targets.toml", f"schema = 1\n{LIBRARY}{flags}")
    assert tree.results() == {"host": "built"}
    assert tree.findings() == {"host": set()}
    tree.edit("d/my.specs", "=1", "=2")
    tree.write("d/profile", "")
    assert {("input-changed", "d/my.specs"), ("name-appeared", "d/profile")} <= tree.findings()["host"]


def test_a_time_stamp_in_the_code_is_unproven(tree):
    tree.write("src/host.cu", 'extern "C" const char *f() { return __TIMESTAMP__; }\n')
    (outcome,) = tree.build("host").outcomes
    assert outcome.result is Result.UNPROVEN
    (again,) = tree.build("host").outcomes
    for one in (outcome, again):
        assert one.result is Result.UNPROVEN
        assert "__TIMESTAMP__" in one.message
        assert one.remedy == "remove it, then freshproof build"
    assert trouble_lines(again)[0] == "--- host is unproven, and the gate will not admit it"


@pytest.mark.parametrize("words", ["-arch=sm_80", "-O3 -o /tmp/zz", "-dc"])
def test_what_flags_may_not_set_nvccs_variables_may_not(tree, words):
    tree.environ["NVCC_APPEND_FLAGS"] = words
    with pytest.raises(ConfigurationError, match="NVCC_APPEND_FLAGS"):
        tree.build("k")


@pytest.mark.parametrize(
    ("name", "value"), [("NVCC_CCBIN", "/nope"), ("NVCC_PREPEND_FLAGS", "-optf nope.rsp")]
)
def test_a_variable_that_nvcc_cannot_use_is_named(tree, name, value):
    tree.environ[name] = value
    with pytest.raises(BuildFailed, match=f"{name}=.*nope") as caught:
        tree.build("k")
    assert "variables" in caught.value.remedy
    assert {code for code, _subject in tree.findings("k")["k"]} == {"cannot-plan"}
