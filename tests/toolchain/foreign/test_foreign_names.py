"""Recorded products by name, and records found from the folders below."""

import json
import shutil

import pytest

pytestmark = [pytest.mark.toolchain, pytest.mark.needs("make")]


def test_a_recorded_product_is_gated_by_its_path_or_its_name(plain):
    for name in ("prog", "./prog", "libk.a", str(plain.root / "prog")):
        done = plain.tool("gate", name)
        assert done.returncode == 0 and "as recorded" in done.stdout, name
    assert plain.tool("gate", "prog", "--", "./prog").stdout == "5\n"
    done = plain.tool("gate", "prgo")
    assert done.returncode == 2 and "no product of the recorded build" in done.stderr
    assert "there are: prog" in done.stderr
    assert plain.tool("verify", "libk.a").returncode == 0


def test_a_command_behind_a_product_that_is_named_waits_for_that_one(plain):
    assert plain.tool("gate", "libk.a", "--", "true").returncode == 0
    plain.edit("headers/text.h", "%d", "%x")
    assert plain.tool("gate", "libk.a", "--", "true").returncode == 0, "no host code of the program is in it"
    done = plain.tool("gate", "libk.a", "--", "./prog")
    assert done.returncode == 125 and "headers/text.h: its content changed" in done.stdout
    assert plain.tool("gate", "prog", "--", "true").returncode == 125


def test_what_program_and_library_share_is_told_once(bare, plain_files):
    shared = plain_files["Makefile"].replace(
        "libk.a: k.o\n\tar crs $@ $^", "libk.so: k.o\n\tg++ -shared -o $@ $^"
    )
    shared = shared.replace("libk.a", "libk.so").replace("-arch=sm_90", "-arch=sm_90 -Xcompiler -fPIC")
    files = {
        **plain_files,
        "Makefile": shared + "all: prog tool\ntool: prog\n\tcp prog tool2; g++ -o $@ main.o k.o",
    }
    files["Makefile"] = shared.replace("-L. -lk", "k.o")
    files["Makefile"] = "all: prog libk.so\n" + files["Makefile"].replace(
        "prog: main.o libk.so", "prog: main.o k.o"
    )
    project = bare(files, ("make",), ("./prog",))
    project.run()
    assert project.tool("gate").returncode == 0
    project.edit("include/params.cuh", "4", "5")
    done = project.tool("gate")
    assert done.returncode == 5
    assert done.stdout.count("include/params.cuh: its content changed") == 1
    assert "of       libk.so, prog" in done.stdout


def test_copies_of_recorded_products_are_found(plain, tmp_path):
    copy = tmp_path / "elsewhere" / "libk.a"
    copy.parent.mkdir()
    copy.write_bytes((plain.root / "libk.a").read_bytes())

    def states():
        done = plain.tool("audit", "--json", copy.parent, plain.root)
        groups = json.loads(done.stdout)["groups"]
        return done.returncode, {copy["path"]: copy["state"] for g in groups for copy in g["copies"]}

    code, found = states()
    assert code == 0 and found[str(copy)] == found[str(plain.root / "libk.a")] == "current"
    plain.edit("k.cu", "= WINDOW", "= WINDOW + 1")
    code, found = states()
    assert code == 1 and found[str(plain.root / "prog")] == "stale"
    plain.run()
    code, found = states()
    assert code == 1 and (found[str(copy)], found[str(plain.root / "libk.a")]) == ("stale", "current")


def test_a_build_in_a_folder_below_adds_to_the_record_above(bare, plain_files):
    project = bare({**plain_files, "sub/deep/keep": ""}, ("make",), ("./prog",))
    project.run()
    root, below = project.root, project.root / "sub" / "deep"
    project.edit("k.cu", "return 5", "return 6")
    project.root = below
    done = project.tool("run", "--", "make", "-C", "../..")
    assert done.returncode == 0 and f"in {root}/.freshproof" in done.stderr
    assert not (below / ".freshproof").exists()
    assert project.tool("gate", "prog", "--", "../../prog").stdout == "6\n"
    project.root = root
    assert project.gate().stdout == "6\n"


def test_a_copy_of_a_project_is_not_judged_by_the_sources_of_the_first(bare, plain_files):
    project = bare(plain_files, ("make",), ("./prog",))
    project.run()
    first, copy = project.root, project.root.with_name("copy")
    shutil.copytree(first, copy, symlinks=True)
    project.root = copy
    project.edit("k.cu", "return 5", "return 6")
    done = project.gate()
    assert done.returncode == 125 and f"this was recorded in {first}" in done.stderr
    project.run()
    assert project.gate().returncode == 125, "what make left alone came from elsewhere"
    for path in copy.glob("*.[oa]"):
        path.unlink()
    project.run()
    assert project.gate().stdout == "6\n"


def test_a_program_that_is_not_there_is_said_to_be_missing(plain):
    done = plain.tool("gate", "--", "./porg")
    assert done.returncode == 125 and "./porg: there is no such program to run" in done.stderr
    assert done.stdout == ""
