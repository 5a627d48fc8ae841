"""Why a GPU cannot be used, in words to act on. No GPU is needed here.

An error of the CUDA runtime alone often leads astray: with every GPU hidden it says that there is none, while
`nvidia-smi` shows a healthy one; and a context that finds no room says no more than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

OUT_OF_MEMORY = 2
INSUFFICIENT_DRIVER = 35
UNAVAILABLE = 46
NO_DEVICE = 100
INVALID_DEVICE = 101
"""Of cudaError_t; of CUresult, too, in the case of the first."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
FREE_IT = "free the GPU: `nvidia-smi` lists the processes that hold its memory"


def unusable(
    ordinal: int, status: int | None, text: str, environ: Mapping[str, str], memory: tuple[int, int] | None
) -> Missing:
    """What to raise for an error met while GPU ``ordinal`` was made current.

    ``memory``: free and total bytes of it, as far as they could be found out.
    """
    what = f"no usable CUDA GPU {ordinal}: "
    if status in (NO_DEVICE, INVALID_DEVICE) and VISIBLE in environ:
        return Missing(
            f"{what}{VISIBLE}={environ[VISIBLE]} hides every GPU from CUDA",
            remedy=f"unset {VISIBLE}, or name in it a GPU that `nvidia-smi -L` lists",
        )
    if status == OUT_OF_MEMORY:
        have = "" if memory is None else f"; {gib(memory[0])} of {gib(memory[1])} are free"
        return Missing(
            f"{what}its memory has no room for a CUDA context, which takes some hundred MiB{have}",
            remedy=FREE_IT,
        )
    if status == UNAVAILABLE:
        return Missing(
            f"{what}it is busy: another process has it for itself, or its state forbids new ones",
            remedy="end that process (`nvidia-smi` lists it), or have the compute mode set to Default",
        )
    if status == INSUFFICIENT_DRIVER:
        return Missing(
            f"{what}there is no NVIDIA driver, or it is older than this CUDA runtime",
            remedy="install a driver for this version of CUDA (`nvidia-smi` shows which one it has)",
        )
    return Missing(f"{what}{text}", remedy="see whether `nvidia-smi` shows the GPU")


def out_of_memory(what: str, memory: tuple[int, int] | None) -> Missing:
    """What to raise when the GPU's memory ran out in the middle of something."""
    have = "" if memory is None else f"; {gib(memory[0])} of {gib(memory[1])} are free"
    return Missing(
        f"{what}: the GPU has no memory left for it{have}",
        remedy=f"{FREE_IT}; or take less with --gpu-memory",
    )


def gib(nbytes: int) -> str:
    """A size for people."""
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**28 else f"{nbytes / 2**20:.2f} MiB"
