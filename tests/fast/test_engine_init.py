"""A first targets.toml from what a project holds."""

import os

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli import cli
from orchestrator.errors import AnswerIsNo, ConfigurationError
from orchestrator.first_targets import write_targets
from orchestrator.model import Kind
from orchestrator.targets import parse_targets

KERNEL = 'extern "C" __global__ void __launch_bounds__(256) k(int *p) {}\n'


def targets(sources, headers=()):
    return {t.sources[0]: t for t in parse_targets(write_targets("p", sources, headers)).targets}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (KERNEL, Kind.CUBIN),
        (KERNEL + "__global__ void other() {}", Kind.OBJECT),
        (KERNEL + "void f() { k<<<1, 1>>>(0); }", Kind.OBJECT),
        ("int main() { return 0; }", Kind.EXECUTABLE),
        ("// int main()\n", Kind.OBJECT),
        ("", Kind.OBJECT),
    ],
)
def test_kinds_follow_from_what_a_source_defines(text, kind):
    target = targets({"a.cu": text})["a.cu"]
    assert target.kind is kind
    assert target.expect.kernels == (("k",) if kind is Kind.CUBIN else ())


def test_folders_of_headers_that_are_not_beside_the_source_are_named():
    source = '#include "near.cuh"\n#include "far.cuh"\n#include <lib/x.h>\n#include <vector>\n'
    found = targets({"src/a.cu": source}, ["src/near.cuh", "inc/far.cuh", "third/include/lib/x.h"])
    assert found["src/a.cu"].include == ("inc", "third/include")


def test_equal_names_in_different_folders_stay_apart():
    found = targets({"x/a.cu": "", "y/a.cu": "", "y/a-.cu": "", "y.a.cu": ""})
    assert len({t.name for t in found.values()}) == 4


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["ü.cu"], ["u"]),
        (["u.cu", "û.cu", "ü.cu"], ["u", "u-2", "u-3"]),
        (["Größe_ﬁn.cu"], ["Grosse_fin"]),
        (["u\u0308ber.cu"], ["uber"]),
        (["msm-核.cu"], ["msm"]),
        (["核.cu", "心.cu"], ["target-2", "target-1"]),
        (["src/核.cu", "src/心.cu", "target-1.cu"], ["src-2", "src", "target-1"]),
        (["_a_.cu"], ["a_"]),
        ([f"{'x' * 200}.cu", f"{'x' * 201}.cu"], ["x" * 90, f"{'x' * 90}-2"]),
    ],
)
def test_names_keep_what_they_can_of_the_files(paths, names):
    found = targets(dict.fromkeys(paths, ""))
    assert [found[path].name for path in paths] == names


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0/", codec="utf-8"), min_size=1).map(lambda n: f"{n}.cu"),
        st.text(),
        max_size=4,
    )
)
def test_whatever_the_files_are_called_the_result_is_a_valid_file(sources):
    write_targets("p", sources, [])
    assert len(parse_targets(write_targets("p", sources, [])).targets) <= len(sources)


def test_the_command_writes_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AnswerIsNo):
        CliRunner().invoke(cli, ["init"], catch_exceptions=False, standalone_mode=False)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(KERNEL)
    (tmp_path / "src" / "nowhere.cu").symlink_to("gone.cu")
    os.mkfifo(tmp_path / "src" / "pipe\n.cu")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "b.cu").write_text(KERNEL)
    result = CliRunner().invoke(cli, ["init"], standalone_mode=False)
    assert "with 1 target;" in result.output
    assert "left out: src/nowhere.cu cannot be read" in result.output
    assert "left out: src/pipe\\n.cu cannot be read" in result.output
    assert os.listdir(tmp_path / "manifests") == ["targets.toml"]  # noqa: PTH208
    with pytest.raises(ConfigurationError, match="exists already"):
        CliRunner().invoke(cli, ["init"], catch_exceptions=False, standalone_mode=False)
