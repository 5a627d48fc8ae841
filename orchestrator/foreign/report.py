"""What a recorded build did about CUDA code, as lines to read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from orchestrator.foreign.made import Build, Made
from orchestrator.foreign.provenance import chain, makers_of_code, sources_of
from orchestrator.foreign.stamps import Stamps
from orchestrator.foreign.words import OUTPUT_OPTIONS
from orchestrator.model import State, Verdict
from orchestrator.objects.demangle import demangle

_FEW = 6
"""So many kernels are named."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One CUDA source."""

    source: str
    what: str
    """Such as ``compiled``."""
    why: str
    product: str


def source_rows(
    build: Build,
    ran: AbstractSet[str],
    verdicts: Mapping[str, Verdict],
    leftover: Iterable[str] = (),
) -> list[SourceRow]:
    """Whether each CUDA source was compiled, and if not, whether it had to be.

    ``ran`` are the products that this build made, ``verdicts`` those on all compiles. What only ``leftover``
    products hold is told as that.
    """
    left = {m.path for path in leftover for m in chain(build.made, path)}
    left -= {m.path for path in build.made.keys() - left for m in chain(build.made, path)} | ran
    rows = []
    for made in sorted(build.made.values(), key=lambda m: m.path):
        for source in sources_of(made):
            what, why = _what(made, made.path in ran, verdicts[made.path])
            if made.path in left:
                what, why = "left over", "no product that counts holds it any more"
            rows.append(SourceRow(shown(build, source), what, why, shown(build, made.path)))
    return sorted(rows, key=lambda row: (row.source, row.product))


def _what(made: Made, ran: bool, verdict: Verdict) -> tuple[str, str]:
    if ran and verdict.state is State.FRESH:
        return "compiled", f"{made.milliseconds / 1000:.1f} s" + _compared(made)
    why = verdict.findings[0].message if verdict.findings else ""
    if ran:
        return "compiled, " + verdict.state, why
    if verdict.state is State.FRESH:
        return "not compiled", "nothing that it depends on has changed"
    if any(f.code == "artifact-changed" for f in verdict.findings):
        return "NOT SEEN", "its product was written again, and `freshproof run` did not see it"
    if verdict.state is State.STALE:
        return "NOT COMPILED", f"and it had to be: {why}"
    return "not compiled", f"and whether it had to be is not known: {why}"


def _compared(made: Made) -> str:
    """What came of compiling it again. Equal device code explains; it decides nothing."""
    if made.before is None:
        return ""
    normalised, device = made.before
    if normalised == made.content.normalised:
        return ", same code as before"
    return (
        ", other host code, device code as before" if device == made.content.device else ", other device code"
    )


def shown(build: Build, path: str) -> str:
    """A path relative to the project where it lies in it."""
    return path.removeprefix(f"{build.root}/")


def product_lines(build: Build, verdicts: Iterable[tuple[str, Verdict]]) -> Iterator[str]:
    """State of each product that counts, where its device code comes from, and what is wrong with it."""
    for path, verdict in verdicts:
        made = build.made.get(path)
        origins = list(_origins(build, made)) if made is not None else []
        if verdict.state is State.FRESH:
            yield f"  {'; '.join((f'{verdict.target}: fresh', *origins[:1]))}"
            continue
        yield f"  {verdict.target}: {verdict.state}"
        yield from (f"      {line}" for line in origins)
        for finding in verdict.findings[:4]:
            yield f"      {finding.message}"
        if len(verdict.findings) > 4:
            yield f"      and {len(verdict.findings) - 4} more (freshproof verify lists them)"


def _origins(build: Build, made: Made) -> Iterator[str]:
    compiles = makers_of_code(build.made, made.path)
    names = [demangle(name) for name in made.content.kernels]
    kernels = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
    sources = sorted({shown(build, s) for m in compiles for s in sources_of(m)})
    if sources:
        yield f"device code {f'({kernels}) ' if kernels else ''}of {', '.join(sources)}"
    for link in chain(build.made, made.path)[1:]:
        if link.content.form == "archive" and link.content.pieces:
            yield f"through {shown(build, link.path)}"


def idle_options(build: Build) -> Iterator[str]:
    """Compiles of one source whose options differ and whose device code does not."""
    compiles: dict[tuple[tuple[str, ...], str], list[Made]] = {}
    for made in sorted(build.made.values(), key=lambda m: m.path):
        if made.content.device and (sources := sources_of(made)):
            compiles.setdefault((sources, made.content.device), []).append(made)
    for (sources, _device), (first, *others) in compiles.items():
        for other in others:
            only = [_but(_options(a), _options(b)) for a, b in ((first, other), (other, first))]
            if any(only):
                names = ", ".join(shown(build, source) for source in sources)
                options = " and ".join(f"`{' '.join(words)}`" for words in only if words)
                both = f"{shown(build, first.path)} and {shown(build, other.path)}"
                yield f"  {both} hold the same device code of {names}: {options} makes no difference to it"


def stamp_lines(build: Build, stamps: Stamps) -> Iterator[str]:
    """How many objects a build gave stamps to, and which got none, and why."""
    count = len(stamps.given)
    if not count and not stamps.left:
        return
    yield f"  {count} {'object was' if count == 1 else 'objects were'} stamped"
    for path, why in list(stamps.left.items())[:_FEW]:
        yield f"      {shown(build, path)}: not stamped: {why}"
    if len(stamps.left) > _FEW:
        yield f"      and {len(stamps.left) - _FEW} more that were not (--json lists them)"


def _options(made: Made) -> list[str]:
    """The words of a compile but for where it writes."""
    named = ("", *made.argv)
    return [
        word
        for before, word in zip(named, made.argv, strict=False)
        if before not in OUTPUT_OPTIONS and word not in OUTPUT_OPTIONS
    ]


def _but(words: list[str], others: list[str]) -> list[str]:
    return [word for word in words if word not in others]
