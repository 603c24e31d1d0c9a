"""What holds for the source itself."""

import ast
from pathlib import Path

import budgetbandits

SOURCE = Path(budgetbandits.__file__).parent


def narrows(test):
    """Whether an assertion says of which type something is, for mypy, and nothing else."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def test_assertions_narrow_types_and_check_nothing():
    """``python -O`` leaves them out, and with them whatever they check."""
    checks = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if "assert " in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assert) and (node.msg is not None or not narrows(node.test))
    ]
    assert checks == []
