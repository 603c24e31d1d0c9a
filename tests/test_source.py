"""Properties of the source itself: its names, its words, its public surface."""

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import budgetbandits
import words
from budgetbandits import errors

SOURCE = Path(budgetbandits.__file__).parent


@cache
def trees():
    return {path.relative_to(SOURCE): words.tree(path) for path in SOURCE.rglob("*.py")}


# --- names -------------------------------------------------------------------------------------------------------


def class_names(parsed):
    return Counter(node.name for tree in parsed.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_no_class_name_is_used_twice():
    assert sorted(name for name, count in class_names(trees()).items() if count > 1) == []


def test_every_package_says_what_it_is_for():
    packages = [path for path in trees() if path.name == "__init__.py"]
    assert [str(path) for path in packages if not ast.get_docstring(trees()[path])] == []


def test_the_loose_modules_at_the_top_are_few():
    loose = {path.stem for path in SOURCE.glob("*.py")}
    assert loose == {"__init__", "__main__", "answers", "errors", "terms", "validation", "registry", "fingerprint",
                     "plugins"}  # fmt: skip


# --- words -------------------------------------------------------------------------------------------------------

BANNED = re.compile(
    r"\b(anew|dear|dearer|dearest|beside|whoever|somebody|told|gone|brings|so many|mend)\b", re.IGNORECASE
)
TEXTS = {".py", ".md", ".toml", ".html", ".js", ".css"}


def texts(place):
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return [path for path in files if path.suffix in TEXTS]


def banned_words(text):
    return [f"{number}: {match.group()}" for number, line in enumerate(text.splitlines(), 1)
            if (match := BANNED.search(line))]  # fmt: skip


@pytest.mark.parametrize("place", ["src", "docs", "examples", "benchmarks", "README.md", "CONTRIBUTING.md"])
def test_words_are_plain(place):
    lines_by_path = {str(path): banned_words(path.read_text("utf-8")) for path in texts(SOURCE.parents[1] / place)}
    assert lines_by_path
    assert {path: lines for path, lines in lines_by_path.items() if lines} == {}


def test_a_banned_word_is_found_as_a_word_only():
    assert banned_words("it stands\nBeside the others, so many") == ["2: Beside"]
    assert banned_words("besides, untold, amended, told_at, dearth") == []


OPEN = {
    *("tests/allocation", "tests/benchmarks", "tests/browser", "tests/cli"),
    *("tests/client", "tests/clusters", "tests/deploy", "tests/dist", "tests/docs", "tests/examples"),
    *("tests/experiments", "tests/helpers", "tests/off_policy", "tests/policies", "tests/service", "tests/simulation"),
    "tests/typescript",
}
"""Rooms that do not keep the rules yet; ``python tests/helpers/words.py`` counts what is left."""


@pytest.mark.parametrize("room", sorted(words.rooms().keys() - OPEN))
def test_docstrings_and_names_keep_the_rules_for_words(room):
    assert words.findings(room) == []


# --- assertions --------------------------------------------------------------------------------------------------


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
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and (node.msg is not None or not narrows(node.test))
    ]
    assert checks == []


# --- the public surface ------------------------------------------------------------------------------------------

PUBLIC = {
    "budgetbandits": (
        "Allocation Ask Problem Arm RequestStream family random_problems simulate simulate_many replay Outcome "
        "parse_policy POLICIES BudgetedThompson PacedThompson Thompson best_arms best_ratio optimum Optimum"
    ),
    "budgetbandits.problems": (
        "Law OutcomeLaw Bernoulli Beta Fixed Lattice Independent JointTable Copula StreamPart LinearStream LinearArm "
        "NormalFeature BernoulliFeature"
    ),
    "budgetbandits.experiments": "run Experiment Results",
}


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_are_these_and_each_is_there(package):
    module = import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


def test_importing_the_package_and_its_public_names_imports_no_extra():
    """A user who embeds a policy installs NumPy and SciPy alone."""
    extras = sorted({name for packages in errors.EXTRAS.values() for name in packages})
    code = (
        f"import sys, budgetbandits; [getattr(budgetbandits, name) for name in budgetbandits.__all__]; "
        f"print(sorted(set({extras}) & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_tree_of_errors_is_drawn_as_it_is():
    """Each line of the drawing is a class under its parent, with the exception of Python that it also is."""
    drawn, parents = {}, {0: "BudgetBanditsError"}
    for line in errors.__doc__.splitlines():
        if match := re.match(r"((?:│   |    )*)[├└]── (\w+)(?: \((\w+)\))?$", line):
            depth = len(match[1]) // 4 + 1
            drawn[match[2]] = (parents[depth - 1], match[3])
            parents[depth] = match[2]
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    defined = {kind.__name__: (kind.__bases__[0].__name__, kind.__bases__[1].__name__ if kind.__bases__[1:] else None)
            for kind in kinds if kind is not errors.BudgetBanditsError}  # fmt: skip
    assert drawn == defined
