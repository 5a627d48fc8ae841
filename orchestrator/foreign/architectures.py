"""Whether a product's device code runs on a GPU as it was compiled. Pure.

CUDA C++ Programming Guide, "Binary Compatibility": machine code runs on GPUs of its own major version and
the same or a higher minor one; code for ``sm_90a`` on that one alone; code for ``sm_100f`` in its family.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.model import Link, Observation

_ARCH = re.compile(r"sm_(\d+)(\d)([af]?)")


def observe_code_for(gpu: str, archs: Sequence[str], product: str) -> Observation:
    """Whether a product with code for ``archs`` (``sm_90``; PTX: ``compute_90``) runs on ``gpu`` as it is."""
    fitting = [arch for arch in archs if _runs(arch, gpu)]
    if fitting:
        return Observation(Link.CONTENTS, "arch", product, gpu, gpu)
    ptx = [arch for arch in archs if arch.startswith("compute_")]
    held = ", ".join(arch for arch in archs if arch not in ptx)
    if held:
        note = f"{product}: holds machine code for {held}, and the GPU here is {gpu}"
    elif ptx:
        note = f"{product}: holds no machine code, only PTX for {', '.join(ptx)}"
    else:
        note = f"{product}: holds no machine code for the GPU here, {gpu}"
    if ptx:
        note += "; the driver would compile its PTX when it is loaded, into code that no build made"
    return Observation(
        Link.CONTENTS, "arch-missing", product, gpu, held or "PTX only", note, f"compile it for {gpu} as well"
    )


def _runs(arch: str, gpu: str) -> bool:
    code, here = _ARCH.fullmatch(arch), _ARCH.fullmatch(gpu)
    if code is None or here is None:
        return False
    (major, minor, only), (own, at_least, _) = code.groups(), here.groups()
    return major == own and (minor == at_least if only == "a" else minor <= at_least)
