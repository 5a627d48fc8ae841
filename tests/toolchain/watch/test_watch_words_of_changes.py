"""Whose targets a change is said to affect, when whole folders and sources go and come back."""

import signal

import pytest

pytestmark = pytest.mark.toolchain


@pytest.fixture
def apart(tree):
    """Two units, each with a folder of its own for its source and one for its header."""
    it = tree(2, 2)
    text = (it.root / "manifests" / "targets.toml").read_text()
    for n in range(2):
        (it.root / f"src{n}").mkdir()
        (it.root / "inc" / f"own{n}").mkdir()
        source = (it.root / "src" / f"u{n}.cu").read_text().replace(f'"h{n}', f'"own{n}/h{n}')
        (it.root / f"src{n}" / f"u{n}.cu").write_text(source)
        (it.root / "inc" / f"h{n}.cuh").rename(it.root / "inc" / f"own{n}" / f"h{n}.cuh")
        text = text.replace(f'"src/u{n}.cu"', f'"src{n}/u{n}.cu"')
    (it.root / "manifests" / "targets.toml").write_text(text)
    return it


def changed(one, good: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Files and targets of the next change, at the end of its round."""
    (event,) = [e for e in one.round(good=good) if e["event"] == "changed"]
    return [(f["path"], f["how"]) for f in event["files"]], event["targets"]


@pytest.mark.parametrize("name", ["src1", "inc/own1", "src1/u1.cu", "inc/own1/h1.cuh"])
def test_what_vanishes_and_comes_back_affects_its_own_targets(apart, watch, name):
    one = watch(apart.root, path=apart.path)
    one.round(good=True)
    (apart.root / name).rename(apart.root / "elsewhere")
    assert changed(one, good=False) == ([(name, "gone")], ["u1"])
    one.rest()
    (apart.root / "elsewhere").rename(apart.root / name)
    assert changed(one, good=True) == ([(name, "appeared")], ["u1"])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_request_to_end_says_nothing_and_has_its_own_exit_code(apart, watch, number, code):
    one = watch(apart.root, path=apart.path)
    one.round(good=True)
    one.process.send_signal(number)
    assert one.process.wait(timeout=60) == code
    assert one.process.stderr.read() == ""
