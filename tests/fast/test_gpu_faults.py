"""Why a GPU cannot be used: each fault named with what to do about it."""

from __future__ import annotations

import importlib
import os
import sys
import types

import pytest

from orchestrator.errors import BrokenRun, Missing
from prover.backends.gpu_faults import unusable

GIB = 1 << 30


def told(status: int, environ: dict[str, str] | None = None, memory: tuple[int, int] | None = None) -> str:
    error = unusable(0, status, "cudaErrorX: text", environ or {}, memory)
    return f"{error.what} -> {error.remedy}"


@pytest.mark.parametrize("value", ["", "7", "-1", "GPU-0"])
def test_gpus_hidden_by_the_variable_are_said_to_be(value: str) -> None:
    text = told(100, {"CUDA_VISIBLE_DEVICES": value})
    assert f"CUDA_VISIBLE_DEVICES={value} hides every GPU" in text and "unset CUDA_VISIBLE_DEVICES" in text


def test_without_the_variable_there_is_no_gpu() -> None:
    text = told(100)
    assert "CUDA_VISIBLE_DEVICES" not in text and "cudaErrorX: text" in text and "nvidia-smi" in text


def test_a_gpu_too_full_for_a_context_says_what_it_has() -> None:
    text = told(2, {"CUDA_VISIBLE_DEVICES": "0"}, (100 << 20, 139 * GIB))
    assert "some hundred MiB; 100.00 MiB of 139.00 GiB are free" in text and "-> free the GPU" in text
    assert "free the GPU" in told(2) and " of " not in told(2).split("->")[0].split("hundred MiB")[1]


def test_a_busy_gpu_and_an_old_driver_are_named() -> None:
    assert "another process has it for itself" in told(46)
    assert "older than this CUDA runtime" in told(35)


class RuntimeFault(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


class NvmlFault(Exception):
    pass


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch):
    """`prover.backends.cuda_device` over a CUDA whose devices fail as the test says, and a full GPU."""
    names = ("cupy", "cupy.cuda", "cupy.cuda.function", "pynvml")
    cupy, inner, function, nvml = (types.ModuleType(name) for name in names)
    cupy.cuda = inner
    inner.Event = inner.Stream = function.Module = object
    runtime = inner.runtime = types.SimpleNamespace(
        CUDARuntimeError=RuntimeFault,
        deviceGetPCIBusId=lambda ordinal: f"0000:0{ordinal}:00.0",
        memGetInfo=lambda: (3 * GIB, 80 * GIB),
    )
    inner.driver = types.SimpleNamespace(CUDADriverError=type("DriverFault", (RuntimeFault,), {}))
    nvml.NVMLError = NvmlFault
    nvml.nvmlInit = lambda: None
    nvml.nvmlDeviceGetHandleByPciBusId = lambda place: place
    nvml.nvmlDeviceGetMemoryInfo = lambda _: types.SimpleNamespace(free=5 << 20, total=80 * GIB)
    for name, module in zip(names, (cupy, inner, function, nvml), strict=True):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "prover.backends.cuda_device", raising=False)
    device = importlib.import_module("prover.backends.cuda_device")

    def fail(status: int) -> None:
        def use(_self: object) -> None:
            raise RuntimeFault(status)

        inner.Device = lambda _ordinal: types.SimpleNamespace(use=lambda: use(None))

    yield types.SimpleNamespace(device=device, fail=fail, nvml=nvml, runtime=runtime, driver=inner.driver)
    sys.modules.pop("prover.backends.cuda_device", None)


def test_opening_a_hidden_gpu_names_the_variable(cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    cuda.fail(100)
    with pytest.raises(Missing, match="CUDA_VISIBLE_DEVICES= hides every GPU"):
        cuda.device.open_gpu()


def test_opening_a_full_gpu_says_what_nvml_tells(cuda) -> None:
    cuda.fail(2)
    with pytest.raises(Missing, match=r"5\.00 MiB of 80\.00 GiB are free"):
        cuda.device.open_gpu()

    def refuse(_place: str) -> None:
        raise NvmlFault

    cuda.nvml.nvmlDeviceGetHandleByPciBusId = refuse
    with pytest.raises(Missing, match=r"some hundred MiB$"):
        cuda.device.open_gpu()


def test_opening_a_full_gpu_without_nvml_is_a_message_too(cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    cuda.fail(2)
    with pytest.raises(Missing, match=r"some hundred MiB$"):
        cuda.device.open_gpu()


def test_memory_that_runs_out_in_the_middle_is_no_broken_run(cuda) -> None:
    for kind in (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError):
        words = r"msm a_query: .* 3\.00 GiB of 80\.00 GiB are free"
        with pytest.raises(Missing, match=words), cuda.device.checked("msm a_query"):
            raise kind(2)
        with pytest.raises(BrokenRun, match="msm a_query: cudaError 700"), cuda.device.checked("msm a_query"):
            raise kind(700)


def test_need_and_have_are_one_sentence(cuda) -> None:
    gpu = types.SimpleNamespace(name="H200", memory=lambda: (GIB, 80 * GIB))
    with pytest.raises(Missing) as caught:
        cuda.device.Memory(gpu).require(2 * GIB, "the matrices and transforms of k.zkey")
    assert caught.value.what.startswith(
        "2.00 GiB of GPU memory are needed for the matrices and transforms of k.zkey; H200 has 1.00 GiB"
    )
