"""What stands between an artifact and its use: the stable name that leads to it, and the driver's settings.

An artifact may be as recorded and another one run all the same: people and links take it by its stable name,
and variables of the surroundings make the CUDA driver compile PTX or load other code in its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from orchestrator.digests import Digests, Unreadable
from orchestrator.model import Action, Kind, Link, Manifest, Observation, Target
from orchestrator.plan import stable_link

LOADER_VARIABLES = {
    "CUDA_FORCE_PTX_JIT": "the driver would compile PTX and leave the machine code that was checked",
    "CUDA_FORCE_JIT": "the driver would compile PTX and leave the machine code that was checked",
    "CUDA_INJECTION64_PATH": "the driver would load that library, and it may run other code than was checked",
}
"""Variables with which the CUDA driver runs other code than it is given, and how. Those that forbid it to
compile PTX (CUDA_DISABLE_PTX_JIT) are welcome.
"""

_DEVICE_KINDS = frozenset({Kind.CUBIN, Kind.FATBIN, Kind.PTX})


def observe_link(manifest: Manifest, action: Action, digests: Digests) -> tuple[Observation, ...]:
    """The stable name of a product: if it is there, it leads to the recorded artifact or to its bytes."""
    link, product = stable_link(action.product_name), manifest.product
    path = digests.locate(link)
    if not os.path.lexists(path):
        return ()
    now: str | None = product.digest
    if os.path.realpath(path) != os.path.realpath(digests.locate(product.path)):
        try:
            now = digests.get(link)
        except Unreadable:
            now = None
    note = f"{link}: leads to {os.path.realpath(path)}, not to {product.path}"
    return (Observation(Link.ARTIFACT, "link-changed", link, product.digest, now, note),)


def observe_loader(target: Target, environ: Mapping[str, str]) -> tuple[Observation, ...]:
    """Variables of the surroundings that would make the driver run something else."""
    if target.kind not in _DEVICE_KINDS:
        return ()
    return tuple(
        Observation(
            Link.CONTENTS, "loader-variable", name, "unset", environ[name],
            f"{name}={environ[name]}: {effect}", f"unset {name}",
        )
        for name, effect in LOADER_VARIABLES.items()
        if environ.get(name, "") not in ("", "0")
    )  # fmt: skip
