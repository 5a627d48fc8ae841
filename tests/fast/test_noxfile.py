"""`nox -l` is the help page: each session says in one line what it does."""

import ast
from pathlib import Path

NOXFILE = Path(__file__).parents[2] / "noxfile.py"


def sessions() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(NOXFILE.read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f.name: f for f in functions if any("nox.session" in ast.unparse(d) for d in f.decorator_list)}


def test_the_sessions_of_the_readme_exist():
    expected = {"build", "verify", "bench", "watch", "tests", "lint", "types", "device"}
    assert expected <= set(sessions())


def test_every_session_says_in_one_line_what_it_does():
    for name, function in sessions().items():
        doc = ast.get_docstring(function)
        assert doc and "\n" not in doc, name


def test_all_sessions_share_one_environment():
    for name, function in sessions().items():
        (decorator,) = map(ast.unparse, function.decorator_list)
        assert name == "environment" or ("venv_backend='none'" in decorator and "'environment'" in decorator)
