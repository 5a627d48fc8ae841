"""Files that describe a build, found from the programs that read them."""

from dataclasses import replace

import pytest

from orchestrator.foreign.descriptions import asked_variables, configured_from, descriptions
from orchestrator.foreign.events import Event
from orchestrator.foreign.receipt import project_root, variables


def ran(folder, *argv):
    return (Event(1, 0, 1, str(folder), f"/usr/bin/{argv[0]}", argv, ()),)


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "Makefile": "include common.mk\n-include local.mk $(DEPENDENCIES) x.d\n",
        "common.mk": "",
        "sub/other.mk": "",
        "ninja/build.ninja": "include rules.ninja\nrule r\n  command = true\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(folder, events, **environ):
    found = descriptions(events, {"HOME": str(folder), **environ})
    return {name.removeprefix(f"{folder}/") for name in found}


def test_makefiles_with_what_they_include_and_what_would_be_read_before_them(folder):
    wanted = {"GNUmakefile", "makefile", "Makefile", "common.mk", "local.mk"}
    assert names(folder, ran(folder, "make", "-j4")) == wanted
    assert names(folder, ran(folder / "sub", "make", "-C", "..")) == wanted
    assert names(folder, ran(folder, "make", "-C", "sub", "-f", "other.mk")) == {"sub/other.mk"}


def test_ninja_files(folder):
    assert names(folder, ran(folder, "ninja", "-Cninja")) == {"ninja/build.ninja", "ninja/rules.ninja"}


def test_settings_of_cargo(folder):
    found = names(folder, ran(folder / "sub", "cargo", "build"), CARGO_HOME=f"{folder}/home")
    assert found >= {"rust-toolchain.toml", "sub/rust-toolchain", "/rust-toolchain"}
    assert found >= {"home/config.toml", "sub/.cargo/config.toml", ".cargo/config.toml", ".cargo/config"}


def test_what_cmake_was_configured_to(folder):
    """Its own makefiles follow from that, and change with every target."""
    build = folder / "out side"
    (build / "deep").mkdir(parents=True)
    (build / "Makefile").write_text("")
    (build / "CMakeCache.txt").write_text(f"A:BOOL=ON\nCMAKE_HOME_DIRECTORY:INTERNAL={folder / 'sub'}\n")
    wanted = {"out side/CMakeCache.txt"}
    assert names(folder, ran(folder, "cmake", "--build", "out side")) == wanted
    assert names(folder, ran(build / "deep", "make", "-f", "Makefile")) == wanted
    assert names(folder, ran(build, "make")) == wanted
    assert configured_from(str(build / "deep")) == str((folder / "sub").resolve())
    assert configured_from(str(folder)) == ""
    assert project_root(str(build)) == str((folder / "sub").resolve())


def test_variables_that_rust_asks_for(tmp_path):
    (tmp_path / "x.d").write_text(
        "x: a.rs\n\n# env-dep:SECRET=1\n# env-dep:CARGO_PKG_NAME=x\n# env-dep:UNSET\n"
    )
    (tmp_path / "output").write_text("cargo:rerun-if-env-changed=ARCH\ncargo::rerun-if-env-changed=FLAGS\n")
    argv = ("rustc", "--crate-name", "x", "a.rs", "--emit=dep-info,link", "--out-dir", str(tmp_path))
    (rustc,) = ran(tmp_path, *argv)
    (script,) = ran(tmp_path, "nvcc")
    script = replace(script, settings=(("OUT_DIR", str(tmp_path / "out")),))
    asked = asked_variables((rustc, script))
    assert asked == ("ARCH", "FLAGS", "SECRET", "UNSET")
    kept = variables({"SECRET": "hidden", "HOME": "/h"}, asked)
    assert set(kept) == {"SECRET"} and "hidden" not in kept["SECRET"]


def test_settings_of_cargo_in_variables_but_for_places():
    settings = {"CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER": "lld"}
    places = {"CARGO_TARGET_DIR": "../tg", "CARGO_BUILD_JOBS": "4", "CARGO_HOME": "/c", "CARGO_PKG_NAME": "x"}
    assert variables({**settings, **places}) == settings


def test_of_make_s_flags_only_what_they_assign():
    assert variables({"MAKEFLAGS": " -j8 --jobserver-auth=3,4"}) == {}
    assert variables({"MAKEFLAGS": "w -- CXX=clang++ V=1"}) == {"MAKEFLAGS": "CXX=clang++ V=1"}
