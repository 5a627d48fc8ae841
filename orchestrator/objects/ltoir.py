"""LTO-IR: the intermediate code that ``-dlto`` leaves for the device link. Its body is obfuscated."""

from __future__ import annotations

import struct

from orchestrator.objects.window import Bytes, record

MAGIC = b"\xed\x43\x4e\x7f"
_ARCH = struct.Struct("<H")
_ARCH_OFFSET = 26


def is_ltoir(data: Bytes) -> bool:
    """Whether the bytes begin as an ``.ltoir`` file does."""
    return bytes(data[:4]) == MAGIC


def ltoir_arch(data: Bytes) -> str:
    """``lto_NN``: a u16 at byte 26 holds ten times the SM number (seen with nvcc 13.0.88)."""
    tenfold = record(_ARCH, data, _ARCH_OFFSET, "architecture of LTO-IR")[0]
    return f"lto_{tenfold // 10}"
