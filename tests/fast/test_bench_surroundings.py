"""What surrounds a run: the environment given, the machine described, the workloads chosen."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from orchestrator import environment
from orchestrator.errors import ConfigurationError, Missing
from orchestrator.gpu_arch import visible
from orchestrator.gpus import read_gpus
from orchestrator.launch import launch_variables, resolve_command
from orchestrator.model import Kind, Project, Target, Workload
from orchestrator.workloads import choose_workloads


def project(*kinds: Kind) -> Project:
    targets = tuple(Target(f"t-{kind}", kind, ("a.cu",)) for kind in kinds)
    return Project(
        "p", (".",), targets, tuple(Workload(f"w-{t.kind}", ("python",), (t.name,)) for t in targets)
    )


BOTH = project(Kind.SHARED_LIBRARY, Kind.CUBIN)


def test_without_a_gpu_the_host_runs_and_this_is_said():
    chosen, said = choose_workloads(BOTH, (), "none here")
    assert [w.name for w in chosen] == ["w-shared-library"]
    assert "no GPU found (none here)" in said and "1 need a GPU and are not run" in said


def test_with_a_gpu_the_device_workloads_run():
    chosen, said = choose_workloads(BOTH, (), ["sm_90"])
    assert [w.name for w in chosen] == ["w-cubin"]
    assert "sm_90" in said


def test_with_a_gpu_and_no_use_of_it_the_host_runs():
    chosen, said = choose_workloads(project(Kind.SHARED_LIBRARY), (), ["sm_90"])
    assert [w.name for w in chosen] == ["w-shared-library"]
    assert "no workload uses it" in said


def test_workloads_that_are_no_default_run_when_named_or_with_all():
    heavy = replace(BOTH.workloads[0], name="heavy", default=False)
    both = replace(BOTH, workloads=(*BOTH.workloads, heavy))
    chosen, said = choose_workloads(both, (), "none here")
    assert [w.name for w in chosen] == ["w-shared-library"]
    assert "1 more by name" in said
    assert [w.name for w in choose_workloads(both, (), "none here", every=True)[0]] == [
        "w-shared-library",
        "heavy",
    ]
    assert [w.name for w in choose_workloads(both, ("heavy",), "none here")[0]] == ["heavy"]


def test_named_workloads_run_once_each_and_as_asked():
    chosen, said = choose_workloads(BOTH, ("w-cubin", "w-cubin"), "none here")
    assert [w.name for w in chosen] == ["w-cubin"]
    assert said == ""


def test_a_misspelt_workload_is_answered_with_the_nearest():
    with pytest.raises(ConfigurationError) as caught:
        choose_workloads(BOTH, ("w-cubinn",), "none here")
    assert "w-cubin" in caught.value.remedy


@pytest.mark.parametrize(("kinds", "error"), [((), ConfigurationError), ((Kind.CUBIN,), Missing)])
def test_nothing_to_run_is_an_error(kinds, error):
    with pytest.raises(error):
        choose_workloads(project(*kinds), (), "none here")


def test_an_ordinary_command_that_uses_device_code_runs_unasked_as_it_does_by_name():
    one = project(Kind.CUBIN)
    ordinary = replace(one, workloads=(replace(one.workloads[0], worker=False),))
    assert choose_workloads(ordinary, (), "none here")[0] == list(ordinary.workloads)
    assert choose_workloads(ordinary, (), ["sm_90"])[0] == list(ordinary.workloads)


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        (None, ["sm_80", "sm_90"]),
        ("1", ["sm_90"]),
        ("1,0", ["sm_90", "sm_80"]),
        ("0,7,1", ["sm_80"]),
        ("GPU-8932f937", ["sm_80", "sm_90"]),
        ("", "CUDA_VISIBLE_DEVICES= hides every GPU"),
        ("-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU"),
        ("2", "CUDA_VISIBLE_DEVICES=2 hides every GPU"),
        ("none", "CUDA_VISIBLE_DEVICES=none hides every GPU"),
    ],
)
def test_the_gpus_are_those_that_a_program_would_see(setting, seen):
    assert visible(["sm_80", "sm_90"], setting) == seen


def test_what_disturbs_a_time_is_said():
    fields = environment.capture({})
    calm = {
        **fields,
        "load_average": [0.1, 5.0, 5.0],
        "variables": {"CUDA_LAUNCH_BLOCKING": "0"},
        "gpu": None,
    }
    assert environment.disturbances(calm) == ()
    devices = [
        {"name": "a", "processes": []},
        {"name": "b", "processes": [7, 9]},
        {"name": "c", "processes": None},
    ]
    disturbed = {
        **calm,
        "load_average": [99.0, 1.0, 1.0],
        "variables": {"CUDA_LAUNCH_BLOCKING": "1"},
        "gpu": {"devices": devices},
    }
    launches, load, shared = environment.disturbances(disturbed)
    assert "CUDA_LAUNCH_BLOCKING=1" in launches
    assert "99.0" in load
    assert "GPU 1" in shared and "7, 9" in shared


def test_python_is_the_interpreter_that_runs_freshproof():
    assert resolve_command(Workload("w", ("python", "-m", "x"), ("t",))) == (sys.executable, "-m", "x")


def test_a_program_is_found_beside_the_interpreter_before_the_path(tmp_path, monkeypatch):
    for folder in ("env", "path"):
        tool = tmp_path / folder / "tool"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert resolve_command(Workload("w", ("tool",), ("t",))) == (str(tmp_path / "env" / "tool"),)
    (tmp_path / "env" / "tool").unlink()
    assert resolve_command(Workload("w", ("tool",), ("t",))) == (str(tmp_path / "path" / "tool"),)
    (tmp_path / "path" / "tool").unlink()
    with pytest.raises(Missing):
        resolve_command(Workload("w", ("tool",), ("t",)))


def test_a_workload_gets_a_safe_environment(tmp_path):
    given = launch_variables("n0", "{}", tmp_path, {"HOME": "/h", "CUDA_MODULE_LOADING": "LAZY"})
    assert given["HOME"] == "/h"
    assert given["CUDA_MODULE_LOADING"] == "EAGER"
    assert given["CUDA_CACHE_DISABLE"] == given["CUDA_DISABLE_PTX_JIT"] == "1"
    assert given["PYTHONPYCACHEPREFIX"] == str(tmp_path)
    assert given["FRESHPROOF_NONCE"] == "n0"


def test_the_machine_is_described_and_unknown_things_have_a_reason():
    fields = environment.capture({"OMP_NUM_THREADS": "2", "SECRET": "x"})
    assert fields["variables"] == {"OMP_NUM_THREADS": "2"}
    assert fields["cpu"]["usable_threads"] >= 1
    assert fields["memory_bytes"] > 0
    assert fields["gpu"] is not None or fields["missing"]["gpu"]
    assert (fields["cpu"]["governor"] is None) == ("cpu.governor" in fields["missing"])
    assert json.dumps(fields)


def test_the_machine_key_changes_with_what_decides_times():
    fields = environment.capture({})
    assert environment.machine_key(fields) == fields["machine_key"]
    assert environment.machine_key({**fields, "load_average": [9, 9, 9]}) == fields["machine_key"]
    assert environment.machine_key({**fields, "memory_bytes": 1 << 40}) != fields["machine_key"]


def test_a_folder_outside_git_has_no_commit_and_says_why(tmp_path):
    described = environment.describe_commit(tmp_path)
    assert described["commit"] is None
    assert described["missing"]


class NoAnswer(Exception):
    """Stands for NVMLError."""


def nvml(**answers):
    """An NVML in which every call that is not given fails as not supported."""

    def fails(*arguments):
        raise NoAnswer("Not Supported")

    names = [
        "nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCount",
        "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo",
    ]  # fmt: skip
    return SimpleNamespace(**{"NVMLError": NoAnswer, **{n: answers.get(n, fails) for n in names}})


def test_a_gpu_that_answers_little_is_described_with_reasons():
    fields = read_gpus(
        nvml(
            nvmlSystemGetDriverVersion=lambda: b"580.1",
            nvmlDeviceGetCount=lambda: 1,
            nvmlDeviceGetHandleByIndex=lambda index: index,
            nvmlDeviceGetName=lambda handle: "GPU of tests",
            nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=7),
        )
    )
    assert fields["driver"] == "580.1"
    (device,) = fields["devices"]
    assert (device["name"], device["memory_bytes"], device["uuid"]) == ("GPU of tests", 7, None)
    assert fields["missing"]["devices[0].uuid"] == "Not Supported"
    assert "devices[0].ecc_mode" in fields["missing"]  # a call that this NVML does not have at all
    assert json.dumps(fields)


def test_an_nvml_that_answers_nothing_leaves_no_devices():
    fields = read_gpus(nvml())
    assert fields["devices"] == []
    assert fields["missing"]["devices"] == "Not Supported"
