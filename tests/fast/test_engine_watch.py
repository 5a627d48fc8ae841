"""What the watch says, and what it does when the system will not let it watch."""

import errno
import json
from types import SimpleNamespace

import pytest

import orchestrator.cli.watch as module
from orchestrator.build import Built, Outcome, Result
from orchestrator.errors import ConfigurationError, Missing
from orchestrator.model import State, Verdict
from orchestrator.watch import Watcher
from orchestrator.workspace import Workspace


def refusing(number, words):
    def schedule(*_arguments, **_keywords):
        raise OSError(number, words)

    return schedule


def test_too_few_watches_is_a_message_with_a_remedy(tmp_path, monkeypatch):
    watcher = Watcher(tmp_path)
    monkeypatch.setattr(watcher._observer, "schedule", refusing(errno.ENOSPC, "inotify watch limit reached"))
    with pytest.raises(Missing, match="inotify watch limit") as raised:
        watcher.extend([(tmp_path, False)])
    assert "max_user_watches" in raised.value.remedy


def test_a_folder_that_is_gone_meanwhile_is_tried_again_later(tmp_path, monkeypatch):
    watcher = Watcher(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(watcher._observer, "schedule", refusing(errno.ENOENT, "No such file"))
        assert not watcher.extend([(tmp_path, False)])
    assert watcher.extend([(tmp_path, False)])


def outcome(name, result):
    return Outcome(name, result, "", Verdict(name, State.FRESH, (), ()))


def rounds_said(monkeypatch, tmp_path, capsys, answers, *, as_json=False):
    """What the watch says of a second round, after a first one."""
    answers = list(answers)

    def build(*_arguments, **_keywords):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        situation = SimpleNamespace(project=SimpleNamespace(), toolchains={}, actions=(), notes=())
        return Built(situation, answer, {})

    monkeypatch.setattr(module, "build", build)
    monkeypatch.setattr(module, "folders_to_watch", lambda *_: [])
    rounds = module._Rounds(Workspace(tmp_path), (), as_json)
    for _ in range(len(answers)):
        capsys.readouterr()
        rounds.round(["k.cu"])
    return capsys.readouterr().out


FAILED, FRESH = (outcome("k", Result.FAILED),), (outcome("k", Result.FRESH),)
WRONG = ConfigurationError("targets.toml:3: wrong", remedy="mend it")


@pytest.mark.parametrize("answers", [(FRESH, FAILED, FRESH), (FRESH, WRONG, FRESH), (WRONG, FRESH)])
def test_what_is_well_again_is_said(monkeypatch, tmp_path, capsys, answers):
    assert "k" in rounds_said(monkeypatch, tmp_path, capsys, answers)
    if answers[0] is FRESH:
        assert "fresh again: k" in rounds_said(monkeypatch, tmp_path, capsys, answers)


def test_what_was_well_before_is_not_said_again(monkeypatch, tmp_path, capsys):
    assert rounds_said(monkeypatch, tmp_path, capsys, (FRESH, FRESH)) == ""
    assert rounds_said(monkeypatch, tmp_path, capsys, (FRESH, FAILED, FRESH, FRESH)) == ""


def test_an_error_is_a_document_under_json(monkeypatch, tmp_path, capsys):
    said = rounds_said(monkeypatch, tmp_path, capsys, (FRESH, WRONG), as_json=True)
    assert json.loads(said)["error"] == "targets.toml:3: wrong"
