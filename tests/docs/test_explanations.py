"""The explanations stay true to the code: what they include, name and are referred to by is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ENGINES = ROOT / "src/budgetbandits/simulation/engines"
INCLUDE = re.compile(r"^:::\{literalinclude\} (\S+)\n:pyobject: (\S+)$", re.MULTILINE)
TITLE = re.compile(r"^(?:#+ |:+\{prf:\w+\} |\*\*)([^*\n]+?)(?:\.?\*\*|$)", re.MULTILINE)
REFERENCE = re.compile(r"docs/explanation/([\w/]+\.md), \"([^\"]+)\"")


def included():
    return [(page, *found) for page in PAGES for found in INCLUDE.findall(page.read_text())]


def definitions(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{prefix}{node.name}.")


def test_algorithm_1_stands_next_to_our_code():
    assert {name for page, _, name in included() if page.name == "problem.md"} == {
        "score", "SamplingPolicy.choose", "learn",
    }  # fmt: skip


@pytest.mark.parametrize(("page", "file", "name"), included())
def test_included_code_is_there(page, file, name):
    assert name in definitions(ast.parse((page.parent / file).read_text()))


def references():
    """What docstrings say of a section, a proposition or an algorithm, by its title."""
    found = set()
    for folder in ("src", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            found.update(REFERENCE.findall(path.read_text()))
    return sorted(found)


def test_sections_that_the_code_refers_to_are_there():
    assert len(references()) >= 6
    for page, title in references():
        assert title in TITLE.findall((ROOT / "docs/explanation" / page).read_text()), (page, title)
    for folder in ("src", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__):
                assert not re.search(r"docs/\S+\.md\S*, section \d", path.read_text()), path


def test_files_and_tests_that_the_page_on_the_engines_names_are_there():
    page = (ROOT / "docs/explanation/engine.md").read_text()
    tests = {path.name: path.read_text() for path in (ROOT / "tests/simulation/engines").glob("*.py")}
    files = set(re.findall(r"`((?:thompson|index|sampling|epsilon_first|paced)/(?:\w+\.py)?)`", page))
    assert len(files) >= 10
    assert [name for name in sorted(files) if not (ENGINES / name).exists()] == []
    named = set(re.findall(r"`(test_\w+\.py)`", page))
    assert named <= set(tests)
    functions = set(re.findall(r"`(test_\w+)(?:\[\w+\])?`", page))
    assert len(functions) >= 8
    assert [name for name in sorted(functions) if not any(f"def {name}(" in text for text in tests.values())] == []
    cases = set(re.findall(r"`(?:test_frozen_round)?\[(\w+)\]`", page))
    assert len(cases) >= 10
    assert [name for name in sorted(cases) if f'"{name}": (' not in tests["test_thompson.py"]] == []


def test_the_engines_are_as_fast_as_the_readme_says():
    readme, page = (" ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/explanation/engine.md"))
    assert re.search(r"[\d,]+ to [\d,]+ times as fast", readme).group() in page
