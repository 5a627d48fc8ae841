"""Workloads of kernels: what a sample is, and what a transform must give by its definition."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from orchestrator.protocol import Span
from prover.check import Check
from prover.params import BLS12_381, BN254

ROOT = Path(__file__).parents[2]


class Clock:
    """Tells every span as one tick of a common count."""

    def __init__(self) -> None:
        self.at, self.spans, self.started = 0, [], 0

    def start(self, _stream) -> None:
        self.started += 1

    @contextlib.contextmanager
    def _measured(self, name, clock):
        begin, self.at = self.at, self.at + 1
        yield
        self.at += 1
        self.spans.append(Span(name, clock, begin, self.at))

    def span(self, name, _stream, _label):
        return self._measured(name, "cuda")

    def on_host(self, name):
        return self._measured(name, "host")

    def drain(self):
        spans, self.spans = self.spans, []
        return spans


class Stream:
    def __init__(self) -> None:
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1

    def begin_capture(self) -> None:
        pass

    def end_capture(self):
        return types.SimpleNamespace(launch=lambda _stream: None)


class Work:
    """Two phases; its result is right until it is told to fail."""

    name = "msm"

    def __init__(self, log) -> None:
        self.stream, self.log, self.right = Stream(), log, True

    def facts(self):
        return {"points": 8}

    def prepare(self) -> None:
        self.log.append("prepare")

    def phases(self):
        return [(name, lambda name=name: self.log.append(name)) for name in ("sort", "pair")]

    def check(self):
        self.log.append("check")
        return Check(self.right, "", "oracle", 0.5)

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def fakes(monkeypatch):
    """Modules that need CuPy, in name only."""
    monkeypatch.syspath_prepend(str(ROOT))
    device = types.ModuleType("prover.backends.cuda_device")
    device.checked = lambda _what: contextlib.nullcontext()
    for name in ("Memory", "Stream", "Event", "Buffer", "Gpu", "runtime"):
        setattr(device, name, object)
    clock = types.ModuleType("prover.backends.cuda_clock")
    clock.SpanClock = Clock
    ntt = types.ModuleType("prover.backends.cuda_ntt")
    ntt.Ntt = object
    for module in (device, clock, ntt):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("benchmarks.launches", "benchmarks.ntt"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in ("benchmarks.launches", "benchmarks.ntt"):
        sys.modules.pop(name, None)


def test_a_sample_is_prepared_run_waited_for_and_then_checked(fakes):
    launches = importlib.import_module("benchmarks.launches")
    log = []
    gpu = types.SimpleNamespace(as_json=lambda: {"name": "GPU"})
    work = Work(log)
    kernels = launches.Kernels(gpu, work, ())
    assert kernels.facts().work == {"points": 8} and kernels.facts().device == {"name": "GPU"}
    for count in (1, 2, 3):
        log.clear()
        sampled = kernels.sample()
        assert log == ["prepare", *(["sort", "pair"] if count < 3 else []), "check"]
        assert work.stream.waited == count
        names = {span.name: span for span in sampled.spans}
        assert list(names) == ["sort", "pair", "msm", "launch", "wait for the GPU"]
        whole = names["msm"]
        assert all(whole.t0_ns <= names[n].t0_ns <= names[n].t1_ns <= whole.t1_ns for n in ("sort", "pair"))
        assert sampled.t0_ns <= sampled.t1_ns and sampled.check.valid
    work.right = False
    assert not kernels.sample().check.valid
    kernels.close()
    assert log[-1] == "close"


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("log_n", [4, 6])
def test_direct_sums_are_outputs_of_the_transform(fakes, curve, log_n):
    ntt = importlib.import_module("benchmarks.ntt")
    values = ntt.random_elements(1 << log_n)
    assert int(values[:, 31].max()) < 0x20
    terms = [int.from_bytes(row.tobytes(), "little") for row in values]
    w, r = curve.root_of_unity(log_n), curve.r
    whole = [sum(v * pow(w, k * j, r) for j, v in enumerate(terms)) % r for k in range(1 << log_n)]
    table = np.frombuffer(b"".join(v.to_bytes(32, "little") for v in whole), np.uint8).reshape(-1, 32)
    for log_sums in (0, 2, 4):
        assert ntt.direct_sums(curve, values, log_sums) == ntt.outputs(table, log_sums)
    wrong = table.copy()
    wrong[0, 0] ^= 1
    assert ntt.direct_sums(curve, values, 4) != ntt.outputs(wrong, 4)
