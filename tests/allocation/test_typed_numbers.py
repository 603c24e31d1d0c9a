"""A typed program of a user runs, and type checkers see it."""

import runpy
import tomllib
from pathlib import Path

import pytest

from budgetbandits.errors import BudgetBanditsError

PROGRAM = Path(__file__).with_name("typed_numbers.py")
ROOT = PROGRAM.parents[2]


def test_a_typed_program_with_every_kind_of_number_runs_and_is_checked_for_its_types():
    names = runpy.run_path(str(PROGRAM))
    assert names["spend"].budget == 55.0
    assert names["spend"].spent == pytest.approx(0.37 + 0.5 + 0.25)
    with pytest.raises(BudgetBanditsError):
        names["refused"]()
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    assert str(PROGRAM.relative_to(ROOT)) in checked
