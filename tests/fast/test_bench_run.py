"""Whole runs against a fake worker and a fake gate: what counts, what is refused, what is broken."""

import errno
import json
import queue
import sys
import threading
from pathlib import Path

import psutil
import pytest

from orchestrator import bench
from orchestrator.bench import Options, admit_all, alone, measure
from orchestrator.errors import BrokenRun, ConfigurationError, Missing, Refused, Undecided
from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict, Workload
from orchestrator.records import read_record
from orchestrator.samples import Measured, Refusal
from orchestrator.workspace import Workspace, exclusive

FAKE = Path(__file__).with_name("fake_worker.py")
DIGEST = "sha256:" + "a" * 64
STAMP = "b" * 64


def admitted(digest: str = DIGEST) -> Admission:
    artifact = Admitted(
        "host-fake", Kind.SHARED_LIBRARY, "build/x.so", digest, STAMP, "sha256:" + "c" * 64, None
    )
    return Admission((Verdict("host-fake", State.FRESH, (), ((Link.INPUTS, 4),)),), (artifact,))


def refused(code: str = "input-changed") -> Admission:
    finding = Finding(State.STALE, Link.INPUTS, code, "a.cuh", "sha256:1", "sha256:2", "changed", "build")
    return Admission((Verdict("host-fake", State.STALE, (finding,), ()),), ())


class Gate:
    """Answers with each admission in turn; the last one again and again."""

    def __init__(self, *answers: Admission) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, root, names):
        self.asked.append(tuple(names))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def workload(scenario: str, **changes) -> Workload:
    fields = {"name": "fake", "command": ("python", str(FAKE), scenario), "uses": ("host-fake",)}
    return Workload(**{**fields, **changes})


def run(root: Path, scenario: str = "honest", gate=None, timeout: float = 20.0, **changes):
    gate = gate or Gate(admitted())
    options = Options(samples=2, warmups=1, timeout=timeout)
    return measure(root, workload(scenario, **changes), options, admit=gate, say=lambda line: None)


def only_record(root: Path) -> list[dict]:
    (path,) = (root / "build" / "records").glob("*.jsonl")
    return read_record(path)


def test_an_honest_run_counts_and_leaves_a_whole_record(tmp_path):
    gate = Gate(admitted())
    result = run(tmp_path, gate=gate)
    assert isinstance(result, Measured)
    assert [s.warmup for s in result.samples] == [True, False, False]
    assert len(result.counted) == 2
    assert result.level == "loaded-proven"
    assert gate.asked == [("host-fake",)] * 2
    lines = read_record(tmp_path / result.record)
    kinds = [line["kind"] for line in lines]
    assert kinds == ["run", "env", "artifact", "drivers", "sample", "sample", "sample", "verdict"]
    assert lines[-1]["state"] == "fresh"
    assert [line["phase"] for line in lines if line["kind"] == "sample"] == ["warmup", "measured", "measured"]
    assert lines[3]["sources"][0]["path"] == str(FAKE)
    assert lines[2]["digest"] == DIGEST


def test_each_sample_is_divided_and_seen_from_outside(tmp_path):
    for sample in run(tmp_path).samples:
        assert sample.breakdown.total_ns == 10_000_000
        assert sample.breakdown.unaccounted_ns == 1_000_000
        assert sample.breakdown.overlap_ns == 0
        assert sample.outer_ns >= 11_000_000
        assert sample.usage is not None


def test_overlapping_phases_are_not_counted_twice(tmp_path):
    result = run(tmp_path, "overlapping@0")
    for sample in result.samples:
        assert sample.breakdown.overlap_ns == 1_000_000
        assert sample.breakdown.unaccounted_ns == 1_000_000


def test_cuda_spans_run_beside_the_host(tmp_path):
    (first, *_) = run(tmp_path, "cuda@0").samples
    assert first.breakdown.gpu_busy_ns == 3_000_000
    assert first.breakdown.unaccounted_ns == 1_000_000


def test_a_stale_target_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "Worker", None)
    result = run(tmp_path, gate=Gate(refused()))
    assert isinstance(result, Refusal)
    assert result.verdicts[0].findings[0].code == "input-changed"
    assert not (tmp_path / "build").exists()


def test_several_workloads_are_asked_for_at_once(tmp_path):
    gate = Gate(refused())
    several = [
        workload("honest", name=name, uses=uses) for name, uses in (("a", ("x", "y")), ("b", ("y", "z")))
    ]
    refusal = admit_all(tmp_path, several, gate)
    assert refusal.subject == "a, b"
    assert gate.asked == [("x", "y", "z")]
    assert admit_all(tmp_path, several, Gate(admitted())) is None


def test_two_benchmarks_in_one_tree_do_not_run_at_once(tmp_path):
    with alone(tmp_path, print), pytest.raises(Undecided, match="another benchmark"), alone(tmp_path, print):
        pass
    with alone(tmp_path, print):
        pass


def test_a_build_waits_for_a_benchmark_and_says_so(tmp_path):
    said = queue.SimpleQueue()

    def build():
        with exclusive(Workspace(tmp_path), said.put):
            said.put("built")

    with alone(tmp_path, print):
        builder = threading.Thread(target=build)
        builder.start()
        assert "a benchmark is at work" in said.get(timeout=10)
        assert builder.is_alive()
        assert said.empty()
    builder.join(10)
    assert said.get(timeout=10) == "built"


def test_a_benchmark_waits_for_a_build_and_says_so(tmp_path):
    said = queue.SimpleQueue()

    def bench_it():
        with alone(tmp_path, said.put):
            said.put("timed")

    with exclusive(Workspace(tmp_path), print):
        timer = threading.Thread(target=bench_it)
        timer.start()
        assert "another build is at work" in said.get(timeout=10)
        assert said.empty()
    timer.join(10)
    assert said.get(timeout=10) == "timed"


@pytest.mark.parametrize("name", ["bench.lock", "records"])
def test_a_tree_that_cannot_be_written_is_missing_and_says_what_to_do(tmp_path, name, monkeypatch):
    (tmp_path / "build").mkdir()
    if name == "records":
        (tmp_path / "build" / "records").write_text("in the way")
    else:
        real = Path.open

        def read_only(path, *args):
            if path.name == name:
                raise OSError(errno.EROFS, "Read-only file system")
            return real(path, *args)

        monkeypatch.setattr(Path, "open", read_only)
    with pytest.raises(Missing, match=f"cannot write .*{name}") as raised, alone(tmp_path, print):
        run(tmp_path)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("wrong-nonce", "nonce-changed"),
        ("wrong-digest", "loaded-digest-changed"),
        ("wrong-stamp", "loaded-stamp-changed"),
        ("loads-nothing", "not-loaded"),
        ("loads-more", "loaded-unadmitted"),
        ("old-source", "driver-changed"),
        ("no-sources", "drivers-unproven"),
    ],
)
def test_a_process_that_runs_other_code_is_not_timed(tmp_path, scenario, code):
    result = run(tmp_path, scenario)
    assert isinstance(result, Refusal)
    assert [f.code for v in result.verdicts for f in v.findings] == [code]
    lines = only_record(tmp_path)
    assert lines[-1]["state"] == "void"
    assert not [line for line in lines if line["kind"] == "sample"]


def test_samples_are_void_when_the_gate_refuses_afterwards(tmp_path):
    result = run(tmp_path, gate=Gate(admitted(), refused()))
    assert isinstance(result, Refusal)
    assert "void" in result.when
    assert [f.code for v in result.verdicts for f in v.findings] == ["input-changed"]
    assert only_record(tmp_path)[-1]["state"] == "void"


def test_samples_are_void_when_another_fresh_artifact_was_built_meanwhile(tmp_path):
    result = run(tmp_path, gate=Gate(admitted(), admitted("sha256:" + "d" * 64)))
    assert isinstance(result, Refusal)
    assert [f.code for v in result.verdicts for f in v.findings] == ["artifact-changed"]


def test_samples_are_void_when_a_source_of_the_workload_changed_meanwhile(tmp_path, monkeypatch):
    copy = tmp_path / "worker.py"
    copy.write_bytes(FAKE.read_bytes())
    monkeypatch.setenv("EDIT_THIS", str(copy))
    result = run(tmp_path, command=("python", str(copy), "edits-itself@2"))
    assert isinstance(result, Refusal)
    (finding,) = [f for v in result.verdicts for f in v.findings]
    assert (finding.code, finding.subject) == ("driver-changed", str(copy))
    assert finding.recorded != finding.observed


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ("bad-check", "failed its check by fake 1.0"),
        ("crash", "ended with exit code 77"),
        ("killed", "killed by SIGKILL"),
        ("torn", "torn"),
        ("not-json", "no JSON"),
        ("wrong-index", "answered sample 2"),
        ("span-outside", "'second'"),
        ("region-outside", "between request and reply"),
        ("ends-badly", "exit code 3"),
    ],
)
def test_a_broken_run_counts_nothing_and_says_so(tmp_path, scenario, says):
    with pytest.raises(BrokenRun, match=says):
        run(tmp_path, scenario)
    assert only_record(tmp_path)[-1]["state"] == "broken"


def test_a_crash_shows_the_end_of_the_workers_own_output(tmp_path):
    with pytest.raises(BrokenRun, match="about to fall"):
        run(tmp_path, "crash@2")


def test_silence_ends_the_run(tmp_path):
    with pytest.raises(BrokenRun, match="silent"):
        run(tmp_path, "silent", timeout=0.5)


def test_an_endless_answer_is_cut_off(tmp_path):
    with pytest.raises(BrokenRun, match="longer than"):
        run(tmp_path, "endless")


@pytest.mark.parametrize(("code", "kind"), [(8, Missing), (5, Refused), (6, BrokenRun), (1, BrokenRun)])
def test_a_worker_that_cannot_begin_hands_on_what_kind_of_failure_it_is(tmp_path, code, kind):
    with pytest.raises(kind, match="there is no CuPy") as raised:
        run(tmp_path, f"unable@{code}")
    assert type(raised.value) is kind


def test_an_exit_code_after_the_start_is_no_more_than_a_broken_run(tmp_path):
    with pytest.raises(BrokenRun, match="exit code 77"):
        run(tmp_path, "crash@1")


@pytest.mark.parametrize("command", [("true",), ("python", str(FAKE), "foreign")])
def test_a_command_that_is_no_worker_is_told_how_it_can_be_timed(tmp_path, command):
    with pytest.raises(BrokenRun) as raised:
        run(tmp_path, command=command)
    assert "worker = false" in raised.value.remedy


def test_a_worker_that_stumbles_over_an_edit_is_refused_for_the_edit(tmp_path):
    copy = tmp_path / "worker.py"
    copy.write_bytes(FAKE.read_bytes())
    result = run(tmp_path, command=("python", str(copy), "edited-and-stumbles@2"))
    assert isinstance(result, Refusal)
    assert "void" in result.when
    (finding,) = [f for v in result.verdicts for f in v.findings]
    assert finding.subject == str(copy)
    assert finding.recorded != finding.observed
    assert only_record(tmp_path)[-1]["state"] == "void"


def test_the_workers_own_failure_keeps_its_exit_code(tmp_path):
    with pytest.raises(ConfigurationError, match="key is cut off") as caught:
        run(tmp_path, "fails")
    assert caught.value.remedy == "copy it again"


def test_an_interruption_ends_the_worker_and_is_recorded(tmp_path):
    def interrupt(line: str) -> None:
        if "sample 1" in line:
            raise KeyboardInterrupt

    options = Options(samples=2, warmups=1, timeout=20.0)
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, workload("honest"), options, admit=Gate(admitted()), say=interrupt)
    lines = only_record(tmp_path)
    assert lines[-1]["state"] == "interrupted"
    assert not psutil.Process().children()


def test_output_of_the_worker_cannot_disturb_its_answers(tmp_path):
    result = run(tmp_path, "chatty")
    assert "noise" in (tmp_path / result.record).with_suffix(".log").read_text()


def test_no_older_bytecode_can_win(tmp_path):
    assert run(tmp_path).ready.work["cache_prefix"] not in ("", str(tmp_path))


def test_an_ordinary_command_is_timed_one_process_a_sample(tmp_path):
    command = ("python", "-c", "open('ran', 'a').write('x')")
    result = run(tmp_path, worker=False, command=command)
    assert (tmp_path / "ran").read_text() == "xxx"
    assert result.level == "file-proven"
    assert all(s.check is None and s.outer_ns == s.breakdown.total_ns for s in result.samples)


def test_an_ordinary_command_that_fails_breaks_the_run(tmp_path):
    with pytest.raises(BrokenRun, match="exit code 9"):
        run(tmp_path, worker=False, command=("python", "-c", "raise SystemExit(9)"))


def test_an_ordinary_command_that_hangs_breaks_the_run(tmp_path):
    with pytest.raises(BrokenRun, match=r"did not end within 0\.3 s"):
        run(tmp_path, worker=False, command=("python", "-c", "import time; time.sleep(60)"), timeout=0.3)


def test_a_program_that_is_nowhere_is_named(tmp_path):
    with pytest.raises(Missing, match="no-such-program"):
        run(tmp_path, command=("no-such-program",))


def test_a_workload_without_targets_proves_nothing(tmp_path):
    with pytest.raises(ConfigurationError, match="uses no target"):
        run(tmp_path, uses=())


def test_the_record_holds_integers_in_ns_and_both_admissions(tmp_path):
    lines = read_record(tmp_path / run(tmp_path).record)
    sample = next(line for line in lines if line["kind"] == "sample")
    assert all(isinstance(sample[key], int) for key in ("t0_ns", "t1_ns", "outer_ns", "unaccounted_ns"))
    assert lines[2]["matches"] == {"inputs": 4}
    assert [v["target"] for v in lines[-1]["verdicts"]] == ["host-fake", "this run"]
    assert json.dumps(lines)
    assert sys.executable in lines[0]["command"]
