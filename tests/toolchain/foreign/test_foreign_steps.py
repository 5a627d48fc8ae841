"""What builds do to their steps: words in files, tools that fail or hide, folders that are exchanged."""

import subprocess

import pytest

pytestmark = pytest.mark.toolchain


def test_what_would_be_found_first_now(plain):
    """A header before the one that a host compile read, and a library before the one that was linked."""
    assert plain.gate().stdout == "5\n"
    for name in ("src/text.h", "first/libk.a"):
        plain.file(name, "")
        done = plain.gate()
        assert done.returncode == 125 and name in done.stdout, done.stdout
        (plain.root / name).unlink()
    assert plain.gate().returncode == 0


def test_output_and_exit_code_of_a_build_that_fails_are_its_own(plain):
    plain.file("src/main.cpp", "int main() { return x; }\n")
    alone = subprocess.run(plain.build, cwd=plain.root, env=plain.environ, capture_output=True, text=True)
    behind = plain.tool("run", "--", *plain.build)
    assert (behind.returncode, behind.stdout) == (alone.returncode, alone.stdout)
    assert behind.stderr.startswith(alone.stderr)
    assert "the build ended with exit code 2" in behind.stderr
    assert plain.gate().returncode == 125
    quiet = plain.tool("run", "--quiet", "--", *plain.build)
    assert quiet.stderr == alone.stderr


def test_a_run_within_a_run_is_recorded_once(plain):
    plain.edit("k.cu", "return 5", "return 6")
    tool = plain.environ["PATH"].split(":")[1] + "/python"
    assert plain.run("sh", "-c", f"{tool} -m orchestrator run -- make") == {"k.cu": "compiled"}
    assert plain.gate().stdout == "6\n"


def test_names_are_told_on_one_line(plain):
    plain.file("data\n-> \x1b[31mall is well.json", "{}")
    done = plain.gate()
    assert done.returncode == 125
    assert r"data\n-> \x1b[31mall is well.json was added" in done.stdout
    done = plain.tool("gate", "--", "./no\nsuch")
    assert done.returncode == 125 and "\x1b" not in done.stderr


def test_words_in_files_that_are_gone_after_the_build(bare, plain_files):
    """As ninja and CMake write them where command lines grow long."""
    makefile = """\
LIBS = RUNTIME
prog: k.cu src/main.cpp
\techo "-arch=sm_90 -I\\"include\\"" > o.words; nvcc --options-file o.words -c k.cu -o k.o; rm o.words
\techo "-c src/main.cpp -Iheaders -o main.o" > g.words; g++ @g.words; rm g.words
\techo k.o > a.words; ar crs libk.a @a.words; rm a.words
\techo "main.o -L. -lk $(LIBS)" > l.words; g++ @l.words -o $@; rm l.words
"""
    project = bare({**plain_files, "Makefile": makefile}, ("make",), ("./prog",))
    assert project.run() == {"k.cu": "compiled"}
    assert project.gate().stdout == "5\n"
    project.edit("headers/text.h", "%d", "%3d")
    assert "headers/text.h" in project.gate().stdout


def exchanged(folder, command):
    """A recipe in which a folder is another one while a command runs."""
    return f"mv {folder} aside && mv other {folder} && {command} && mv {folder} other && mv aside {folder}"


@pytest.mark.parametrize(
    "folder, name, text, command",
    [
        ("include", "params.cuh", "#define WINDOW 5\n", "nvcc -arch=sm_90 -Iinclude -c $< -o $@"),
        ("headers", "text.h", '#define TEXT "%x"\n', "g++ -Iheaders -c $< -o $@"),
    ],
)
def test_a_folder_exchanged_and_put_back_while_compiling(bare, plain_files, folder, name, text, command):
    """No file was written, and all lie where they lay."""
    plain_files["Makefile"] = plain_files["Makefile"].replace(command, exchanged(folder, command))
    project = bare({**plain_files, f"other/{name}": text, "first/.keep": ""}, ("make",), ("./prog",))
    project.run()
    done = project.gate()
    assert done.returncode == 125
    assert f"{folder}: was replaced or moved" in done.stdout


HIDING = """\
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) { unsetenv("LD_PRELOAD"); return count < 2 || execvp(words[1], words + 1); }
"""
FAILING = """\
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    char text[999];
    snprintf(text, sizeof text, "PATH=/usr/bin:/bin; ar %s %s %s", words[1], words[2], words[3]);
    return system(text) || count > 1;
}
"""


@pytest.mark.parametrize(
    "source, flag, name, before, after, told",
    [
        (HIDING, "-static", "hide", "nvcc -a", "tools/hide nvcc -a", "k.o: was made by no recorded step"),
        (
            FAILING,
            "-O1",
            "ar",
            "ar crs",
            "-tools/ar crs",
            "the ar that made it ended with exit code 1",
        ),
    ],
)
def test_a_step_that_hides_or_fails_is_never_fresh(
    bare, plain_files, source, flag, name, before, after, told
):
    """A statically linked driver, which nothing preloaded sees; a tool that fails having made a file."""
    plain_files["Makefile"] = plain_files["Makefile"].replace(before, after)
    project = bare({**plain_files, "first/.keep": "", "tools/.keep": ""}, ("make",), ("./prog",))
    compiled = ["gcc", flag, "-x", "c", "-", "-o", f"tools/{name}"]
    subprocess.run(compiled, input=source, text=True, cwd=project.root, env=project.environ, check=True)
    project.tool("run", "--", *project.build)
    done = project.gate()
    assert done.returncode == 125
    assert told in done.stdout


def test_options_that_change_nothing_are_named(bare, plain_files):
    makefile = "all: a.cubin b.cubin\n%.cubin: k.cu\n\tnvcc -arch=sm_90 -Iinclude $(F_$*) -cubin $< -o $@\n"
    plain_files["Makefile"] = makefile + "F_b = -DUNUSED=1\n"
    project = bare(plain_files, ("make",), ("true",))
    done = project.tool("run", "--", *project.build)
    assert "a.cubin and b.cubin hold the same device code of k.cu: `-DUNUSED=1` makes no diff" in done.stderr


EMBEDDING = """\
B = LIBRARIES/../bin
prog: main.cpp blob.S k.h k.fatbin
\tg++ main.cpp blob.S -o $@
k.h: k.cubin
\t$B/bin2c --name text $< > $@
k.fatbin: k.cubin
\t$B/fatbinary --create=$@ --image3=kind=elf,sm=90,file=$<
k.cubin: k.ptx
\t$B/ptxas -arch=sm_90 $< -o $@
k.ptx: k.cu
\tnvcc -arch=sm_90 -ptx $< -o $@
"""


def test_code_that_is_assembled_and_embedded_by_hand(bare):
    """ptxas, fatbinary, .incbin, and bin2c, which makes text of it."""
    files = {
        "Makefile": EMBEDDING,
        "k.cu": "__global__ void k(int *p) { *p = 1; }\n",
        "blob.S": '.section .rodata\n.global blob\nblob: .incbin "k.fatbin"\n',
        "main.cpp": '#include "k.h"\nextern "C" const unsigned char blob[];\n'
        "int main() { return !(blob[0] && text[0]); }\n",
    }
    project = bare(files, ("make",), ("./prog",))
    assert project.run() == {"k.cu": "compiled"}
    assert project.verify()[:2] == (0, {"prog": "fresh"})
    project.edit("k.cu", "= 1", "= 2")
    assert "k.cu: its content changed" in project.gate().stdout
    project.run("make", "k.cubin")
    assert "k.fatbin was made with an older k.cubin" in project.gate().stdout


def test_what_nvcc_links_of_ready_objects_is_as_fresh_as_they_are(bare):
    """nvcc makes a device link of its own on the way, and removes it."""
    call = "__device__ int f(int a);\n__global__ void k(int *p) { *p = f(*p); }\n"
    makefile = """\
libk.so: f.o k.o
\tnvcc -arch=sm_90 -rdc=true -shared -o $@ f.o k.o
%.o: %.cu
\tnvcc -arch=sm_90 -rdc=true -Xcompiler -fPIC -c $< -o $@
"""
    files = {"f.cu": "__device__ int f(int a) { return a + 1; }\n", "k.cu": call, "Makefile": makefile}
    project = bare(files, ("make",), ("true",))
    assert project.run() == {"f.cu": "compiled", "k.cu": "compiled"}
    assert project.verify()[0] == 0
    project.edit("f.cu", "a + 1", "a + 2")
    project.alone("nvcc", "-arch=sm_90", "-rdc=true", "-Xcompiler", "-fPIC", "-c", "f.cu", "-o", "f.o")
    assert project.run("nvcc", "-arch=sm_90", "-rdc=true", "-shared", "-o", "libk.so", "f.o", "k.o")
    assert project.verify()[0] == 5, "an object that no recorded step made went in"


def test_a_first_build_that_fails_is_told_as_one(bare):
    files = {"Makefile": "k.o: k.cu\n\tnvcc -arch=sm_90 -c k.cu -o k.o\n", "k.cu": "broken\n"}
    project = bare(files, ("make",), ("./k",))
    said = project.tool("run", "--", "make").stderr
    assert "0 of 1 CUDA compiles ran" in said
    assert "k.cu: its compile ended with exit code" in said
    done = project.tool("verify")
    assert done.returncode == 5
    assert "(`make`) ended with exit code 2 and left no CUDA code" in done.stdout
    assert "the targets decide" not in done.stderr
    project.file("k.cu", "__global__ void k() {}\n")
    assert "1 of 1 CUDA compiles ran" in project.tool("run", "--", "make").stderr


def test_a_file_that_no_step_is_known_to_read_has_a_remedy_that_helps(plain):
    """make finds nothing to do about it, so to build again is no help; prose is of no account at all."""
    plain.file("README.txt", "read me")
    plain.file("data.bin", "1")
    assert plain.gate().returncode == 125
    plain.run()
    said = plain.gate()
    assert said.returncode == 125
    assert "README.txt" not in said.stdout
    assert "the build system left it alone" in said.stdout and "build from clean" in said.stdout
    (plain.root / "data.bin").unlink()
    assert plain.gate().returncode == 0


GROWING = """app: main.o libk.a
\tg++ main.o libk.a {runtime} -o app
libk.a: k.o l.o h.o
\tar r libk.a $?
%.o: %.cu
\tnvcc -arch=sm_90 -c $< -o $@
%.o: %.cpp
\tg++ -c $< -o $@
"""


def test_an_archive_whose_newer_members_alone_are_replaced(bare, runtime):
    """`ar r $@ $?`: the members that stay are those of earlier builds, and count as such."""
    kernel = '__global__ void NAME(int* p) {{ *p = {}; }}\nextern "C" int NAME_() {{ return 1; }}\n'
    files = {
        "Makefile": GROWING.format(runtime=runtime),
        "k.cu": kernel.format(1).replace("NAME", "k"),
        "l.cu": kernel.format(2).replace("NAME", "l"),
        "h.cpp": 'extern "C" int h() { return 3; }\n',
        "main.cpp": 'extern "C" int k_(), l_(), h();\nint main() { return k_() + l_() + h() - 5; }\n',
    }
    project = bare(files, ("make",), ("./app",))
    project.run()
    assert project.gate().returncode == 0
    project.edit("l.cu", "= 2", "= 4")
    assert project.run() == {"k.cu": "not compiled", "l.cu": "compiled"}
    code, states, said = project.verify()
    assert (code, states.get("app")) == (0, "fresh"), said
    assert project.gate().returncode == 0
    for edited, old, new in (("k.cu", "= 1", "= 7"), ("h.cpp", "return 3", "return 4")):
        project.edit(edited, old, new)
        assert edited in project.gate().stdout
        project.edit(edited, new, old)
    project.edit("h.cpp", "return 3", "return 4")
    project.alone("g++", "-c", "h.cpp", "-o", "h.o")  # and the archive keeps the old one
    assert project.gate().returncode == 125
