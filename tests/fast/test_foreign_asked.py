"""Variables of the environment that a build's own files ask for."""

import pytest

from orchestrator.foreign.asked import given_to_make, of_build_script, of_makefiles, of_ninja, of_python


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ARCH ?= sm_80\nk.o: k.cu\n\tnvcc -arch=$(ARCH) $(OPT) -c $< -o $@\n", {"ARCH", "OPT"}),
        ("FLAGS = -O2\nx:\n\tcc $(FLAGS)\n", set()),
        ("FLAGS += -O2\nx:\n\tcc ${FLAGS}\n", {"FLAGS"}),
        ("x: FLAGS = -g\nx:\n\tcc $(FLAGS)\n", {"FLAGS"}),
        ("ifdef DEBUG_BUILD\nFLAGS = -g\nendif\nx:\n\tcc $(FLAGS)\n", {"DEBUG_BUILD", "FLAGS"}),
        ("USED := $(LATE)\nLATE = 1\n", {"LATE"}),
        ("export override NVCC := nvcc\nx:\n\t$(NVCC) $$NVCC $${SHELL_VAR}\n", {"SHELL_VAR"}),
        ("SRC = a.cu\nOBJ = $(SRC:.cu=.o)\nx: $(OBJ)\n\tcc $(MAKE) $(MAKEFLAGS) $(PWD) $(CURDIR)\n", set()),
        ("ifeq ($(origin CXX), default)\nCXX = g++\nendif\n# $(COMMENT)\n", {"CXX"}),
        ("define RECIPE\necho\nendef\nx:\n\t$(RECIPE)\n", set()),
        ("LIST = a \\\n  $(MORE)\n", {"MORE"}),
    ],
)
def test_names_that_makefiles_take_from_the_environment(text, names):
    assert of_makefiles([text]) == names


def test_what_an_earlier_file_sets_is_not_asked_for_unless_the_environment_overrides():
    texts = ["FLAGS = -O2\n", "x:\n\tcc $(FLAGS)\n"]
    assert of_makefiles(texts) == set()
    assert of_makefiles(texts, overrides=True) == {"FLAGS"}


def test_names_in_ninja_files_setup_py_and_build_rs():
    assert of_ninja("command = nvcc $flags $$EXTRA $${MORE} -o $out\n") == {"EXTRA", "MORE"}
    python = "os.environ['A']; os.environ.get(\"B\", 1); os.getenv('C'); 'D' in os.environ; environ['PATH']\n"
    assert of_python(python) == {"A", "B", "C", "D"}
    rust = 'env::var("ARCH"); std::env::var_os("EXTRA"); env::var("OUT_DIR"); env::var("CARGO_CFG_X")\n'
    assert of_build_script(rust) == {"ARCH", "EXTRA"}


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("make -j8 ARCH=90 A:=1 prog V=1", "A:=1 ARCH=90"),
        ("make", ""),
        ("make clean", None),
        ("make clean all", ""),
        ("make install PREFIX=/opt DESTDIR=/tmp/x bindir=/b", None),
        ("make install PREFIX=/opt ARCH=90", "ARCH=90"),
        ("make PREFIX=/opt", "PREFIX=/opt"),
    ],
)
def test_what_a_command_of_make_sets(command, given):
    assert given_to_make(command.split()) == given
