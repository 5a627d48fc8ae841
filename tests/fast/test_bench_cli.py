"""`freshproof bench` as typed: what it prints, its JSON, its exit codes; the gate and the GPU are fakes."""

import json
import shutil
from pathlib import Path

import pytest

import orchestrator.cli.bench as module
from orchestrator.cli import cli, run_command
from orchestrator.model import Admission, Admitted, Finding, Kind, Link, State, Verdict

FAKE = Path(__file__).with_name("fake_worker.py")
TARGETS = """schema = 1
[project]
name = "p"
[target.lib]
kind = "shared-library"
sources = ["a.cu"]
[target.gpu]
kind = "cubin"
sources = ["b.cu"]
[workload.host]
command = ["python", "work.py", "SCENARIO"]
uses = ["lib"]
samples = 2
[workload.heavy]
command = ["python", "work.py", "SCENARIO"]
uses = ["lib"]
samples = 1
default = false
[workload.device]
command = ["python", "work.py", "SCENARIO"]
uses = ["gpu"]
samples = 1
"""


def fresh(root, names):
    verdicts = tuple(Verdict(name, State.FRESH, (), ((Link.INPUTS, 1),)) for name in names)
    artifacts = tuple(
        Admitted(n, Kind.CUBIN, f"build/{n}", f"sha256:{n}", f"stamp-{n}", "sha256:m", None) for n in names
    )
    return Admission(verdicts, artifacts)


def stale(root, names):
    finding = Finding(
        State.STALE, Link.INPUTS, "input-changed", "a.cuh", "sha256:1", "sha256:2", "a.cuh: edited", "build"
    )
    return Admission(tuple(Verdict(name, State.STALE, (finding,), ()) for name in names), ())


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Run the command in a project; gives exit code, standard output and standard error."""

    def run(*arguments, admit=fresh, gpu=None, scenario="honest", artifacts_exist=False):
        (tmp_path / "manifests").mkdir(exist_ok=True)
        (tmp_path / "manifests/targets.toml").write_text(TARGETS.replace("SCENARIO", scenario))
        shutil.copy(FAKE, tmp_path / "work.py")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "admit", admit)
        if not artifacts_exist:
            monkeypatch.setattr(module, "with_machine_code", lambda admission, _gpus: admission)
        monkeypatch.setattr(module, "architectures", lambda environ: [gpu] if gpu else "none here")
        monkeypatch.setattr("sys.argv", ["freshproof", "bench", *arguments])
        with pytest.raises(SystemExit) as ended:
            run_command(cli)
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


def test_without_a_gpu_the_host_is_timed_and_all_is_said(bench):
    code, out, err = bench()
    assert (code, err) == (0, "")
    for fact in (
        "no GPU found",
        "gate: admitted lib sha256:lib",
        "checked by fake 1.0: 3 of 3",
        "unaccounted",
    ):
        assert fact in out
    assert "1 more by name" in out and "heavy:" not in out


def test_with_a_gpu_the_device_is_timed(bench):
    code, out, _ = bench(gpu="sm_90")
    assert code == 0
    assert "gate: admitted gpu" in out and "admitted lib" not in out


def test_all_runs_also_what_is_no_default(bench):
    code, out, _ = bench("--all", "--json")
    assert code == 0
    assert [run["workload"] for run in json.loads(out)["runs"]] == ["host", "heavy"]


def test_samples_and_warmups_are_as_asked(bench):
    code, out, err = bench("host", "--samples", "3", "--warmups", "0", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "freshproof/bench/1"
    assert (document["runs"][0]["samples"], document["runs"][0]["warmups"]) == (3, 0)
    assert "sample 0" in err


def test_a_refusal_is_5_with_file_and_both_digests(bench):
    code, out, err = bench("host", admit=stale)
    assert code == 5
    for fact in ("a.cuh", "sha256:1", "sha256:2", "nothing was timed"):
        assert fact in err
    assert err.count("host: refused") == 1
    assert "refused" not in out


def test_one_stale_target_stops_all_workloads(bench):
    def half(root, names):
        return stale(root, names) if "gpu" in names else fresh(root, names)

    code, out, _ = bench("host", "device", "--json", admit=half)
    assert code == 5
    (only,) = json.loads(out)["runs"]
    assert (only["workload"], only["state"]) == ("host, device", "refused")


def test_a_broken_run_is_6_and_its_json_is_whole(bench):
    code, out, err = bench("host", "--json", scenario="bad-check@1")
    assert code == 6
    (run,) = json.loads(out)["runs"]
    assert (run["state"], run["exit_code"]) == ("broken", 6)
    assert "failed its check" in err


def interrupted(root, names):
    raise KeyboardInterrupt


def test_an_interruption_is_said_and_counts_nothing(bench):
    code, out, _ = bench("host", admit=interrupted)
    assert code == 130
    assert "host: interrupted; nothing of this run counts" in out


def test_the_json_of_an_interruption_says_so(bench):
    code, out, err = bench("host", "--json", admit=interrupted)
    assert code == 130
    assert [run["state"] for run in json.loads(out)["runs"]] == ["interrupted"]
    assert "interrupted" in err


def test_what_a_worker_wrote_stands_on_lines_of_its_own(bench):
    code, _, err = bench("host", scenario="crash@1")
    assert code == 6
    assert "\n  | about to fall\n" in err and "\\n" not in err


def test_the_workloads_own_failure_keeps_its_code(bench):
    assert bench("host", scenario="fails")[0] == 2


@pytest.mark.parametrize("arguments", [("hots",), ("--samples", "0"), ("--timeout", "0"), ("--wrong",)])
def test_mistakes_are_messages(bench, arguments):
    code, out, err = bench(*arguments)
    assert code == 2
    assert "Traceback" not in out + err


def test_ptx_alone_is_refused_before_the_first_sample(bench):
    """T41: the driver would compile it, in the time of the samples."""
    text = Path(__file__).parents[1] / "data" / "objects" / "sample.ptx"

    def admit(root, names):
        (verdict,) = fresh(root, names).verdicts
        return Admission(
            (verdict,), (Admitted(names[0], Kind.PTX, str(text), "sha256:p", "s", "m", "sm_90"),)
        )

    code, out, err = bench("device", admit=admit, gpu="sm_90", artifacts_exist=True)
    assert code == 5
    assert "holds only PTX (compute_90): the driver would compile it when it is loaded" in out + err
