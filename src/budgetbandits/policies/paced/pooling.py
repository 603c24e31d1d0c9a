"""The prior that a segment starts with, worth a number of outcomes of the other segments.

That number is the variance of an arm's outcomes within segments divided by that of its means between them. With nₛ
outcomes of mean mₛ in segment s, n in all and mean m, the second is found by the method of moments, since

    Σ nₛ (mₛ − m)²  is on average  (segments − 1) · within  +  (n − Σ nₛ²/n) · between.

It begins with a guess. A segment in which the other arms earn more than elsewhere is taken for one in which all do:
harder questions are harder for every model. So the mean of the others is shifted by what sets the segment apart in its
other arms, as far as such shifts have predicted rewards so far; only the rest counts as variance between segments.

But a prior is never worth more than `MAX_PRIOR_STRENGTH` outcomes 0 and 1. That outcomes vary little, or that the
segments so far are alike, says little of how far the next one is from them, and a segment that took the others' mean
for its own would never try what they have found middling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.compilation import compiled

FIRST_COUNT, FIRST_MEAN = 2.0, 0.5
"""The outcomes that everything begins with: how many they are, and their mean."""

OUTCOMES_FOR_GUESS = 20.0
"""How many outcomes weigh as much as what ``pooling`` says of how alike segments are."""

MAX_PRIOR_STRENGTH = 40.0
"""A prior is worth at most this many outcomes 0 and 1; of costs, which begin with ¼ and ¾ in their place
and so with a quarter of the variance, four times as many."""

SMALLEST_WITHIN = 1e-9
"""The smallest variance within a segment: no division by 0."""

OUTCOMES_FOR_SHIFT = 2.0
"""How many outcomes weigh as much as the guess that a segment is like the others."""

FARTHEST_SHIFT = 0.9
"""Largest shift, as a fraction of the distance to 0 or 1."""

SHIFT_EVIDENCE = 1.0
"""The weight of the guess that shifts are right, in the sum of their squares weighted by precision. A hundred outcomes
that are a tenth above the others' have that weight."""


class SegmentPrior(NamedTuple):
    """How many outcomes a segment starts with, their mean and their mean square; numbers, or arrays."""

    weight: float | Array
    mean: float | Array
    square: float | Array


@dataclass(frozen=True)
class OutcomeKind:
    """A kind of outcome.

    largest  the variance of outcomes as apart as the mean lets them be; ¼ at ½
    least    the fewest outcomes that a segment may start with, by their mean and variance
    """

    largest: Callable[[Array], Array]
    least: Callable[[Array, Array], Array]


@compiled
def share_variance(mean: Any) -> Any:
    """The variance of outcomes 0 and 1 with this mean."""
    return mean * (1.0 - mean)


@compiled
def fewest_shares(mean: Any, variance: Any) -> Any:
    """The number of outcomes that make one 0 and one 1."""
    return variance / (mean * (1.0 - mean) * np.minimum(mean, 1.0 - mean))


SHARES = OutcomeKind(share_variance, fewest_shares)
"""Rewards and costs in [0, 1]."""

MULTIPLES = OutcomeKind(largest=lambda mean: mean * mean, least=lambda mean, variance: variance / (mean * mean))
"""Costs as multiples of their estimate: the shape of their Gamma law is at least 1."""


def pooled(
    count: Array,
    total: Array,
    squares: Array,
    first: float | Array,
    pooling: float,
    kind: OutcomeKind = SHARES,
    sizes: float | Array = 1.0,
    shifted: bool = False,
) -> SegmentPrior:
    """The prior of each segment and arm, from the number, the sum and the squares of outcomes as (…, segment, arm),
    the squares of the first two, and what these are to be multiplied by; with ``shifted``, shares of a segment are
    taken to differ from the others' as its other arms do."""
    spread, first, first_total = first_outcomes(first, sizes)
    if count.shape[-2] == 1:
        return SegmentPrior(FIRST_COUNT, first_total / FIRST_COUNT, first / FIRST_COUNT)
    all_count, all_total, all_squares = (sums.sum(axis=-2, keepdims=True) for sums in (count, total, squares))
    n, mean, square = moments_elsewhere(count, total, squares, all_count, all_total, all_squares, first, first_total)
    variance = np.maximum(square - mean * mean, 0.0)
    shift: float | Array = 0.0
    if shifted:
        shift = shift_segments(count, total, n, mean)
        mean, variance, square = shifted_moments(mean, variance, shift)
    all_count, all_total = all_count + FIRST_COUNT, all_total + first_total
    apart = total / np.maximum(count, 1.0) - all_total / all_count - shift
    between, counts_squared, seen = (
        values.sum(axis=-2, keepdims=True) for values in (count * apart**2, count * count, count > 0.0)
    )
    alike = likeness(all_count, all_total, all_squares + first, between, counts_squared, seen, pooling)
    weight = prior_strength(n, alike, spread, variance, kind.largest(mean), kind.least(mean, variance))
    return SegmentPrior(weight, mean, square)


# --- formulas of single numbers or of arrays: engines compile these very functions ------------------------------------


@compiled
def first_outcomes(first: Any, size: Any) -> tuple[Any, Any, Any]:
    """Their variance as a share of that of one 0 and one 1; their squares and their sum, multiplied by the size."""
    return 4.0 * (first / FIRST_COUNT - FIRST_MEAN**2), first * size * size, FIRST_COUNT * FIRST_MEAN * size


@compiled
def moments_elsewhere(
    count: Any, total: Any, squares: Any, all_count: Any, all_total: Any, all_squares: Any, first: Any, first_total: Any
) -> tuple[Any, Any, Any]:
    """Number, mean and mean square of an arm's outcomes in the other segments, the first ones included."""
    n = all_count - count + FIRST_COUNT
    return n, (all_total - total + first_total) / n, (all_squares - squares + first) / n


@compiled
def shifted_moments(mean: Any, variance: Any, shift: Any) -> tuple[Any, Any, Any]:
    """Mean, variance and mean square of shares whose mean is shifted."""
    variance = variance * ((mean + shift) * (1.0 - mean - shift) / (mean * (1.0 - mean)))
    mean = mean + shift
    return mean, variance, variance + mean * mean


@compiled
def likeness(n: Any, total: Any, squares: Any, between: Any, counts_squared: Any, seen: Any, pooling: Any) -> Any:
    """The variance of an arm's outcomes within segments divided by that of its means between them: from the number, sum
    and squares of all outcomes, the weighted squares of the means' distances, the squares of the numbers in each
    segment, and how many segments have an outcome."""
    mean = total / n
    within = np.maximum(squares / n - mean * mean - between / n, SMALLEST_WITHIN)
    chance_part = np.maximum(seen - 1.0, 0.0)
    differences = OUTCOMES_FOR_GUESS / pooling + np.maximum(between / within - chance_part, 0.0)
    return (OUTCOMES_FOR_GUESS + (n - counts_squared / n)) / differences


@compiled
def prior_strength(n: Any, alike: Any, spread: Any, variance: Any, largest: Any, least: Any) -> Any:
    """How many outcomes a prior is worth, of n in the other segments."""
    return np.minimum(n, np.maximum(np.minimum(alike, MAX_PRIOR_STRENGTH / spread * variance / largest), least))


def shift_segments(count: Array, total: Array, n: Array, mean: Array) -> Array:
    """Estimated segment effect on an arm's mean reward: the precision-weighted mean difference of the segment's other
    arms, shrunk by how well such effects have predicted so far, from 0 to 1. Where each segment has a best arm of its
    own, one arm's difference says nothing about another's."""
    apart = total / np.maximum(count, 1.0) - mean
    weight = count * n / (count + n)
    # added up in order, as engines do: other orders round otherwise
    sums, weights = (values.cumsum(axis=-1)[..., -1:] - values for values in (weight * apart, weight))
    shift = sums / (weights + OUTCOMES_FOR_SHIFT)
    right, all_ = (
        (weight * shift * other).cumsum(axis=-1)[..., -1].cumsum(axis=-1)[..., -1] for other in (apart, shift)
    )
    shift = shift * np.clip((SHIFT_EVIDENCE + right) / (SHIFT_EVIDENCE + all_), 0.0, 1.0)
    return np.asarray(np.clip(shift, -FARTHEST_SHIFT * mean, FARTHEST_SHIFT * (1.0 - mean)))
