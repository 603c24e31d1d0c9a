"""The manual says what the code has: a policy, law, family, command or error without a word on it fails here."""

import re
from pathlib import Path

import pytest

from budgetbandits import POLICIES, errors, theory
from budgetbandits.laws import JOINT_LAWS, LAWS
from budgetbandits.problem import FAMILIES

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_described(name):
    assert f"`{name}`" in (ROOT / "docs/policies.md").read_text()
    assert f"`{name}`" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", [*FAMILIES, *LAWS])
def test_every_family_and_law_is_described(name):
    assert f"`{name}`" in (ROOT / "docs/problems.md").read_text()


@pytest.mark.parametrize("name", JOINT_LAWS)
def test_every_joint_law_is_described(name):
    assert f'law = "{name}"' in (ROOT / "docs/problems.md").read_text()


def test_every_dependency_has_its_reason():
    project = (ROOT / "pyproject.toml").read_text()
    table = (ROOT / "docs/dependencies.md").read_text()
    for name in re.findall(r'"([a-z-]+)(?:\[[a-z,]+\])?>=', project):
        if name not in ("hatchling",) and not name.endswith("-stubs"):
            assert name in table, name


def test_every_shipped_experiment_is_described():
    page = (ROOT / "docs/experiments.md").read_text()
    for path in (ROOT / "experiments").glob("*.toml"):
        assert f"`{path.stem}`" in page, path.stem


def test_every_theory_function_stands_beside_its_formula():
    page = (ROOT / "docs/theory.md").read_text()
    for name in theory.__all__:
        if name[0].islower():
            assert f"`{name}`" in page, name


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_every_error_explains_itself():
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.BudgetBanditsError):
            assert kind.__doc__
