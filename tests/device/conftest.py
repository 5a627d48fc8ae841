"""The GPU, and modules as the product loads them: through the gate."""

from __future__ import annotations

import functools

import pytest

from prover.loading import artifact_from_gate
from prover.params import BLS12_381, BN254


@pytest.fixture(scope="session")
def gpu():
    from prover.backends.cuda_device import open_gpu

    return open_gpu()


@pytest.fixture(scope="session")
def find_artifact():
    """The gate's answer, asked once a target: it digests the whole toolchain each time."""
    return functools.cache(artifact_from_gate)


@pytest.fixture(scope="session")
def load_module(gpu, find_artifact):
    from prover.backends.cuda_module import LoadedModule

    return functools.cache(lambda target: LoadedModule.load(gpu, find_artifact(target)))


@pytest.fixture(scope="session", params=[BN254, BLS12_381], ids=lambda c: c.name)
def curve(request):
    return request.param


@pytest.fixture
def memory(gpu):
    from prover.backends.cuda_device import Memory

    memory = Memory(gpu)
    yield memory
    memory.release()


@pytest.fixture
def stream():
    from prover.backends.cuda_device import Stream

    stream = Stream(non_blocking=True)
    yield stream
    stream.synchronize()
