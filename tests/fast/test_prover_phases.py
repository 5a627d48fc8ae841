"""The phases of a proof have the same names on every backend, so that their times can be compared."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BACKENDS = Path(__file__).parents[2] / "prover" / "backends"


def texts_by_method(stem: str) -> dict[str, set[str]]:
    """Method -> what its `with` statements name, a variable part as ``{}``."""
    tree = ast.parse((BACKENDS / f"{stem}.py").read_text())
    return {
        method.name: {
            _text(item.context_expr.args[0])
            for node in ast.walk(method)
            if isinstance(node, ast.With)
            for item in node.items
            if isinstance(item.context_expr, ast.Call) and item.context_expr.args
        }
        for method in ast.walk(tree)
        if isinstance(method, ast.FunctionDef)
    }


def _text(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)


@pytest.mark.parametrize("operation", ["sparse_products", "multiply", "to_coset", "quotient"])
def test_an_operation_has_one_name(operation: str) -> None:
    (name,) = texts_by_method("host")[operation]
    assert name in texts_by_method("cuda")[operation]
    assert texts_by_method("reference")[operation] <= {name}


@pytest.mark.parametrize("stem", ["host", "reference", "cuda_queries", "cuda_streamed"])
def test_msms_are_called_after_their_queries(stem: str) -> None:
    assert any("msm {}" in texts for texts in texts_by_method(stem).values())
