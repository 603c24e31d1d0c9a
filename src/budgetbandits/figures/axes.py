"""Axes: when they are logarithmic, where their ticks are, how their numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from budgetbandits.formatting.numbers import short
from budgetbandits.numerics.arrays import AnyArray

APART_FACTOR = 10.0  # ratio of the largest to the smallest number of a column from which the axis is logarithmic


def geometric(values: Sequence[float]) -> bool:
    """Whether these numbers lie more evenly on a logarithmic axis: whether their largest step is a smaller part of it.

    >>> geometric([100, 1_000, 10_000]), geometric([100, 200, 300]), geometric([100, 10_000])
    (True, False, False)
    """
    points = np.unique(np.asarray(values, dtype=float))
    if len(points) < 3 or points[0] <= 0.0:
        return False
    return bool(_largest_step(np.log(points)) < _largest_step(points) * (1.0 - 1e-9))


def _largest_step(points: AnyArray) -> float:
    return float(np.diff(points).max() / (points[-1] - points[0]))


def apart(columns: Iterable[AnyArray]) -> bool:
    """Whether the numbers of some column differ by a factor of ten or more, and all are positive.

    A column holds what the policies have at one budget: on a straight axis the lower ones would be one line.

    >>> apart([np.array([1.0, 5.0]), np.array([2.0, 30.0])]), apart([np.array([1.0, 5.0])])
    (True, False)
    """
    seen = [np.asarray(column, dtype=float) for column in columns]
    seen = [column[np.isfinite(column)] for column in seen]
    seen = [column for column in seen if column.size]
    if not seen or min(column.min() for column in seen) <= 0.0:
        return False
    return any(column.max() >= APART_FACTOR * column.min() for column in seen)


def round_numbers(low: float, high: float, ticks_max: int = 6) -> list[float]:
    """The round numbers 1, 2, 5, 10, ... from low to high; fewer of them where they are more than ``ticks_max``.

    >>> round_numbers(90, 1_200), round_numbers(1, 1e6, ticks_max=4)
    ([100.0, 200.0, 500.0, 1000.0], [1.0, 100.0, 10000.0, 1000000.0])
    """
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits, step in [((1, 2, 5), 1), ((1, 3), 1), *(((1,), step) for step in range(1, len(tens) + 1))]:
        chosen = [ten for ten in tens if ten % step == 0]
        numbers = [number for ten in chosen for digit in digits if low <= (number := digit * 10.0**ten) <= high]
        if len(numbers) <= ticks_max:
            return numbers
    return []


def logarithmic(axis: Axis, low: float, high: float, ticks_max: int = 5) -> None:
    """Make an axis logarithmic from low to high, with round numbers."""
    ticks = round_numbers(low, high, ticks_max)
    axis.set_major_locator(FixedLocator(ticks if len(ticks) > 1 else [low, high]))
    _plain(axis)


def straight(axis: Axis, ticks_max: int = 4) -> None:
    """Put a few round numbers on a linear axis."""
    axis.set_major_locator(MaxNLocator(nbins=ticks_max, steps=[1, 2, 2.5, 5, 10]))
    _plain(axis)


def _plain(axis: Axis) -> None:
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(on_axis))


def on_axis(value: float, _: int = 0) -> str:
    """A number as text, with the arguments of a Matplotlib formatter."""
    return short(value) if value >= 0.0 else f"−{short(-value)}"


def budget_axis(axes: Axes, budgets: Sequence[float], ticks_max: int) -> None:
    """Set up the axis of budgets: logarithmic where they are `geometric`, else linear from 0."""
    low, high = min(budgets), max(budgets)
    if geometric(budgets):
        side = (high / low) ** 0.04
        axes.set_xscale("log")
        axes.set_xlim(low / side, high * side)
        logarithmic(axes.xaxis, low / side, high * side, ticks_max)
        if len(budgets) <= ticks_max:
            axes.xaxis.set_major_locator(FixedLocator(list(budgets)))
    else:
        axes.set_xlim(0.0, high * 1.03)
        straight(axes.xaxis, ticks_max)


def value_axis(axes: Axes, values: AnyArray, log: bool, ticks_max: int = 5) -> None:
    """Set up the axis of regret for these values: logarithmic, or linear from 0."""
    seen = values[np.isfinite(values)]
    if log:
        seen = seen[seen > 0.0]
        low, high = float(seen.min()) / 1.25, float(seen.max()) * 1.25
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        logarithmic(axes.yaxis, low, high, ticks_max)
    else:
        low, high = min(0.0, float(seen.min())), float(seen.max())
        axes.set_ylim(low * 1.06, high * 1.06 if high > low else low + 1.0)
        straight(axes.yaxis, ticks_max - 1)


def limits(values: Any) -> tuple[float, float]:
    """The smallest and largest finite number."""
    seen = np.asarray(values, dtype=float)
    seen = seen[np.isfinite(seen)]
    return float(seen.min()), float(seen.max())
