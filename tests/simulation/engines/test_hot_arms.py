"""Sketches of hot arms: their margins always hold, and sketch and rest together have the law of the ratio.

Seeds are fixed; every statistical test alarms falsely at most once in a million times.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic
from scipy import stats

from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.thompson import hot_arms
from quadrature import below

pytestmark = pytest.mark.deep


@intrinsic
def pointer_to(typing_context, array):
    """A pointer to an array's data, indexed flat and without bounds."""

    def code(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    return types.CPointer(array.dtype)(array), code


ALARM = 1e-6

POSTERIORS = {
    "smallest": [400, 300, 420, 310],
    "rare_failures": [12_000, 150, 1_800, 10_350],
    "cheap": [60_000, 40_000, 1_200, 98_800],
    "large": [3_000_000, 1_000_000, 1_500_000, 2_500_000],
}


@njit
def four(counts):
    return float(counts[0]), float(counts[1]), float(counts[2]), float(counts[3])


@njit
def sketches(stream, table, counts, later, size):
    """Constants taken at `counts`, then brought up to `later`, as after pulls too few for new spreads."""
    constants = pointer_to(table)
    hot_arms.keep_constants(constants, 0, four(counts))
    hot_arms.keep_constants(constants, 0, four(later))
    out = np.empty((size, 3))
    for place in range(size):
        ratio, margin, z = hot_arms.sketch_hot(stream, constants, 0)
        out[place, 0] = ratio
        out[place, 1] = margin
        out[place, 2] = hot_arms.resolve_hot(stream, constants, 0, z) if margin > 0.0 else ratio
    return out


@njit
def across(stream, table, counts, size, inside):
    constants = pointer_to(table)
    hot_arms.keep_constants(constants, 0, four(counts))
    out = np.empty((size, 4))
    for place in range(size):
        out[place] = hot_arms.draw_across(stream, constants, 0, inside)
    return out


def sketch(counts: list[int], later: list[int] | None = None, size: int = 400_000) -> np.ndarray:
    stream = new_stream(np.arange(1, 5, dtype=np.uint64))
    table = np.zeros(hot_arms.COLUMNS)
    first = np.array(counts, dtype=np.int64)
    drawn = sketches(stream.ctypes.data, table, first, np.array(later or counts, dtype=np.int64), size)
    assert table[hot_arms.STEEPNESS] > 0.0, "this posterior is not sketched, so the test shows nothing"
    return drawn


@pytest.mark.parametrize("name", POSTERIORS)
def test_margins_hold(name):
    drawn = sketch(POSTERIORS[name])
    ratio, margin, resolved = drawn[drawn[:, 1] > 0.0].T
    assert ratio.size > 0.9 * len(drawn)
    used = np.abs(resolved - ratio) / (margin * ratio)
    assert used.max() <= 1.0
    assert used.max() > 0.1  # and they are not idle: the rest of the draw uses a good part of them


@pytest.mark.parametrize("lag", [0.0, 0.0009])
@pytest.mark.parametrize("name", POSTERIORS)
def test_sketch_and_rest_have_the_law_of_the_ratio(name, lag):
    later = [round(count * (1.0 + lag)) for count in POSTERIORS[name]]
    resolved = np.sort(sketch(POSTERIORS[name], later)[:, 2])
    points = np.linspace(0, resolved.size - 1, 2_000).astype(int)
    expected = below(np.array(later), resolved[points], False)
    # Kolmogorov's statistic on a subset of the points is at most the full one.
    distance = np.abs(points / resolved.size - expected).max() * np.sqrt(resolved.size)
    assert distance < stats.kstwobign.isf(ALARM)


@pytest.mark.parametrize("inside", [True, False])
def test_the_rest_is_normal_across_the_direction(inside):
    table = np.zeros(hot_arms.COLUMNS)
    stream = new_stream(np.arange(5, 9, dtype=np.uint64))
    drawn = across(stream.ctypes.data, table, np.array(POSTERIORS["cheap"]), 200_000, inside)
    direction = table[hot_arms.DIRECTION : hot_arms.DIRECTION + 4]
    assert np.allclose(direction @ direction, 1.0)
    assert np.abs(drawn @ direction).max() < 1e-9
    squares = (drawn**2).sum(axis=1)
    assert ((squares <= hot_arms.BALL) == inside).all()
    law = stats.chi2(3)
    assert np.isclose(law.sf(hot_arms.BALL), hot_arms.OUTSIDE_CHANCE, rtol=1e-12)
    levels = law.sf(squares)
    levels = (
        (levels - hot_arms.OUTSIDE_CHANCE) / (1.0 - hot_arms.OUTSIDE_CHANCE)
        if inside
        else levels / hot_arms.OUTSIDE_CHANCE
    )
    assert stats.kstest(levels, "uniform").pvalue > ALARM / 2
    # no direction across is preferred: the second moments are those of a projection
    projection = np.eye(4) - np.outer(direction, direction)
    moments = (drawn.T @ drawn) / squares.sum() * 3.0
    assert np.abs(moments - projection).max() < 0.02


def test_few_pulls_are_not_sketched():
    table = np.zeros(hot_arms.COLUMNS)

    @njit
    def keep(table, counts):
        hot_arms.keep_constants(pointer_to(table), 0, four(counts))

    for counts in ([40, 900, 900, 900], [101, 101, 101, 101]):
        keep(table, np.array(counts))
        assert table[hot_arms.STEEPNESS] == 0.0
