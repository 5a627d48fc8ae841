"""Variables that can change what a build makes. Others are not looked at, nor written down. Pure."""

from __future__ import annotations

from orchestrator.plan import HONOURED, IGNORED

TOOLS = (
    "CC", "CXX", "AR", "NVCC", "CUDACXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT",
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "CUDAFLAGS", "CUDAARCHS", "NVCCFLAGS", "LDFLAGS", "MAKEFLAGS",
    "RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN",
    "CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL",
)  # fmt: skip
"""What build systems take their tools and flags from."""

_OF_CARGO = ("CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_UNSTABLE_")
"""How the names of cargo's settings begin: Cargo Book, "Configuration"."""
_OF_PLACES = frozenset({
    "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "CARGO_BUILD_JOBS",
})  # fmt: skip
"""They say where and how fast things are made; the paths of products tell the former."""

WATCHED = (*HONOURED, *IGNORED, *TOOLS)
"""Compared between the recorded build and now."""

KEPT = (
    *WATCHED, "PATH", "TMPDIR", "LC_ALL", "LANG", "HOME", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH",
    "CARGO_MANIFEST_DIR", "OUT_DIR",
)  # fmt: skip
"""What the observer writes down of each program: enough to ask its compiler again."""


def is_watched(name: str) -> bool:
    """Whether a variable is compared whatever the project asks for."""
    return name in _WATCHED or (name.startswith(_OF_CARGO) and name not in _OF_PLACES)


_WATCHED = frozenset(WATCHED)
