"""On a machine with a GPU, does what a person would, and keeps what was seen.

    python benchmarks/device.py [--out FOLDER] [--only STAGE,...]

Stages: facts, build, verify, gate, device (the tests), circuits (proofs of the test data and of synthetic
circuits, for other verifiers), sanitize; and, by `freshproof bench`, bench (proofs of small and middle
circuits), large, cold, ntt, msm, largest, or all of these: tables. No network is needed. Each stage's output
goes to OUT/STAGE.txt; OUT/summary.json holds times and reports, OUT/tables.md what was timed beside goals,
peers and floors, OUT/proofs.tar.gz the proofs with their keys. Exit code 1 if a stage failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CURVES = {"bn254": "bn128", "bls12_381": "bls12381"}
LOG_DOMAINS = (14, 16, 18)
STAGE_SECONDS = 420
TIMED = {
    "bench": ("pow5-*-cuda", "synthetic-14-*", "synthetic-16-*", "synthetic-18-*"),
    "large": ("synthetic-20-bls12_381", "synthetic-20-bls12_381-bits", "synthetic-22-*"),
    "cold": ("synthetic-20-bls12_381-cold",),
    "ntt": ("ntt-*",),
    "msm": ("msm-*",),
    "largest": ("synthetic-24-*",),
}
"""Stage to workloads. Circuits take longer to make than to prove: one of 2^24 a minute, and 13 GB of disk."""
PYTHON = sys.executable


class Visit:
    """The machine being visited: runs commands, keeps their output."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.summary: dict[str, Any] = {"stages": {}}

    def run(self, stage: str, *command: str, seconds: int = STAGE_SECONDS) -> bool:
        """One command of a stage; its output is appended to the stage's file and shown."""
        start = time.monotonic()
        log = self.out / f"{stage}.txt"
        with log.open("a") as file:
            print(f"$ {' '.join(command)}", file=file, flush=True)
            try:
                code = subprocess.run(
                    command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=seconds
                ).returncode
            except (OSError, subprocess.TimeoutExpired) as error:
                print(error, file=file)
                code = -1
        took = time.monotonic() - start
        steps = self.summary["stages"].setdefault(stage, [])
        steps.append({"command": " ".join(command), "exit_code": code, "seconds": round(took, 2)})
        print(
            f"{stage:9} {'ok' if code == 0 else f'FAILED ({code})':12} {took:7.1f} s  {' '.join(command)}",
            flush=True,
        )
        return code == 0

    def capture(self, stage: str, *command: str, seconds: int = STAGE_SECONDS) -> dict[str, Any]:
        """As `run`, for a command that prints one JSON document; empty when it prints none."""
        target = self.out / f"{stage}-{len(self.summary['stages'].get(stage, []))}.json"
        self.run(stage, "sh", "-c", f'{shlex.join(command)} > "{target}"', seconds=seconds)
        try:
            return dict(json.loads(target.read_text()))
        except ValueError:
            return {}
        finally:
            target.unlink()


def facts(visit: Visit) -> None:
    """Which machine this is."""
    visit.run("facts", "nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC,PERFORMANCE", seconds=60)
    visit.run("facts", "nvidia-smi", seconds=60)
    visit.run("facts", "nvcc", "--version", seconds=60)
    visit.run("facts", PYTHON, "-m", "prover", "--version", seconds=60)


def nox_session(name: str) -> Callable[[Visit], None]:
    """A session of the noxfile, in this Python."""

    def session(visit: Visit) -> None:
        visit.run(name, PYTHON, "-m", "nox", "--no-venv", "-s", name)

    return session


def gate(visit: Visit) -> None:
    """The gate's answer for every target."""
    visit.run("gate", PYTHON, "-m", "orchestrator", "gate")


def timed(stage: str) -> Callable[[Visit], None]:
    """Workloads under the gate."""

    def run(visit: Visit) -> None:
        command = (PYTHON, "-m", "orchestrator", "bench", *TIMED[stage], "--json")
        report = visit.capture(stage, *command)
        if report:
            visit.summary.setdefault("reports", []).append(report)

    return run


def cold(visit: Visit) -> None:
    """From the key file to the first proof: in one process again and again, and in a process of its own."""
    timed("cold")(visit)
    made = ROOT / "build" / "circuits" / "bls12_381-20-0"
    folder = visit.out / "proofs"
    folder.mkdir(exist_ok=True)
    files = (made.with_suffix(".zkey"), made.with_suffix(".wtns"))
    visit.summary["cold proof"] = _prove(visit, folder, "bls12_381-synthetic20", *files)


def circuits(visit: Visit) -> None:
    """Proofs by the GPU, with the verification keys that other programs need to check them."""
    folder = visit.out / "proofs"
    folder.mkdir(exist_ok=True)
    proofs = []
    for curve, file_name in CURVES.items():
        for name in ("mul", "pow5"):
            data = ROOT / "tests" / "data" / file_name / name
            proofs.append(
                _prove(visit, folder, f"{curve}-{name}", data.with_suffix(".zkey"), data.with_suffix(".wtns"))
            )
        for log_domain in LOG_DOMAINS:
            zkey, wtns = _synthetic(visit, curve, log_domain)
            if zkey.exists():
                proofs.append(_prove(visit, folder, f"{curve}-synthetic{log_domain}", zkey, wtns))
    visit.summary["proofs"] = proofs
    with tarfile.open(visit.out / "proofs.tar.gz", "w:gz") as archive:
        archive.add(folder, "proofs")


def _synthetic(visit: Visit, curve: str, log_domain: int) -> tuple[Path, Path]:
    """The files of the workload synthetic-LOG_DOMAIN-CURVE, made now if its benchmark did not run."""
    made = ROOT / "build" / "circuits" / f"{curve}-{log_domain}-0"
    zkey, wtns = made.with_suffix(".zkey"), made.with_suffix(".wtns")
    if not zkey.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        shape = ("--curve", curve, "--log-domain", str(log_domain), "--seed", "bench")
        files = ("--zkey", str(zkey), "--wtns", str(wtns))
        visit.run("circuits", PYTHON, "-m", "prover", "synth", *shape, *files, "--backend", "cuda")
    return zkey, wtns


def _prove(visit: Visit, folder: Path, name: str, zkey: Path, wtns: Path) -> dict[str, Any]:
    from prover.formats.snarkjs import verification_key_json
    from prover.formats.zkey import read_zkey

    files = {part: folder / f"{name}-{part}.json" for part in ("proof", "public", "vk")}
    files["vk"].write_text(verification_key_json(read_zkey(zkey).verification_key()))
    arguments = ["--zkey", zkey, "--wtns", wtns, "--proof", files["proof"], "--public", files["public"]]
    command = (PYTHON, "-m", "prover", "prove", *map(str, arguments), "--backend", "cuda", "--json")
    return {"name": name, **visit.capture("circuits", *command)}


def sanitize(visit: Visit) -> None:
    """compute-sanitizer over small sizes: bad memory accesses, then races in shared memory."""
    small = "three_vectors or test_products or test_multiply or off_the_curve or (oracles and mul)"
    small += " or (any_length and 33)"
    # Modules are asked for kernels that they may not have: an API error, and no fault.
    options = ("--report-api-errors", "no", "--error-exitcode", "9")
    for tool in ("memcheck", "racecheck"):
        tests = (PYTHON, "-m", "pytest", "-m", "gpu", "-k", small, "-x", "tests/device")
        visit.run("sanitize", "compute-sanitizer", "--tool", tool, *options, *tests)


STAGES: dict[str, Callable[[Visit], None]] = {
    "facts": facts,
    "build": nox_session("build"),
    "verify": nox_session("verify"),
    "gate": gate,
    **{stage: timed(stage) for stage in TIMED},
    "cold": cold,
    "device": nox_session("device"),
    "circuits": circuits,
    "sanitize": sanitize,
}


def phase_table(summary: dict[str, Any]) -> str:
    """A line a proof: total and spans, in ms."""
    lines = []
    for proof in summary.get("proofs", []):
        if "spans" not in proof:
            continue
        spans = "  ".join(f"{s['name']} {(s['t1_ns'] - s['t0_ns']) / 1e6:.2f}" for s in proof["spans"])
        verdict = proof["check"]["result"]
        lines.append(f"{proof['name']:20} {verdict}  total {proof['total_ns'] / 1e6:8.2f} ms   {spans}")
    return "\n".join(lines)


def measured(summary: dict[str, Any]) -> str:
    """What the reports say, beside goals, peers and floors."""
    from benchmarks.tables import all_tables, runs_of

    return all_tables(runs_of(summary.get("reports", [])))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "build/device")))
    parser.add_argument("--only", help=f"stages, of {','.join(STAGES)}")
    options = parser.parse_args()
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    asked = options.only.split(",") if options.only else list(STAGES)
    names = [name for one in asked for name in (TIMED if one == "tables" else [one])]
    if unknown := [name for name in names if name not in STAGES]:
        parser.error(f"no stage {unknown[0]!r}; stages: {', '.join(STAGES)}, tables")
    sys.path.insert(0, str(ROOT))
    visit = Visit(out)
    for name in names:
        STAGES[name](visit)
        (out / "summary.json").write_text(json.dumps(visit.summary, indent=1))
    print(phase_table(visit.summary))
    tables = measured(visit.summary)
    (out / "tables.md").write_text(tables)
    print(tables)
    steps = [step for stage in visit.summary["stages"].values() for step in stage]
    failed = [step for step in steps if step["exit_code"] != 0]
    print(f"{len(steps) - len(failed)} steps ok, {len(failed)} failed; everything is in {out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
