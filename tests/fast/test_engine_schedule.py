"""Steps that need one another: order, failures, and the end of an interrupted run."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BuildFailed
from orchestrator.process import Runner, run
from orchestrator.schedule import critical_seconds, run_steps


@st.composite
def graphs(draw):
    """Steps s0, s1, ... each of which needs some before it."""
    size = draw(st.integers(0, 8))
    return {
        f"s{n}": [f"s{m}" for m in draw(st.sets(st.integers(0, n - 1), max_size=3))] if n else []
        for n in range(size)
    }


@settings(max_examples=60)
@given(graphs(), st.integers(1, 4), st.sets(st.integers(0, 7)))
def test_every_step_runs_once_and_after_all_that_it_needs(needs, jobs, decided):
    finished, lock = [], threading.Lock()

    def finish(name):
        with lock:
            assert set(needs[name]) <= set(finished)
            finished.append(name)
        return name.upper()

    def decide(name):
        return finish(name) if int(name[1:]) in decided else None

    answers = run_steps(needs, dict.fromkeys(needs, 1.0), decide, finish, jobs, lambda: None)
    assert answers == {name: name.upper() for name in needs}
    assert sorted(finished) == sorted(needs)


def test_the_longest_way_goes_first():
    needs = {"short": [], "long": [], "first": [], "then": ["first"]}
    own = {"short": 1.0, "long": 3.0, "first": 2.0, "then": 4.0}
    assert critical_seconds(needs, own) == {"short": 1.0, "long": 3.0, "first": 6.0, "then": 4.0}
    order = []
    run_steps(needs, own, lambda _name: None, lambda name: order.append(name) or name, 1, lambda: None)
    assert order == ["first", "long", "short", "then"]


def test_an_exception_stops_what_is_running():
    runner = Runner()

    def work(name):
        if name == "bad":
            raise KeyboardInterrupt
        return runner.run(["/bin/sleep", "60"], {}, "/").code

    needs = {"slow": [], "bad": []}
    with pytest.raises(KeyboardInterrupt):
        run_steps(needs, {"slow": 2.0, "bad": 1.0}, lambda _name: None, work, 2, runner.stop)
    with pytest.raises(BuildFailed, match="interrupted"):
        runner.run(["/bin/true"], {}, "/")


def test_a_command_gets_its_environment_alone_and_all_of_its_output_is_kept():
    ended = run(["/bin/sh", "-c", "echo out; echo err >&2; env; exit 3"], {"ONLY": "1"}, "/")
    lines = ended.said.decode().splitlines()
    assert ended.code == 3
    assert lines[:2] == ["out", "err"]
    assert {line.split("=")[0] for line in lines[2:]} <= {"ONLY", "PWD", "SHLVL", "_", "OLDPWD"}
