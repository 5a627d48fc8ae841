"""Variables that can change what a build makes. Others are not looked at, nor written down. Pure."""

from __future__ import annotations

from orchestrator.plan import HONOURED, IGNORED

TOOLS = (
    "CC", "CXX", "AR", "NVCC", "CUDACXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT",
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "CUDAFLAGS", "CUDAARCHS", "NVCCFLAGS", "LDFLAGS", "MAKEFLAGS",
    "RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN",
    "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET",
)  # fmt: skip
"""What build systems take their tools and flags from."""

WATCHED = (*HONOURED, *IGNORED, *TOOLS)
"""Compared between the recorded build and now."""

KEPT = (
    *WATCHED, "PATH", "TMPDIR", "LC_ALL", "LANG", "HOME", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH",
    "CARGO_MANIFEST_DIR", "OUT_DIR",
)  # fmt: skip
"""What the observer writes down of each program: enough to ask its compiler again."""
