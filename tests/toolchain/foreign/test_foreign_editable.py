"""`pip install -e`: setuptools builds in folders of temporary files, and removes them."""

import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

PIP = (sys.executable, "-m", "pip", "-q", "install", "--no-build-isolation", "--no-deps")
EDITABLE = (*PIP, "--disable-pip-version-check", "--prefix", "build/prefix", "-e", ".")


@pytest.fixture
def editable(bare, setuptools_files):
    project = bare({**setuptools_files, "build/keep": ""}, EDITABLE, (sys.executable, "run.py"))
    project.environ |= {"PYTHONDONTWRITEBYTECODE": "1"}
    assert project.run() == {"cuda/kernel.cu": "compiled"}
    return project


def test_an_editable_install_is_known_by_what_its_link_read(editable):
    done = editable.gate()
    assert (done.returncode, done.stdout) == (0, "proof in 88 s\n")
    editable.edit("cuda/kernel.cu", "return 88", "return 87")
    done = editable.gate()
    assert done.returncode == 125 and "cuda/kernel.cu: its content changed" in done.stdout
    assert editable.run() == {"cuda/kernel.cu": "compiled"}
    assert editable.gate().stdout == "proof in 87 s\n"
    editable.run("true")
    code, states, _said = editable.verify()
    assert code == 0 and len(states) == 1, "the objects of both builds are gone, and one library stands"
    assert not list(Path(tempfile.gettempdir()).glob("tmp*.build-*"))


def test_a_library_that_was_changed_after_the_build_copied_it(editable):
    (library,) = editable.root.glob("zk*.so")
    with library.open("ab") as file:
        file.write(b"more")
    assert editable.gate().returncode == 125
