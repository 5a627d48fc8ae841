"""What the watch does when the system will not let it watch."""

import errno

import pytest

from orchestrator.errors import Missing
from orchestrator.watch import Watcher


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
