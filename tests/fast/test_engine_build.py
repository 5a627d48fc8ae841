"""What a build says of steps that did not come to their end."""

import subprocess
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.build import Progress, Result, _Builder, _require_sources
from orchestrator.build_report import command_lines
from orchestrator.errors import BuildFailed, ConfigurationError
from orchestrator.model import Kind, State, Target, Verdict
from orchestrator.workspace import Workspace

ACTION = SimpleNamespace(target=SimpleNamespace(name="k", uses=()))
VERDICT = Verdict("k", State.FRESH, (), ())


def builder(told, *, stopped):
    def killed(action, means):
        raise BuildFailed("k: nvcc ended with signal 9:\nit printed nothing")

    return SimpleNamespace(
        progress=Progress(ended=told.append, note=told.append),
        manifests={},
        situation=SimpleNamespace(toolchains={"k": None}),
        _tools={"k": None},
        _maker=SimpleNamespace(make=killed, runner=SimpleNamespace(stopped=stopped, stop=lambda: None)),
    )


def test_a_failed_step_is_an_outcome():
    told = []
    assert _Builder._make(builder(told, stopped=False), ACTION, VERDICT).result is Result.FAILED
    assert told


def test_a_step_that_an_interruption_ended_is_not_said_to_have_failed():
    told = []
    with pytest.raises(BuildFailed):
        _Builder._make(builder(told, stopped=True), ACTION, VERDICT)
    assert told == []


def test_an_interrupted_build_says_so_and_what_is_not_done():
    told = []

    def interrupted(action):
        raise KeyboardInterrupt

    fake = builder(told, stopped=False)
    fake.situation.actions = (ACTION,)
    fake.verdict, fake._expected_seconds = interrupted, lambda name: 1.0
    with pytest.raises(KeyboardInterrupt):
        _Builder.bring_up_to_date(fake, 1, False)
    assert told == ["interrupted; not done: k. What was done is kept"]


def test_a_source_that_is_not_there_is_a_mistake_in_the_targets_file_with_its_line(tmp_path):
    (tmp_path / "there.cu").write_text("")
    actions = tuple(
        SimpleNamespace(target=Target(name, Kind.CUBIN, (f"{name}.cu",), sources_line=line))
        for name, line in (("there", 2), ("gone", 7))
    )
    situation = SimpleNamespace(workspace=Workspace(tmp_path), actions=actions)
    with pytest.raises(ConfigurationError, match=r"targets\.toml:7: .*there is no file gone\.cu"):
        _require_sources(situation)


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"))
        | st.sampled_from(["\udcff", "'\n\\n"]),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=20)
def test_a_planned_command_is_one_line_and_runs_as_planned(words):
    action = SimpleNamespace(
        target=SimpleNamespace(name="k"), environment=(("A", words[0]),), argv=("printf", "%s|", *words)
    )
    _name, line = command_lines(SimpleNamespace(actions=[action]))
    assert line.isprintable()
    command = line.replace(" printf ", " /usr/bin/printf ", 1)
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout == "".join(f"{word}|" for word in words).encode("utf-8", "surrogateescape")
