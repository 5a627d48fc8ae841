"""The pinned CUDA toolkit from PyPI, for a machine that has none: five wheels, by version and hash.

It goes into one private folder, whole or not at all, and is shared by everything that builds in this tree.
Its identity is checked like that of any other toolchain: file by file, each time.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator.errors import Missing

REQUIREMENTS = """\
nvidia-cuda-nvcc==13.0.88 \\
    --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03 \\
    --hash=sha256:c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f
nvidia-cuda-crt==13.0.88 \\
    --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4 \\
    --hash=sha256:ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003
nvidia-nvvm==13.0.88 \\
    --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0 \\
    --hash=sha256:c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1
nvidia-cuda-runtime==13.0.96 \\
    --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 \\
    --hash=sha256:ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55
nvidia-cuda-cccl==13.0.85 \\
    --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649 \\
    --hash=sha256:6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c
"""
"""The wheels of Linux on x86_64 and aarch64. 13.0 is the newest toolkit that the drivers of CUDA 13.0 run."""


def install_toolkit(folder: Path, say: Callable[[str], None]) -> None:
    """Put the toolkit into ``folder``. The caller holds the build lock.

    Raises `Missing` if pip is not there or cannot fetch it.
    """
    if importlib.util.find_spec("pip") is None:
        raise Missing(
            f"no nvcc on this machine, and no pip in {sys.executable} to fetch one",
            remedy="put nvcc on the PATH, or run `python -m ensurepip`",
        )
    say("no nvcc on this machine: fetching the pinned toolkit 13.0.88 from PyPI (100 MB, once)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    for cut_off in folder.parent.glob(".toolchain.*"):
        shutil.rmtree(cut_off, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=".toolchain.", dir=folder.parent))
    try:
        _fetch(part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch(part: Path) -> None:
    wanted = part / "requirements.txt"
    wanted.write_text(REQUIREMENTS, encoding="utf-8")
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-compile", "--only-binary", ":all:", "--require-hashes", "--target", str(part),
        "--requirement", str(wanted),
    ]  # fmt: skip
    # pip refuses a target beside a user install, which a setting of the user's may ask for.
    environment = {k: v for k, v in os.environ.items() if k not in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX")}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        raise Missing(
            "pip could not fetch the CUDA toolkit:",
            details=done.stdout.decode("utf-8", "replace").strip(),
            remedy="see to the network or the package index, or put an nvcc on the PATH",
        )
    # The packages hold their libraries in lib; nvcc and build systems look in lib64.
    top = part / "nvidia" / "cu13"
    (top / "lib64").symlink_to("lib")
    # Where nvlink looks for the library with which it compiles LTO-IR, by a name without its version.
    (top / "nvvm" / "lib64").mkdir()
    (top / "nvvm" / "lib64" / "libnvvm.so").symlink_to("../../lib/libnvvm.so.4")
