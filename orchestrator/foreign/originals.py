"""The products of a recorded build as `orchestrator.audit` looks for copies of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.copies import Original
from orchestrator.errors import ConfigurationError
from orchestrator.foreign.judge import Judge
from orchestrator.foreign.made import Build, Made
from orchestrator.foreign.provenance import chain
from orchestrator.foreign.standing import standing_ends
from orchestrator.foreign.store import Store
from orchestrator.model import State
from orchestrator.object_files import member_opener, open_object
from orchestrator.objects.contents import Form
from orchestrator.objects.traces import read_traces
from orchestrator.objects.window import Malformed

_SHIPPED = frozenset(
    {Form.EXECUTABLE, Form.SHARED_LIBRARY, Form.ARCHIVE, Form.CUBIN, Form.FATBIN, Form.PTX, Form.LTO_IR}
)
"""What is loaded or linked elsewhere; an object file goes no further than into one of these."""


def recorded_originals(
    store: Store, build: Build, environ: Mapping[str, str], but: Iterable[Original] = ()
) -> tuple[Original, ...]:
    """The products with device code that count, and those that went into them; not those of ``but``."""
    known = {os.path.realpath(one.path) for one in but}
    look = Judge(store, build, environ)
    counting = {m.path: m for path in standing_ends(build)[0] for m in chain(build.made, path)}
    found = []
    for made in counting.values():
        if made.content.pieces and made.content.form in _SHIPPED and os.path.realpath(made.path) not in known:
            found += _original(look, made)
    return tuple(found)


def _original(look: Judge, made: Made) -> list[Original]:
    path = Path(made.path)
    try:
        traces = read_traces(open_object(path), member_opener(path))
    except (Malformed, ConfigurationError):
        return []
    verdict = look.product(made.path)
    fresh = verdict.state is State.FRESH
    digest = made.content.digest
    return [Original(look.shown(made.path), made.path, digest, digest, "", fresh, traces)]
