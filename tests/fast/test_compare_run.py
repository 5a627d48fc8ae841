"""`freshproof compare` as typed, against a fake worker and a fake gate: answers, refusals, records, codes."""

import json
import shutil
from pathlib import Path

import pytest

import orchestrator.cli.compare as module
from orchestrator.cli import cli, run_command
from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict
from orchestrator.others import Others
from orchestrator.records import RecordWriter, read_record

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
[workload.ten]
command = ["python", "work.py", "lasts@10"]
uses = ["lib"]
[workload.thirteen]
command = ["python", "work.py", "lasts@13"]
uses = ["lib"]
[workload.flags]
command = ["python", "work.py", "flags"]
uses = ["lib"]
[workload.broken]
command = ["python", "work.py", "bad-check@1"]
uses = ["lib"]
[workload.liar]
command = ["python", "work.py", "wrong-digest"]
uses = ["lib"]
[workload.plain]
command = ["true"]
uses = ["lib"]
worker = false
"""


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


class Turning:
    """Fresh at first, stale when asked again."""

    def __init__(self):
        self.asked = 0

    def __call__(self, root, names):
        self.asked += 1
        return (fresh if self.asked == 1 else stale)(root, names)


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """Run the command in a project; gives exit code, standard output and standard error."""

    def run(*arguments, admit=fresh, others=0.0):
        (tmp_path / "manifests").mkdir(exist_ok=True)
        (tmp_path / "manifests/targets.toml").write_text(TARGETS)
        shutil.copy(FAKE, tmp_path / "work.py")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "admit", admit)
        monkeypatch.setattr(module, "with_machine_code", lambda admission, _gpus: admission)
        monkeypatch.setattr(module, "architectures", lambda environ: "none here")
        monkeypatch.setattr(Others, "processors", lambda self: others)
        monkeypatch.setattr("sys.argv", ["freshproof", "compare", *arguments])
        with pytest.raises(SystemExit) as ended:
            run_command(cli)
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


def only_record(root: Path) -> list[dict]:
    (path,) = (root / "build/records").glob("*.jsonl")
    return read_record(path)


def test_a_slower_workload_is_a_no_with_its_phases_and_digests(compare, tmp_path):
    code, out, _ = compare("ten", "thirteen")
    assert code == 1
    assert "regressed: B takes +30.0 % beside A" in out
    assert "second" in out and "sha256:lib" in out
    lines = only_record(tmp_path)
    assert lines[0]["purpose"] == "compare"
    assert [arm["workload"] for arm in lines[0]["arms"]] == ["ten", "thirteen"]
    measured = [line for line in lines if line["kind"] == "sample" and line["phase"] == "measured"]
    orders = {"".join(line["arm"] for line in measured if line["launch"] == launch) for launch in range(8)}
    assert orders <= {"ABBA", "BAAB"}
    assert lines[-2]["kind"] == "comparison"
    assert lines[-1]["state"] == "fresh"


def test_a_faster_one_is_improved(compare):
    code, out, _ = compare("thirteen", "ten", "--blocks", "6")
    assert code == 0
    assert "improved: B takes -23.1 %" in out


def test_the_same_code_is_said_to_be_the_same_code(compare):
    code, out, _ = compare("ten", "ten", "--blocks", "6")
    assert code == 0
    assert "the same within 1 %" in out
    assert "A and B run the same code" in out


def test_a_variant_takes_its_targets_place(compare, tmp_path):
    code, out, _ = compare("flags", "--with", "lib.slow", "--blocks", "6", "--json")
    document = json.loads(out)
    assert (code, document["answer"]) == (1, "regressed")
    assert document["shift"] == pytest.approx(0.4)
    assert [side["artifacts"][0]["target"] for side in document["sides"]] == ["lib", "lib.slow"]
    assert [side["title"] for side in document["sides"]] == ["flags", "flags with lib.slow"]


def test_a_command_without_a_worker_is_proven_on_disk_only(compare):
    code, out, _ = compare("plain", "plain", "--blocks", "6", "--json")
    assert code in (0, 1, 3)
    assert [side["level"] for side in json.loads(out)["sides"]] == ["file-proven"] * 2


def test_what_is_stale_is_not_timed(compare, tmp_path):
    code, _, err = compare("ten", "thirteen", admit=stale)
    assert code == 5
    assert "nothing was timed" in err and "a.cuh" in err
    assert not list((tmp_path / "build").glob("records/*"))


def test_what_becomes_stale_meanwhile_is_void(compare, tmp_path):
    code, out, err = compare("ten", "ten", "--blocks", "6", admit=Turning())
    assert code == 5
    assert "the samples are void" in err
    assert "the same within" not in out
    assert only_record(tmp_path)[-1]["state"] == "void"


def test_a_worker_that_loads_something_else_is_refused(compare, tmp_path):
    code, _, err = compare("ten", "liar", "--blocks", "6")
    assert code == 5
    assert "runs another artifact" in err
    assert only_record(tmp_path)[-1]["state"] == "void"


def test_a_wrong_result_breaks_the_run(compare, tmp_path):
    code, out, err = compare("ten", "broken", "--blocks", "6", "--json")
    assert code == 6
    assert "B (broken): sample 1: the result failed its check" in err
    assert json.loads(out)["exit_code"] == 6
    assert only_record(tmp_path)[-1]["state"] == "broken"


def test_busy_neighbours_make_it_undecided(compare, tmp_path):
    code, out, _ = compare("ten", "thirteen", others=100.0)
    assert code == 3
    assert "contaminated" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["tem", "thirteen"], "did you mean `ten`"),
        (["ten", "thirteen", "flags"], "two things are compared"),
        (["flags", "--with", "slow"], "no variant"),
        (["flags", "--with", "other.slow"], "does not use `other`"),
        (["flags", "--with", "lib.slow", "--with", "lib.fast"], "variants of one target"),
        (["01AB", "01CD"], "no workload, no record and no run"),
        (["nothing"], "no workload"),
        (["ten"], "there is no record that counts"),
        (["ten", "ten", "--threshold", "nan"], "no number"),
        (["work.py"], "is one record"),
    ],
)
def test_mistakes_are_messages(compare, arguments, word):
    code, _, err = compare(*arguments)
    assert code == 2
    assert word in err


def write_run(root: Path, run_id: str, times_ms, **changes) -> Path:
    path = root / "build/records" / f"{run_id}.jsonl"
    head = {
        "schema": "freshproof/record/1",
        "run_id": run_id,
        "purpose": "bench",
        "workload": "ten",
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "source": {"commit": "c" * 40, "dirty": None},
    }
    with RecordWriter(path) as writer:
        writer.write("run", {**head, **changes.get("head", {})})
        writer.write("env", {"machine_key": changes.get("machine", "m"), "cpu": {}, "gpu": None})
        writer.write("artifact", {"target": "lib", "digest": changes.get("digest", "sha256:1")})
        writer.write("drivers", {"work": {"key_digest": changes.get("key", "sha256:k")}})
        for index, ms in enumerate(times_ms):
            times = {"t0_ns": 0, "t1_ns": round(ms * 1e6)}
            writer.write("sample", {"index": index, "phase": "measured" if index else "warmup", **times})
        writer.write("verdict", {"state": changes.get("state", "fresh")})
    return path


QUICK = [50, 10, 10.01, 10.02, 9.99, 9.98, 10]
SLOW = [50, 11, 11.01, 11.02, 10.99, 10.98, 11]


def test_the_last_two_runs_of_a_workload_are_compared(compare, tmp_path):
    write_run(tmp_path, "01A", SLOW)
    write_run(tmp_path, "01B", QUICK)
    write_run(tmp_path, "01C", SLOW, digest="sha256:2")
    write_run(tmp_path, "01D", QUICK, state="void")
    code, out, _ = compare("ten")
    assert code == 1
    assert "regressed: +10.0 %" in out
    assert "lib: sha256:1 became sha256:2" in out
    assert "one was timed after the other" in out


def test_runs_are_named_by_path_or_id(compare, tmp_path):
    first = write_run(tmp_path, "01AAAA", SLOW)
    write_run(tmp_path, "01BBBB", QUICK)
    code, out, _ = compare(str(first), "BBBB", "--json")
    document = json.loads(out)
    assert (code, document["answer"]) == (0, "improved")
    assert [side["run_id"] for side in document["sides"]] == ["01AAAA", "01BBBB"]
    assert compare("01AAAA", "01")[0] == 2
    assert compare("01AAAA", str(first))[0] == 2  # one and the same


@pytest.mark.parametrize("change", [{"machine": "n"}, {"key": "sha256:other"}])
def test_other_machines_and_inputs_are_not_compared(compare, tmp_path, change):
    write_run(tmp_path, "01AAAA", QUICK)
    write_run(tmp_path, "01BBBB", QUICK, **change)
    code, _, err = compare("01AAAA", "01BBBB")
    assert code == 4
    assert "cannot be compared" in err


@pytest.mark.parametrize("state", ["void", "broken", "interrupted"])
def test_a_run_that_does_not_count_is_not_compared(compare, tmp_path, state):
    write_run(tmp_path, "01AAAA", QUICK)
    write_run(tmp_path, "01BBBB", QUICK, state=state)
    code, _, err = compare("01AAAA", "01BBBB")
    assert code == 6
    assert "do not count" in err


def test_a_record_that_lacks_a_field_is_a_message(compare, tmp_path):
    write_run(tmp_path, "01AAAA", QUICK, head={"source": 5})
    write_run(tmp_path, "01BBBB", QUICK)
    assert compare("01AAAA", "01BBBB")[0] == 6


def test_few_samples_decide_nothing(compare, tmp_path):
    write_run(tmp_path, "01AAAA", QUICK[:3])
    write_run(tmp_path, "01BBBB", SLOW[:3])
    code, out, _ = compare("01AAAA", "01BBBB")
    assert code == 3
    assert "inconclusive" in out and "allow no interval" in out
