"""When axes are logarithmic, and where their ticks are."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from budgetbandits.figures import axes

PAPER = [100, 200, 500, 1_000, 2_000, 5_000, *range(10_000, 50_001, 5_000)]


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ([100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000], True),
        ([1e4, 1e5, 1e6, 1e7], True),
        ([500, 2_000, 8_000], True),
        (PAPER, False),  # nine of its fifteen budgets go up by the same sum
        ([1_000, 2_000, 3_000, 4_000], False),
        ([100, 10_000], False),
        ([100], False),
    ],
)
def test_geometric_budgets_are_told_from_others(budgets, expected):
    assert axes.geometric(budgets) is expected
    assert axes.geometric(budgets[::-1]) is expected


def test_one_column_tenfold_apart_is_enough_and_what_is_not_positive_forbids_it():
    close, wide = np.array([1.0, 9.9]), np.array([2.0, 20.0])
    assert not axes.apart([close, close])
    assert axes.apart([close, wide])
    assert not axes.apart([wide, np.array([-1.0, 5.0])])
    assert axes.apart([np.array([np.nan, 2.0, 20.0])])
    assert not axes.apart([])


@pytest.mark.parametrize("high", [3.0, 40.0, 900.0, 5e4, 2e7, 1e13])
def test_round_numbers_are_few_rising_and_inside(high):
    for most in (3, 4, 6):
        numbers = axes.round_numbers(0.7, high, most)
        assert 1 <= len(numbers) <= most
        assert numbers == sorted(numbers)
        assert 0.7 <= numbers[0] <= numbers[-1] <= high


def test_few_budgets_are_the_ticks_themselves():
    for budgets, ticks in (([100, 300, 1_000, 3_000], [100, 300, 1_000, 3_000]), (range(100, 900, 100), None)):
        drawn = Figure().subplots()
        axes.budget_axis(drawn, [float(budget) for budget in budgets], ticks_max=5)
        if ticks is not None:
            assert drawn.xaxis.get_major_locator()().tolist() == ticks
        else:
            assert len(drawn.xaxis.get_major_locator()()) <= 8


def test_negative_numbers_have_a_minus_sign():
    assert axes.on_axis(-2_500.0) == "−2.5K"
    assert axes.on_axis(0.0) == "0"
