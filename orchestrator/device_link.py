"""The level *device link* of verify: linked device code against the parts that it must come from. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model import Link, Observation
from orchestrator.objects.cubin import Cubin
from orchestrator.objects.devicelink import compare_link

CODE = "device-link-stale"
_WANTED = "linked from these parts"
_REMEDY = "link the device code again (nvcc -dlink), then the program"


def observe_device_link(
    name: str, linked: Iterable[Cubin], parts: Iterable[Cubin]
) -> tuple[Observation, ...]:
    """One observation if both sides hold code of one architecture, none if there is nothing to compare."""
    finished, members = list(linked), list(parts)
    shared = {cubin.arch for cubin in finished} & {cubin.arch for cubin in members}
    if not shared:
        return ()
    differences = compare_link(members, finished)
    if not differences:
        return (Observation(Link.DEVICE_LINK, CODE, name, _WANTED, _WANTED),)
    first = differences[0]
    more = f" and {len(differences) - 1} more" if len(differences) > 1 else ""
    observed = f"{first.name} for {first.arch}: {first.fault}{more}"
    return (Observation(Link.DEVICE_LINK, CODE, name, _WANTED, observed, f"{name}: {observed}", _REMEDY),)
