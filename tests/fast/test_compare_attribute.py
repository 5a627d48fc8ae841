"""`freshproof attribute` as typed, against a fake worker, a fake gate and a fake build."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import orchestrator.cli.attribute as module
from orchestrator.build import Outcome, Result
from orchestrator.cli import cli, run_command
from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict
from orchestrator.others import Others
from orchestrator.records import read_record

FAKE = Path(__file__).with_name("fake_worker.py")
TARGETS = """schema = 1
[project]
name = "p"
[target.lib]
kind = "cubin"
sources = ["a.cu"]
[target.lib.variants.slow]
[target.lib.variants.fast]
[target.lib.variants.nothing]
[target.lib.variants.broken]
[target.other]
kind = "cubin"
sources = ["b.cu"]
[workload.flags]
command = ["python", "work.py", "flags"]
uses = ["lib"]
warmups = 0
[workload.plain]
command = ["true"]
uses = ["lib"]
worker = false
"""
NO_OPS = ("nothing",)


def fresh(root, names):
    verdicts = tuple(Verdict(name, State.FRESH, (), ((Link.INPUTS, 1),)) for name in names)
    artifacts = tuple(
        Admitted(n, Kind.CUBIN, f"build/{n}", f"sha256:{n}", f"stamp-{n}", "sha256:m", None) for n in names
    )
    return Admission(verdicts, artifacts)


def stale(root, names):
    digests = ("sha256:1", "sha256:2")
    finding = Finding(State.STALE, Link.INPUTS, "input-changed", "a.cuh", *digests, "a.cuh: edited", "build")
    return Admission(tuple(Verdict(name, State.STALE, (finding,), ()) for name in names), ())


def fake_build(built, workspace, names, environ, *, progress):
    """All names are made; the code of flags that do nothing is that of the target without them."""
    built += names
    outcomes, manifests = [], {}
    for name in names:
        target, _, variants = name.partition(".")
        on = [v for v in variants.split("+") if v and v not in NO_OPS]
        result = Result.FAILED if "broken" in on else Result.BUILT
        outcomes.append(Outcome(name, result, "never built here", 0.0, message="no such thing"))
        made = workspace.root / name
        made.write_text(f"{target} with {' '.join(on)}")
        manifests[name] = SimpleNamespace(product=SimpleNamespace(path=name))
    return SimpleNamespace(outcomes=tuple(outcomes), manifests=manifests)


@pytest.fixture
def attribute(tmp_path, monkeypatch, capsys):
    """Run the command in a project; gives exit code, standard output, standard error, and what was built."""

    def run(*arguments, admit=fresh, others=0.0):
        built: list[str] = []
        (tmp_path / "manifests").mkdir(exist_ok=True)
        (tmp_path / "manifests/targets.toml").write_text(TARGETS)
        shutil.copy(FAKE, tmp_path / "work.py")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "admit", admit)
        monkeypatch.setattr(module, "build", lambda *a, **k: fake_build(built, *a, **k))
        monkeypatch.setattr(module, "same_machine_code", lambda a, b: a.read_text() == b.read_text())
        monkeypatch.setattr(module, "with_machine_code", lambda admission, _gpus: admission)
        monkeypatch.setattr(module, "architectures", lambda environ: "none here")
        monkeypatch.setattr(Others, "processors", lambda self: others)
        monkeypatch.setattr("sys.argv", ["freshproof", "attribute", *arguments])
        with pytest.raises(SystemExit) as ended:
            run_command(cli)
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err, built

    return run


def test_flags_that_act_on_each_other_are_told_apart(attribute, tmp_path):
    """slow adds 4 ms, fast takes 2 ms off, both together add 3 ms more: shares of 5.5 and -0.5 ms."""
    code, out, _, built = attribute("flags", "lib.slow", "lib.fast", "--blocks", "3", "--json")
    document = json.loads(out)
    assert code == 0
    assert set(built) == {"lib", "lib.slow", "lib.fast", "lib.slow+fast"}
    shares = {flag["flag"]: flag["share"]["value"] / 1e6 for flag in document["flags"]}
    assert shares == pytest.approx({"lib.slow": 5.5, "lib.fast": -0.5})
    assert [flag["kind"] for flag in document["flags"]] == ["depends on others"] * 2
    assert document["whole"]["value"] == pytest.approx(5e6)
    lines = read_record(tmp_path / document["record"])
    assert lines[0]["purpose"] == "attribute"
    assert {arm["arm"] for arm in lines[0]["arms"]} == {"none", "slow", "fast", "slow+fast"}
    assert lines[-1]["state"] == "fresh"


def test_a_table_for_people_names_the_phase(attribute):
    code, out, _, _ = attribute("flags", "lib.slow", "--blocks", "3", "--samples", "1")
    assert code == 0
    assert "10.000 ms with no flag on, 14.000 ms with all on" in out
    row = next(line for line in out.splitlines() if line.strip().startswith("lib.slow"))
    assert "+4.000" in row and "slows" in row and "second" in row


def test_flags_that_change_no_code_are_left_out(attribute):
    code, out, err, _ = attribute("flags", "lib.fast", "lib.nothing", "--blocks", "3", "--samples", "1")
    assert code == 0
    assert "lib.nothing makes the same code" in out + err
    row = next(line for line in out.splitlines() if line.strip().startswith("lib.fast"))
    assert "speeds up" in row
    assert attribute("flags", "lib.nothing")[0] == 1


def test_what_cannot_be_built_is_a_failed_build(attribute):
    code, _, err, _ = attribute("flags", "lib.slow", "lib.broken")
    assert code == 7
    assert "no such thing" in err


def test_a_star_means_several(attribute):
    _, out, _, _ = attribute("flags", "lib.*ow", "lib.fas*", "--blocks", "3", "--samples", "1", "--json")
    assert [flag["flag"] for flag in json.loads(out)["flags"]] == ["lib.slow", "lib.fast"]


def test_a_targets_name_stands_for_its_variants(attribute):
    assert attribute("flags", "lib")[0] == 7  # one of them is broken


def test_what_is_stale_is_not_timed(attribute):
    code, _, err, _ = attribute("flags", "lib.slow", admit=stale)
    assert code == 5
    assert "nothing was timed" in err and "a.cuh" in err


def test_busy_neighbours_are_told(attribute):
    code, out, _, _ = attribute("flags", "lib.slow", "--blocks", "3", "--samples", "1", others=100.0)
    assert code == 3
    assert "other programs were busy" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["flags", "lib.slwo"], "did you mean `lib.slow`"),
        (["flags", "lib.slow", "--threshold", "nan"], "no number"),
        (["flags", "other"], "has no variants"),
        (["flogs", "lib.slow"], "did you mean `flags`"),
        (["plain", "lib.slow"], "cannot be told to load a variant"),
    ],
)
def test_mistakes_are_messages(attribute, arguments, word):
    code, _, err, _ = attribute(*arguments)
    assert code == 2
    assert word in err
