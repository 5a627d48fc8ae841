"""The rules of ARCHITECTURE.md that can be read off the sources."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors

ROOT = Path(__file__).parents[2]
ORCHESTRATOR = sorted((ROOT / "orchestrator").rglob("*.py"))
PROVER = sorted((ROOT / "prover").rglob("*.py"))
PRODUCT = ORCHESTRATOR + PROVER

PURE = {
    "canonical", "combination", "copies", "depfile", "device_link", "errors", "first_targets", "foreach",
    "freshness", "includes", "kinds", "lookup", "manifest", "model", "names", "options", "owned_flags",
    "plan", "protocol", "report", "samples", "spans", "stamp", "stats", "targets", "toml_table", "tomlline",
    "verdict_report", "verify", "workloads",
}  # fmt: skip
PURE_FOREIGN = {
    "architectures", "consulted", "events", "lists", "made", "provenance", "report", "sources", "stamps",
    "steps", "variables", "word_files", "words",
}  # fmt: skip
PURE_WATCH = {"code_change", "decide", "gathering", "mounts", "scope", "timing", "words"}
PURE_COMPARE = {"arms", "attribution_report", "factorial", "paired", "rank_sum", "records", "report"}
WORLD = {
    "asyncio", "ctypes", "fcntl", "glob", "io", "mmap", "multiprocessing", "os", "pathlib", "random",
    "select", "shutil", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time",
}  # fmt: skip


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions; not what only type checkers see."""
    tree = ast.parse(path.read_text(), str(path))
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def named(paths: list[Path]) -> list:
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


def pure_modules() -> list[Path]:
    package = ROOT / "orchestrator"
    chosen = [path for path in ORCHESTRATOR if path.parent == package and path.stem in PURE]
    chosen += [path for path in sorted((package / "foreign").glob("*.py")) if path.stem in PURE_FOREIGN]
    chosen += [path for path in sorted((package / "watch").glob("*.py")) if path.stem in PURE_WATCH]
    chosen += [path for path in sorted((package / "compare").glob("*.py")) if path.stem in PURE_COMPARE]
    return chosen + sorted((package / "objects").rglob("*.py"))


@pytest.mark.parametrize("path", named(ORCHESTRATOR))
def test_the_tool_knows_nothing_of_proofs_or_gpus_libraries(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"prover", "cupy"}


SHARED = {f"orchestrator.{name}" for name in ("errors", "loaded", "model", "protocol", "spans")}


@pytest.mark.parametrize("path", named(PROVER))
def test_the_prover_uses_of_the_tool_only_what_is_made_to_be_shared(path):
    """Values everywhere; the gate where artifacts are found; the frame of a command line in its own."""
    used = {name for name in imports(path) if name.split(".")[0] == "orchestrator"}
    more = {
        "loading": {"orchestrator.gate"},
        "cli": {"orchestrator", "orchestrator.cli", "orchestrator.cli.terminal"},
    }
    assert used <= SHARED | more.get(path.stem, set())


@pytest.mark.parametrize("path", named(PROVER))
def test_cupy_is_imported_by_the_cuda_backend_alone(path):
    if any(name.split(".")[0] == "cupy" for name in imports(path)):
        assert path.parent.name == "backends" and path.stem.startswith("cuda")


@pytest.mark.parametrize("path", named(pure_modules()))
def test_the_core_does_not_touch_the_world(path):
    assert not {name.split(".")[0] for name in imports(path)} & WORLD
    calls = {n.func.id for n in ast.walk(ast.parse(path.read_text())) if _calls_a_name(n)}
    assert not calls & {"open", "input"}


@pytest.mark.parametrize("path", named(pure_modules()))
def test_the_core_imports_no_part_of_the_shell(path):
    """Values such as `Measured` may come from a shell module for type checkers only."""
    ours = {n.split(".")[1] for n in imports(path) if n.startswith("orchestrator.") and "objects" not in n}
    foreign = {n.split(".")[2] for n in imports(path) if n.startswith("orchestrator.foreign.")}
    watch = {n.split(".")[2] for n in imports(path) if n.startswith("orchestrator.watch.")}
    compare = {n.split(".")[2] for n in imports(path) if n.startswith("orchestrator.compare.")}
    assert ours - {"compare", "foreign", "watch"} <= PURE and foreign <= PURE_FOREIGN and watch <= PURE_WATCH
    assert compare <= PURE_COMPARE


@pytest.mark.parametrize("path", named(PRODUCT))
def test_only_the_command_lines_print_or_exit(path):
    if "cli" in path.parts or path.stem == "cli" or path.name == "__main__.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("print", "exit", "quit", "sys.exit", "os._exit", "click.echo"), node.lineno
        if isinstance(node, ast.Raise) and node.exc is not None:
            assert "SystemExit" not in ast.unparse(node.exc), node.lineno


@pytest.mark.parametrize("path", named(PRODUCT))
def test_every_module_says_what_it_is_and_stays_small(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)) or not text.strip()
    assert len(text.splitlines()) <= 450


def test_every_exit_code_has_one_error():
    codes = [kind.exit_code for kind in errors.FreshproofError.__subclasses__()]
    assert sorted(codes) == list(range(1, 9))


def test_the_readme_lists_every_exit_code():
    table = set(re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert {*map(str, range(9)), "130"} <= table


def test_every_invariant_names_a_test_that_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named_tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named_tests) >= text.count("\n**"), "an invariant without its test"
    for file, test in named_tests:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


def test_the_lock_satisfies_the_project():
    """Each dependency of pyproject.toml, development ones included, is pinned, with hashes, in its range."""
    requirements = pytest.importorskip("packaging.requirements")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / ".ci" / "requirements.lock").read_text()
    pins: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", lock, re.MULTILINE):
        pins.setdefault(_canonical(name), []).append(version)
    for text in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        wanted = requirements.Requirement(text)
        versions = pins.get(_canonical(wanted.name), [])
        assert versions, f"{wanted.name} is not locked"
        assert all(wanted.specifier.contains(version) for version in versions), text
    assert lock.count("--hash=sha256:") >= len(pins)
    assert "://" not in lock
    assert sys.version_info >= (3, 11)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _calls_a_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
