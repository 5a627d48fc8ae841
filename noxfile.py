"""What one does with this project: `nox -l` lists it, and `nox` alone runs what this machine can.

One virtual environment, made by the session `environment`, serves all others. With `--no-venv` they run in
the environment that nox itself runs in, as on a GPU machine that has no network.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import nox

if sys.version_info < (3, 11):  # noqa: UP036 (nox runs on older ones too)
    raise SystemExit("Freshproof needs Python 3.11 or newer; this is " + sys.version.split()[0])

nox.needs_version = ">=2026.4"  # sessions that require others

ROOT = Path(__file__).parent
LOCK = ROOT / ".ci" / "requirements.lock"
MISSING = 8  # exit code: something needed is not there


def has_gpu() -> bool:
    """Whether the driver's own tool lists a GPU."""
    tool = shutil.which("nvidia-smi")
    return tool is not None and subprocess.run([tool, "-L"], capture_output=True).returncode == 0


GPU = has_gpu()
nox.options.sessions = ["build", "verify", "bench", "tests", "lint", "types", *(["device"] if GPU else [])]

_interpreter: list[str] = []


@nox.session(reuse_venv=True)
def environment(session: nox.Session) -> None:
    """Set up the Python environment of all other sessions (they call it themselves)."""
    if session.venv_backend == "none":
        _interpreter[:] = [sys.executable]
        return
    folder = Path(session.virtualenv.location).absolute()
    _interpreter[:] = [str(folder / "bin" / "python")]
    marker = folder / "installed"
    asked = LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + bytes([GPU])
    wanted = hashlib.sha256(asked).hexdigest()
    if marker.exists() and marker.read_text() == wanted:
        return
    session.install("--require-hashes", "--only-binary", ":all:", "-r", str(LOCK))
    # CuPy's version depends on the machine's CUDA, so the lock leaves it out.
    session.install("--no-build-isolation", "-e", ".[gpu]" if GPU else ".")
    marker.write_text(wanted)


@nox.session(venv_backend="none", requires=["environment"])
def build(session: nox.Session) -> None:
    """Build every target that is not fresh, and record what was built from what."""
    freshproof(session, "build")


@nox.session(venv_backend="none", requires=["environment"])
def verify(session: nox.Session) -> None:
    """Check every artifact against its manifest, its sources and its own contents."""
    freshproof(session, "verify")


@nox.session(venv_backend="none", requires=["environment"])
def bench(session: nox.Session) -> None:
    """Time proofs with verified code: on the GPU if there is one, else on the host."""
    freshproof(session, "bench")


@nox.session(venv_backend="none", requires=["environment"])
def watch(session: nox.Session) -> None:
    """Rebuild and verify what a saved source affects, until interrupted."""
    run("-m", "orchestrator", "watch", "--verify", *session.posargs)


@nox.session(venv_backend="none", requires=["environment"])
def tests(session: nox.Session) -> None:
    """Run every test that needs no GPU, and say how many do."""
    run("-m", "pytest", *session.posargs)


@nox.session(venv_backend="none", requires=["environment"])
def device(session: nox.Session) -> None:
    """Run the tests that need a GPU; without one this fails."""
    if not GPU:
        stop("no GPU: nvidia-smi is missing or lists none; these tests need one", MISSING)
    run("-m", "pytest", "-m", "gpu", *session.posargs)


@nox.session(venv_backend="none", requires=["environment"])
def story(session: nox.Session) -> None:
    """Tell the story of a stale kernel in a Rust crate, by running it (needs cargo and nvcc)."""
    run("benchmarks/story.py", *session.posargs)


@nox.session(venv_backend="none", requires=["environment"])
def lint(session: nox.Session) -> None:
    """Check style and common mistakes (ruff)."""
    run("-m", "ruff", "check", *session.posargs)


@nox.session(venv_backend="none", requires=["environment"])
def types(session: nox.Session) -> None:
    """Check types (mypy, strict)."""
    run("-m", "mypy", *session.posargs)


def freshproof(session: nox.Session, verb: str) -> None:
    """Run one verb of the tool, with what follows `--` on nox's command line."""
    run("-m", "orchestrator", verb, *session.posargs)


def run(*arguments: str) -> None:
    """Run Python in the shared environment; a failure ends nox with the same exit code, which says why."""
    if not _interpreter:
        stop("the session `environment` did not run; nox -j and --no-dependencies are not supported", 2)
    with subprocess.Popen([*_interpreter, *arguments], cwd=ROOT) as process:
        code = _wait(process)
    if code:
        stop(f"{' '.join(arguments[1:])} ended with exit code {code}", code if code > 0 else 1)


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """The terminal sends Ctrl-C to both; how long the other takes to end cleanly is its own affair."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def stop(message: str, code: int) -> NoReturn:
    """End nox itself: a session that merely fails would always give exit code 1."""
    print(f"nox > {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)
