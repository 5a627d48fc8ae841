"""The command ``groth16``: the only place of the prover that prints or exits."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console
from rich.table import Table

from orchestrator import __version__
from orchestrator.cli import run_command
from orchestrator.cli.terminal import error_console
from orchestrator.errors import AnswerIsNo, BrokenRun, ConfigurationError
from orchestrator.spans import divide
from prover.command_line import Commands, FilePath
from prover.loading import BACKENDS
from prover.output import all_or_none, require_distinct, write_text
from prover.params import CURVES, curve_by_name
from prover.phases import since_process_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from prover.backends import PointGenerator
    from prover.formats.r1cs import ConstraintSystem
    from prover.params import Curve
    from prover.session import Outcome, Session

FILE = FilePath()
DETERMINISTIC = "deterministic, not zero-knowledge: made with given r and s; never publish it"
ENDED = (129, 130, 143)
"""Exit codes after a hang-up, Ctrl-C, and a request to end."""

backend_option = click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    required=True,
    help="What does the arithmetic. Never falls back.",
)
gpu_memory_option = click.option(
    "--gpu-memory",
    type=click.FloatRange(0, min_open=True),
    metavar="GB",
    help="Memory of the GPU to use at most, in 10^9 bytes; a key that does not fit is streamed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="groth16")
def cli() -> None:
    """Groth16 proofs over BN254 and BLS12-381 from snarkjs files, checked before they are written."""


def main() -> NoReturn:
    """The command ``groth16``."""
    try:
        run_command(cli)
    except SystemExit as end:
        if end.code in ENDED:
            click.echo("interrupted: every file is whole, or as it was", err=True)
        raise


@cli.command()
@click.option("--zkey", type=FILE, required=True, help="The proving key.")
@click.option("--wtns", type=FILE, required=True, help="The witness.")
@click.option("--proof", type=FILE, required=True, help="Where to write the proof.")
@click.option("--public", type=FILE, required=True, help="Where to write the public signals.")
@backend_option
@gpu_memory_option
@click.option("--r1cs", type=FILE, help="The circuit: checked first, so that a false witness is explained.")
@click.option("--test-blinders", type=(int, int), metavar="R S", help=f"TESTS ONLY: {DETERMINISTIC}.")
@json_option
def prove(
    zkey: Path,
    wtns: Path,
    proof: Path,
    public: Path,
    backend: str,
    gpu_memory: float | None,
    r1cs: Path | None,
    test_blinders: tuple[int, int] | None,
    as_json: bool,
) -> None:
    """Prove, check the proof with an independent pairing library, and write proof and public signals."""
    from prover.formats.snarkjs import proof_json, public_json
    from prover.formats.wtns import read_wtns
    from prover.loading import gated
    from prover.session import Session

    before = {"process start": since_process_start()}
    require_distinct({"--zkey": zkey, "--wtns": wtns, "--r1cs": r1cs}, {"--proof": proof, "--public": public})
    console = error_console(markup=False)
    with all_or_none((public, proof)) as staged:
        witness = read_wtns(wtns)
        if test_blinders is not None and not all(0 <= v < witness.curve.r for v in test_blinders):
            raise ConfigurationError("--test-blinders: r and s must be at least 0 and below the group order")
        if r1cs is not None:
            _require_satisfied(r1cs, wtns)
        start_ns = time.monotonic_ns()
        find_artifact = gated(backend, witness.curve)
        before["gate"] = time.monotonic_ns() - start_ns
        budget = _bytes(gpu_memory)
        opening = Session.open(zkey, backend, find_artifact, _say(console), budget, witness, once=True)
        with opening as session:
            outcome = session.prove(witness, test_blinders)
        _require_valid(outcome)
        write_text(staged[public], public_json(outcome.public))
        write_text(staged[proof], proof_json(session.key.curve, outcome.proof))
    cold = session.opening.before(outcome)
    console.print(_phase_table(outcome, cold, before))
    if outcome.deterministic:
        console.print(DETERMINISTIC, style="bold yellow", soft_wrap=True)
    if as_json:
        _tell("prove", _report(session, outcome, proof, public) | _cold_report(cold, before))
    else:
        click.echo(f"{proof}: valid ({outcome.check.by}); public signals in {public}")


def _tell(command: str, document: dict[str, Any]) -> None:
    """The result for programs; manifests/README.md has the keys."""
    click.echo(json.dumps({"schema": f"groth16/{command}/1"} | document, indent=1))


def _say(console: Console) -> Callable[[str], None]:
    """Progress for people, on standard error."""
    return partial(console.print, style="dim", soft_wrap=True)


def _require_valid(outcome: Outcome) -> None:
    if outcome.check.valid:
        return
    remedy = "the witness does not satisfy the circuit, or belongs to another one: "
    remedy += "add --r1cs CIRCUIT.r1cs to see which constraint fails"
    if outcome.check.reason.startswith("point "):  # from points of the curve, no witness makes one off it
        remedy = "the key holds points outside their subgroup, or the arithmetic is at fault: "
        remedy += "fetch the key again, or compare with another --backend"
    raise BrokenRun(
        f"the proof failed its check by {outcome.check.by}: {outcome.check.reason}; nothing was written",
        remedy=remedy,
    )


def _require_satisfied(r1cs: Path, wtns: Path) -> None:
    from prover import qap
    from prover.formats.r1cs import read_r1cs
    from prover.formats.wtns import read_wtns, require_match
    from prover.scalars import decode_scalars

    system, witness = read_r1cs(r1cs), read_wtns(wtns)
    require_match(witness, system.curve, system.n_wires, r1cs)
    row = qap.first_unsatisfied(system, decode_scalars(witness.words))
    if row is not None:
        raise AnswerIsNo(
            f"{wtns}: does not satisfy constraint {row} (of {system.n_constraints}) of {r1cs}",
            remedy="make the witness again from the inputs; `snarkjs r1cs print` shows the constraint",
        )


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else round(gigabytes * 1e9)


def _cold_report(cold: Outcome, before: dict[str, int]) -> dict[str, Any]:
    """From the key file to the first proof, and what this process did before it."""
    spans = [asdict(span) for span in cold.spans]
    return {"cold_start": {"total_ns": cold.t1_ns - cold.t0_ns, "spans": spans, "before_ns": before}}


def _phase_table(outcome: Outcome, cold: Outcome, before: dict[str, int]) -> Table:
    division = divide(outcome.t0_ns, outcome.t1_ns, outcome.spans)
    table = Table("phase", "clock", box=None, header_style="bold")
    table.add_column("ms", justify="right")
    table.add_column("share", justify="right")

    def add(name: str, clock: str, ns: int) -> None:
        table.add_row(name, clock, f"{ns / 1e6:.3f}", f"{ns / division.total_ns:.1%}")

    for phase in division.phases:
        add(phase.name, phase.clock, phase.ns)
    if division.overlap_ns:
        add("(overlap)", "", -division.overlap_ns)
    add("unaccounted", "host", division.unaccounted_ns)
    table.add_section()
    add("proof", "host", division.total_ns)
    table.add_row("check (after it)", "host", f"{outcome.check.seconds * 1e3:.3f}", "")
    table.add_section()
    for span in cold.spans[: len(cold.spans) - len(outcome.spans)]:
        table.add_row(span.name, span.clock, f"{(span.t1_ns - span.t0_ns) / 1e6:.3f}", "")
    table.add_row("key file to first proof", "host", f"{(cold.t1_ns - cold.t0_ns) / 1e6:.3f}", "")
    for name, ns in before.items():
        table.add_row(f"{name} (before it)", "host", f"{ns / 1e6:.3f}", "")
    return table


def _report(session: Session, outcome: Outcome, proof: Path, public: Path) -> dict[str, Any]:
    key, backend = session.key, session.backend
    return {
        "proof": str(proof),
        "public": str(public),
        "curve": key.curve.name,
        "constraints": key.n_constraints,
        "wires": key.n_vars,
        "public_signals": key.n_public,
        "domain": key.domain_size,
        "backend": backend.name,
        "loaded": [entry.as_json() for entry in backend.loaded],
        "device": backend.device,
        "arrangement": dict(outcome.arrangement),
        "zero_knowledge": not outcome.deterministic,
        "warning": DETERMINISTIC if outcome.deterministic else None,
        "check": outcome.check.as_json(),
        "total_ns": outcome.t1_ns - outcome.t0_ns,
        "spans": [asdict(span) for span in outcome.spans],
    }


@cli.command()
@click.option("--vk", type=FILE, help="The verification key (JSON).")
@click.option("--zkey", type=FILE, help="The proving key, instead: it contains the verification key.")
@click.option("--public", type=FILE, required=True, help="The public signals.")
@click.option("--proof", type=FILE, required=True, help="The proof.")
@json_option
def verify(vk: Path | None, zkey: Path | None, public: Path, proof: Path, as_json: bool) -> None:
    """Whether a proof is valid: exit 0 if so, 1 if not. Strict about ranges, curves, subgroups and counts."""
    from prover.check import Check, Checker
    from prover.formats.snarkjs import read_proof, read_public, read_verification_key
    from prover.formats.zkey import read_zkey

    if vk is not None and zkey is None:
        checker = Checker(read_verification_key(vk), source=vk)
    elif zkey is not None and vk is None:
        checker = Checker.of_key(read_zkey(zkey))
    else:
        raise click.UsageError("give one of --vk and --zkey")
    key = checker.vk
    curve, points = read_proof(proof)
    signals = read_public(public)
    if curve is None or curve == key.curve:
        check = checker.check(points, signals)
    else:
        check = Check(False, f"the proof is for {curve.name}, the key for {key.curve.name}", "groth16", 0.0)
    if as_json:
        _tell("verify", {"proof": str(proof), "public": str(public), **check.as_json()})
    if not check.valid:
        raise AnswerIsNo(f"{proof}: invalid: {check.reason}")
    if not as_json:
        click.echo(f"{proof}: valid ({check.by})")


@cli.command()
@click.option("--zkey", type=FILE, required=True)
@click.option("--wtns", type=FILE, required=True)
@backend_option
@gpu_memory_option
@click.option("--cold", is_flag=True, help="Time each sample from the key file on, not from the witness.")
def worker(zkey: Path, wtns: Path, backend: str, gpu_memory: float | None, cold: bool) -> int:
    """Serve proofs to `freshproof bench` (not for use by hand)."""
    from prover.serving import serve
    from prover.worker import Job, Proofs

    return serve(lambda: Proofs(Job(zkey, wtns, backend, _bytes(gpu_memory), cold)))


@cli.command()
@click.argument("file", type=FILE)
@json_option
def info(file: Path, as_json: bool) -> None:
    """What a .zkey, .wtns or .r1cs file holds."""
    from prover.describe import describe, lines

    facts = describe(file)
    if as_json:
        _tell("info", {"file": str(file), **facts})
    else:
        click.echo("\n".join(lines(facts)))


@cli.command()
@click.option("--r1cs", type=FILE, required=True, help="The circuit.")
@click.option("--zkey", type=FILE, required=True, help="Where to write the proving key.")
@click.option("--vk", type=FILE, help="Where to write the verification key.")
@click.option("--test-seed", help="TESTS ONLY: secrets from this text, for equal keys.")
@backend_option
@json_option
def setup(
    r1cs: Path, zkey: Path, vk: Path | None, test_seed: str | None, backend: str, as_json: bool
) -> None:
    """Make a test key. Whoever runs this can forge proofs: real keys come from a ceremony."""
    from prover.formats.r1cs import read_r1cs
    from prover.formats.snarkjs import verification_key_json
    from prover.formats.zkey import read_zkey

    require_distinct({"--r1cs": r1cs}, {"--zkey": zkey, "--vk": vk})
    with all_or_none((zkey, vk) if vk is not None else (zkey,)) as staged:
        system = read_r1cs(r1cs)
        _write_key(staged[zkey], system, test_seed, _generator(backend, system.curve))
        if vk is not None:
            write_text(staged[vk], verification_key_json(read_zkey(staged[zkey]).verification_key()))
    _tell_key("setup", {"zkey": zkey, "vk": vk}, system, as_json)


@cli.command()
@click.option("--curve", type=click.Choice([c.name for c in CURVES]), required=True)
@click.option("--constraints", type=click.IntRange(1), help="How many.")
@click.option("--log-domain", type=click.IntRange(3, 31), help="Instead: as many as fill a domain of 2^K.")
@click.option(
    "--binary", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Share of 0/1 wires."
)
@click.option("--seed", default="0", show_default=True, help="Equal seeds give equal circuits and keys.")
@click.option("--zkey", type=FILE, required=True, help="Where to write the proving key.")
@click.option("--wtns", type=FILE, required=True, help="Where to write the witness.")
@click.option("--r1cs", type=FILE, help="Where to write the circuit.")
@backend_option
@json_option
def synth(
    curve: str,
    constraints: int | None,
    log_domain: int | None,
    binary: float,
    seed: str,
    zkey: Path,
    wtns: Path,
    r1cs: Path | None,
    backend: str,
    as_json: bool,
) -> None:
    """Make a synthetic circuit with key and witness, for benchmarks. Its secrets follow from the seed."""
    from prover.backends import DenseWires
    from prover.formats.r1cs import write_r1cs
    from prover.formats.wtns import write_wtns
    from prover.memory import require_memory
    from prover.setup import key_bytes
    from prover.synth import N_PUBLIC, Shape, constraints_filling, synthesize

    if (constraints is None) == (log_domain is None):
        raise click.UsageError("give one of --constraints and --log-domain")
    count = constraints if constraints is not None else constraints_filling(log_domain or 0)
    chosen = curve_by_name(curve)
    assert chosen is not None
    require_distinct({}, {"--zkey": zkey, "--wtns": wtns, "--r1cs": r1cs})
    shape = Shape(chosen, count, binary, seed)
    counts = {"n_wires": shape.n_wires, "n_public": N_PUBLIC, "n_entries": shape.n_entries}
    need = shape.system_bytes + key_bytes(chosen, n_constraints=count, **counts)
    require_memory(need, f"{count} constraints with their witness and key")
    with all_or_none((zkey, wtns, r1cs) if r1cs is not None else (zkey, wtns)) as staged:
        generator = _generator(backend, chosen)
        fast = generator if isinstance(generator, DenseWires) else None
        system, words = synthesize(shape, fast)
        write_wtns(staged[wtns], chosen, words)
        if r1cs is not None:
            write_r1cs(staged[r1cs], system)
        _write_key(staged[zkey], system, seed, generator)
    _tell_key("synth", {"zkey": zkey, "wtns": wtns, "r1cs": r1cs}, system, as_json)


def _generator(backend: str, curve: Curve) -> PointGenerator:
    from prover.loading import gated, open_generator

    return open_generator(backend, curve, gated(backend, curve))


def _write_key(
    path: Path, system: ConstraintSystem, test_seed: str | None, generator: PointGenerator
) -> None:
    from prover.setup import draw_trapdoor, seeded_trapdoor, write_test_key

    curve = system.curve
    trapdoor = draw_trapdoor(curve) if test_seed is None else seeded_trapdoor(curve, test_seed)
    say = _say(error_console(markup=False))
    write_test_key(path, system, trapdoor, generator, say)


def _tell_key(command: str, files: dict[str, Path | None], system: ConstraintSystem, as_json: bool) -> None:
    warning = "its maker can forge proofs"
    made_for = f"{system.n_constraints} constraints on {system.curve.name}"
    if not as_json:
        click.echo(f"{files['zkey']}: test key for {made_for}; {warning}")
        return
    facts = {
        "curve": system.curve.name,
        "constraints": system.n_constraints,
        "wires": system.n_wires,
        "public_signals": system.n_public,
        "warning": f"a test key: {warning}",
    }
    paths = {name: None if path is None else str(path) for name, path in files.items()}
    _tell(command, paths | facts)
