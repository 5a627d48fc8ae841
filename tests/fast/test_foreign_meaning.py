"""Descriptions that say the same, and such that only look like it."""

import pytest

from orchestrator.foreign.meaning import has_meaning, meaning

MAKEFILE = "ARCH = 90\n# a comment\n\nprog: k.o\n\tnvcc k.o -o $@\n"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (MAKEFILE, MAKEFILE.replace("# a comment", "# another\n#\n"), True),
        (MAKEFILE, MAKEFILE.replace("90", "80"), False),
        (MAKEFILE, MAKEFILE.replace("\tnvcc", "\t# said by the shell\n\tnvcc"), False),
        (MAKEFILE, MAKEFILE.replace("# a comment", "# a comment \\"), False),
        ("A = 1 \\\n# part of it\n", "A = 1 \\\n# other part of it\n", False),
        ("define X\n# text\nendef\n", "define X\n# other text\nendef\n", False),
        ("define X\nendef\n# text\n", "define X\nendef\n# other text\n", True),
        ("A = 1 # one\n", "A = 1 # two\n", False),
    ],
)
def test_makefiles(one, other, same):
    assert (meaning("p/Makefile", one) == meaning("p/Makefile", other)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("[a]\nx = 1\ny = 2\n", "[a]  # of a\ny = 2\nx = 1\n", True),
        ("x = 1\n", "x = 1.0\n", False),
        ("x = [1, 2]\n", "x = [2, 1]\n", False),
        ("[[bin]]\nname = 'a'\n[[bin]]\nname = 'b'\n", "[[bin]]\nname = 'b'\n[[bin]]\nname = 'a'\n", False),
    ],
)
def test_cargo_s_manifests(one, other, same):
    assert (meaning("p/Cargo.toml", one) == meaning("p/Cargo.toml", other)) is same


def test_other_files_are_taken_by_their_bytes():
    assert [has_meaning(p) for p in ("a/rules.mk", "GNUmakefile", "Makefile.am", "x.toml", "k.cu")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    with pytest.raises(ValueError):
        meaning("Cargo.toml", "no = = toml")
