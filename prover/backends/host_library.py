"""A host library in this process: loaded, found to be the admitted file, and called through typed functions.

`ctypes.CDLL` gives no such proof: the dynamic loader goes by names, and hands out what it loaded earlier
under the same name even if the file has been replaced since. So what counts is what is mapped.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

from orchestrator.errors import BrokenRun, Missing, Refused
from orchestrator.loaded import check_library, stamp_symbol
from prover.artifact import Loaded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prover.artifact import Artifact

    Bytes = NDArray[np.uint8]

ABI_VERSION = 1
"""Of cuda_src/host/abi.cuh, whose functions these are."""

FAULTS = {
    1: "an argument out of range, or a scalar that is not below r",
    2: "not enough memory",
    3: "a failure of the system, such as a lock that it did not give",
}
NO_MEMORY = 2

_U32, _U64, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "field": (_U32, _U32, _POINTER, _POINTER, _POINTER, _U64),
    "group": (_U32, _U32, _POINTER, _POINTER, _POINTER, _U64),
    "check_points": (_U32, _POINTER, _U64, _U32, _POINTER),
    "multiples": (_U32, _POINTER, _POINTER, _POINTER, _U64, _U32),
    "msm": (_U32, _POINTER, _POINTER, _U64, _U32, _U32, _POINTER),
    "domain": (_POINTER, _U32, _U32),
    "ntt": (_POINTER, _U32, _POINTER, _U32, _U32),
    "to_coset": (_POINTER, _U32, _POINTER, _U32),
    "sort_entries": (_POINTER, _U32, _U64, _POINTER, _POINTER),
    "sparse_products": (_POINTER, _POINTER, _POINTER, _U64, _POINTER, _U64, _POINTER, _POINTER, _U32),
    "multiply": (_POINTER, _POINTER, _POINTER, _U64, _U32),
    "quotient": (_POINTER, _POINTER, _POINTER, _POINTER, _U64, _U32),
}


class HostLibrary:
    """The functions of one curve's host library. Lengths are the caller's to vouch for."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._functions = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, f"freshproof_{name}")
            function.argtypes, function.restype = arguments, ctypes.c_int32
            self._functions[name] = function

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``freshproof_<name>``; arrays go as pointers to their first byte.

        Raises `Missing` when memory does not suffice, and `BrokenRun` for any other status.
        """
        plain = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
        status = self._functions[name](*plain)
        if status == NO_MEMORY:
            raise Missing(f"{name}: {FAULTS[status]}", remedy="use a machine with more memory")
        if status:
            raise BrokenRun(f"{name} of the host library: {FAULTS.get(status, f'status {status}')}")


def load_library(artifact: Artifact, curve_name: str) -> tuple[HostLibrary, Loaded]:
    """Load an admitted library and establish that it is what this process has mapped.

    Raises `Refused` when the mapped file, its bytes, its code in memory, or its stamp are not the admitted
    ones, or it is the library of another curve or interface; `Missing` when the loader cannot load it.
    """
    remedy = f"freshproof build {artifact.target}"
    try:
        library = ctypes.CDLL(str(artifact.path))
        version, curve = library.freshproof_abi_version, library.freshproof_curve
    except (OSError, AttributeError) as error:
        raise Missing(f"{artifact.path}: cannot be loaded: {error}", remedy=remedy) from None
    digest = check_library(artifact, ctypes.cast(version, _POINTER).value or 0).digest
    stamp = _stamp(library, artifact, remedy)
    curve.restype = ctypes.c_char_p
    found = ((curve() or b"").decode("ascii", "replace"), version(), stamp)
    wanted = (curve_name, ABI_VERSION, artifact.stamp)
    names = ("curve", "interface version", "stamp")
    for what, have, want in zip(names, found, wanted, strict=True):
        if have != want:
            raise Refused(f"{artifact.path}: its {what} is {have}; {want} wanted", remedy=remedy)
    return HostLibrary(library), Loaded(artifact.target, digest, stamp, "mapped-file")


def _stamp(library: ctypes.CDLL, artifact: Artifact, remedy: str) -> str:
    """The recipe digest that the loaded library carries."""
    symbol = stamp_symbol(artifact)
    prefix, digits = b"freshproof:", 64
    try:
        text = bytes((ctypes.c_char * (len(prefix) + digits)).in_dll(library, symbol))
    except ValueError:
        raise Refused(f"{artifact.path}: it carries no stamp ({symbol})", remedy=remedy) from None
    if not re.fullmatch(prefix + rb"[0-9a-f]{64}", text):
        raise Refused(f"{artifact.path}: {symbol} holds no stamp but {text[:24]!r}", remedy=remedy)
    return f"sha256:{text[len(prefix) :].decode('ascii')}"
