"""What each kind of target is made from, how, and what its artifact can carry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model import Kind, Target


@dataclass(frozen=True, slots=True)
class Rule:
    """How a kind is built."""

    suffix: str
    flags: tuple[str, ...]
    """What makes nvcc produce this kind."""
    sources: bool
    """May be compiled from a source."""
    uses: frozenset[Kind] = frozenset()
    """Kinds whose products may be its inputs."""
    device: bool = True
    """Has an architecture."""
    both: bool = False
    """May have a source and uses at once."""


_LINKABLE = frozenset({Kind.OBJECT, Kind.ARCHIVE, Kind.DEVICE_LINK})

RULES: Mapping[Kind, Rule] = {
    Kind.CUBIN: Rule(".cubin", ("-cubin",), sources=True),
    Kind.FATBIN: Rule(".fatbin", ("-fatbin",), sources=True),
    Kind.PTX: Rule(".ptx", ("-ptx",), sources=True),
    Kind.OBJECT: Rule(".o", ("-c",), sources=True),
    Kind.DEVICE_LINK: Rule(".o", ("-dlink",), sources=False, uses=frozenset({Kind.OBJECT, Kind.ARCHIVE})),
    Kind.ARCHIVE: Rule(
        ".a", ("-lib",), sources=False, uses=frozenset({Kind.OBJECT, Kind.DEVICE_LINK}), device=False
    ),
    Kind.SHARED_LIBRARY: Rule(".so", ("-shared",), sources=True, uses=_LINKABLE),
    Kind.EXECUTABLE: Rule("", (), sources=True, uses=_LINKABLE | {Kind.SHARED_LIBRARY}, both=True),
}

# Without `-x c++` it links and then fails to load; gnu-unique symbols of two libraries run old code.
_HOST_LIBRARY = ("-x", "c++", "-cudart", "none", "-Xcompiler")
_FOR_GCC, _FOR_CLANG = "-fPIC,-fno-gnu-unique", "-fPIC"
"""clang makes no such symbols and does not know the option."""


def is_host_library(target: Target) -> bool:
    """A shared library compiled as plain C++ from the headers that kernels use: it has no device code."""
    return target.kind is Kind.SHARED_LIBRARY and bool(target.sources)


def kind_flags(target: Target, *, clang: bool = False) -> tuple[str, ...]:
    """The flags that make nvcc produce this target's kind, with gcc or with ``clang`` as host compiler."""
    library = (*_HOST_LIBRARY, _FOR_CLANG if clang else _FOR_GCC) if is_host_library(target) else ()
    return (*RULES[target.kind].flags, *library)


def product_name(target: Target) -> str:
    """File name of the artifact."""
    return target.name + RULES[target.kind].suffix


def links(target: Target) -> bool:
    """Made by ld, which writes a dependency list of its own."""
    return target.kind in (Kind.SHARED_LIBRARY, Kind.EXECUTABLE)


def is_stamped(target: Target) -> bool:
    """Carries its recipe digest; PTX, fat binaries and what is only linked have no place for one."""
    return bool(target.sources) and target.kind not in (Kind.PTX, Kind.FATBIN)


def is_stamped_on_device(target: Target) -> bool:
    """The stamp is a device symbol, which can be read back from the loaded module."""
    return target.kind is Kind.CUBIN
