"""The host libraries as the engine builds them, and the same sources with other arithmetic under them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from orchestrator.toolchain import find_nvcc
from orchestrator.toolkit_install import install_toolkit
from prover.backends.host_library import HostLibrary
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.loading import artifact_from_gate
from prover.params import BLS12_381, BN254
from prover.reference import g1, g2
from prover.scalars import encode_scalars

ROOT = Path(__file__).resolve().parents[2]
CURVES = (BN254, BLS12_381)
EMULATED, PORTABLE = "FRESHPROOF_EMULATE_PTX", "FRESHPROOF_PORTABLE"

OPERATIONS = ("add", "sub", "mul", "sqr", "neg", "dbl", "inverse", "to_montgomery", "from_montgomery")
GROUP_OPERATIONS = ("mixed_add", "xyzz_add", "affine_dbl", "xyzz_dbl")


def _provide_nvcc():
    """Put an nvcc on the PATH of every test here: an installed one, else the pinned one, fetched once."""
    if shutil.which("nvcc") is None:
        installed = ROOT / "build" / "toolchain"
        if find_nvcc(os.environ, installed) is None:
            install_toolkit(installed, lambda line: sys.stderr.write(f"{line}\n"))
        folder = Path(find_nvcc(os.environ, installed).path).parent
        os.environ["PATH"] = os.pathsep.join([str(folder), os.environ["PATH"]])


_provide_nvcc()  # before the test modules are imported: they ask the PATH

from build_tree import Tree  # noqa: E402


@pytest.fixture(scope="session")
def built_tree(tmp_path_factory):
    """The project of `build_tree`, both targets built once."""
    tree = Tree(tmp_path_factory.mktemp("built"))
    for name, text in tree.SOURCES.items():
        tree.write(name, text)
    assert tree.results() == {"k": "built", "host": "built"}
    return tree


@pytest.fixture
def tree(built_tree, tmp_path):
    """A copy of the built project; it is as fresh as what it was copied from."""
    root = tmp_path / "tree"
    shutil.copytree(built_tree.root, root, symlinks=True)
    return Tree(root)


@pytest.fixture(scope="session")
def host_artifact():
    """curve -> the fresh artifact of its host library, built by the engine if it is not fresh."""
    names = [f"host-{curve.name}" for curve in CURVES]
    run = subprocess.run([sys.executable, "-m", "orchestrator", "build", *names], cwd=ROOT, check=False)
    if run.returncode:
        pytest.fail(f"freshproof build {' '.join(names)} failed")
    return cache(lambda curve: artifact_from_gate(f"host-{curve.name}"))


@pytest.fixture(scope="session")
def emulation(tmp_path_factory):
    """name -> the library of ``native/NAME.cu``: device arithmetic on the CPU, by emulated carries."""

    def build(name: str) -> ctypes.CDLL:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            pytest.fail("no C++ compiler")
        source = Path(__file__).parent / "native" / f"{name}.cu"
        out = tmp_path_factory.mktemp("emulation") / f"{name}.so"
        flags = ["-x", "c++", "-O1", "-std=c++17", "-shared", "-fPIC", f"-D{EMULATED}"]
        command = [compiler, *flags, "-I", str(ROOT / "cuda_src"), str(source), "-o", str(out)]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(out))

    return build


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """(curve, macro) -> path of its host library compiled with that macro defined."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.fail("no C++ compiler")

    @cache
    def build(curve, macro):
        out = tmp_path_factory.mktemp(macro.lower()) / f"{curve.name}.so"
        source = ROOT / "cuda_src" / f"host_{curve.name}.cu"
        flags = ["-x", "c++", "-O1", "-std=c++17", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden"]
        subprocess.run([compiler, *flags, f"-D{macro}", str(source), "-o", str(out)], check=True)
        return out

    return build


class Arithmetic:
    """A library's functions on Python integers and the reference's points."""

    def __init__(self, curve, library, threads):
        self.curve, self.library, self.threads = curve, library, threads
        self.groups = {1: g1(curve), 2: g2(curve)}
        self._encode = {1: encode_g1, 2: encode_g2}
        self._decode = {1: decode_g1, 2: decode_g2}
        self._width = {1: curve.g1_bytes, 2: curve.g2_bytes}

    def field(self, field, operation, a, b=None):
        """The operation on lists of words as they are: no conversion to or from Montgomery form."""
        width = self.curve.q_bytes if field == 0 else 32 if field == 1 else 2 * self.curve.q_bytes
        x, y = words(a, width), words(a if b is None else b, width)
        out = np.zeros_like(x)
        self.library.call("field", field, OPERATIONS.index(operation), x, y, out, len(a))
        return [int.from_bytes(row.tobytes(), "little") for row in out]

    def group(self, group, operation, a, b=None):
        """The operation on lists of points."""
        x, y = self.points(group, a), self.points(group, a if b is None else b)
        out = np.zeros_like(x)
        self.library.call("group", group, GROUP_OPERATIONS.index(operation), x, y, out, len(a))
        return self.decoded(group, out)

    def points(self, group, points):
        """Points as they lie in a key, at an address that no word is aligned to."""
        data = b"".join(self._encode[group](self.curve, p) for p in points)
        return np.frombuffer(b"\x01" + data, np.uint8)[1:].reshape(-1, self._width[group])

    def decoded(self, group, rows):
        return [self._decode[group](self.curve, row.tobytes()) for row in rows]

    def msm(self, group, scalars, points, window=0):
        """The sum of scalars[i] * points[i]; ``points`` may be rows already."""
        rows = points if isinstance(points, np.ndarray) else self.points(group, points)
        out = np.zeros((1, self._width[group]), np.uint8)
        self.library.call(
            "msm", group, rows, encode_scalars(scalars), len(scalars), window, self.threads, out
        )
        return self.decoded(group, out)[0]

    def multiples(self, group, scalars, base=None):
        """Rows of scalars[i] * base, the generator if none is given."""
        base = self.groups[group].generator if base is None else base
        rows = np.zeros((len(scalars), self._width[group]), np.uint8)
        start = self.points(group, [base])
        self.library.call(
            "multiples", group, start, encode_scalars(scalars), rows, len(scalars), self.threads
        )
        return rows

    def first_bad(self, group, rows):
        """Index of the first row that is no point of the group's curve; their number if there is none."""
        found = np.zeros(1, np.uint64)
        self.library.call("check_points", group, rows, len(rows), self.threads, found)
        return int(found[0])


def words(values, width):
    data = b"".join(value.to_bytes(width, "little") for value in values)
    return np.frombuffer(data, np.uint8).reshape(-1, width)


@pytest.fixture(params=CURVES, ids=lambda curve: curve.name)
def curve(request):
    return request.param


@pytest.fixture
def host(curve, host_artifact):
    """The library that proofs are made with."""
    return Arithmetic(curve, HostLibrary(ctypes.CDLL(str(host_artifact(curve).path))), threads=2)


@pytest.fixture(params=["host", EMULATED, PORTABLE])
def arithmetic(request, curve):
    """Every arithmetic: what this CPU runs, the device's carry chains emulated, what any CPU runs."""
    if request.param == "host":
        return request.getfixturevalue("host")
    path = request.getfixturevalue("compiled")(curve, request.param)
    return Arithmetic(curve, HostLibrary(ctypes.CDLL(str(path))), threads=2)
