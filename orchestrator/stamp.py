"""The stamp in our own artifacts: the header that makes room for it, and writing it after the compile.

The unit is compiled with a fixed placeholder; the recipe digest is written over it in the finished ELF file.
So the stamp needs no second compile and is not circular, and the bytes with the placeholder in place (the
unstamped digest) compare machine code.
"""

from __future__ import annotations

from orchestrator.model import Digest
from orchestrator.objects.elf import read_elf
from orchestrator.objects.stamp import DIGITS, PLACEHOLDER, SYMBOL_PREFIX, TEXT_PREFIX, read_stamps

_SIZE = len(TEXT_PREFIX) + DIGITS + 1


def header(unit: str, *, on_device: bool) -> str:
    """Text of the header that is included before anything else of ``unit``.

    The symbol has a name of its own per unit, since two equal ones fail at nvlink and ld. It is a device
    symbol where the artifact is device code, else a host symbol, which nvcc's device passes do not see.
    """
    symbol = f"{SYMBOL_PREFIX}{unit}[{_SIZE}]"
    text = TEXT_PREFIX.decode("ascii") + PLACEHOLDER
    if on_device:
        return f"""\
#ifdef __CUDACC__
extern "C" __device__ __attribute__((used)) const char {symbol} = "{text}";
#endif
"""
    return f"""\
#ifndef __CUDA_ARCH__
extern "C" {{
extern __attribute__((visibility("default"))) const char {symbol};
__attribute__((used)) const char {symbol} = "{text}";
}}
#endif
"""


def write_stamp(data: bytes, unit: str, recipe: Digest) -> bytes:
    """The artifact with the digits of ``recipe`` over the placeholder.

    Raises `ValueError` if the unit's stamp is not there exactly once, still holding the placeholder, and
    `orchestrator.objects.window.Malformed` if the file cannot be read.
    """
    found = [s for s in read_stamps(read_elf(data)) if s.symbol == f"{SYMBOL_PREFIX}{unit}"]
    if len(found) != 1 or found[0].written:
        raise ValueError(f"the placeholder of the stamp is not in it ({len(found)} symbols found)")
    digits = recipe.removeprefix("sha256:").encode("ascii")
    if len(digits) != DIGITS:
        raise ValueError(f"not a digest: {recipe}")
    at = found[0].offset
    return data[:at] + digits + data[at + DIGITS :]
