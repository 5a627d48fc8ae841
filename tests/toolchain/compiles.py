"""nvcc by hand, and a program of two parts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"

MAIN = """
__device__ int shared_function(int x);
__global__ void uses_it(int *p) { *p = shared_function(*p); }
int main() { uses_it<<<1, 1>>>(nullptr); return 0; }
"""
PART = """
__device__ int global_value = 5;
__constant__ int constants[4] = {1, 2, 3, 4};
__device__ int shared_function(int x) { return x * global_value + constants[x & 3]; }
"""


def nvcc(folder: Path, *arguments: str) -> str:
    """Run nvcc in a folder; returns what it printed."""
    run = subprocess.run(
        [NVCC, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr
