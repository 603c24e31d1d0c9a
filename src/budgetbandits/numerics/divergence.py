"""How far an arm is from a ratio: the relative entropy to the nearest law that has it.

For Bernoulli laws with means r and c and a ratio ρ > r/c,

    d(r, c; ρ) = min { kl(r, r′) + kl(c, c′) : r′ ≥ ρ c′ },

and 0 if r/c ≥ ρ. Lagrange's conditions give r′ = (r + s)/(1 + s) and c′ = (c − s)/(1 − s), and r′ = ρ c′ makes s the
smallest positive root of a quadratic:

    s = 2g / (b + √(b² − 4(1 − ρ)g)),   g = ρc − r,   b = (1 − r) + ρ(1 − c).

With u = 1 − r, w = ρ(1 − c) and a = 1 − ρ the discriminant is (u − 2a)² + w(w + 4a + 2u). For ρ ≤ 1 it is computed so,
for ρ > 1 as b² + 4(ρ − 1)g; neither loses digits. Everything is made of NumPy's functions and `where`, so that it
serves arrays and can be compiled for single arms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetbandits.numerics.arrays import all_true, where
from budgetbandits.numerics.compilation import compiled

SERIES_RADIUS = 0.05
"""Largest |x| for which x − ln(1 + x) is computed by its power series, since the formula would lose digits."""

FLOOR = 1e-300
"""Smallest divisor: stands for 0."""

RATIO_MAX, LOG_RATIO_MAX = 1e300, 690.0
"""Largest ratio, and about its logarithm: stands for infinity in products."""

NEWTON_STEPS, NEWTON_TOLERANCE = 9, 1e-5
"""Largest number of Newton's steps, and the relative distance from the level at which the step is the last one, since
each step about squares the error. The relative error of the level is then below 1e-9, or the absolute one below 1e-14
(`test_divergence.py`)."""

HALLEY_TOLERANCE, LONGEST_STEP = 1e-2, 2.0
"""Tolerance of Halley's steps, which also use the curvature and cube the error, and their longest step upwards. The
last step leaves an error of about 1e-7 of the ratio. The start is close or above, so no step upwards is long."""

NEAR_SHIFT, LARGEST_SHIFT = 1e-6, 1.0 - 2.0**-53
"""Value of s/u or s/w below which ln(1 + x) loses six or more of its sixteen digits, and the largest s/w below 1."""

DIVERGENCE_BISECTIONS = 28
"""Bisections for λ. At a maximum inside [0, 1] half the digits of λ give all digits of D; at an end λ is exact."""


def relative_entropy(p: Any, q: Any) -> Any:
    """kl(p, q) = p ln(p/q) + (1 − p) ln((1 − p)/(1 − q)), in nats; infinite where q rules p out or is no probability.

    >>> float(relative_entropy(0.5, 0.25))
    0.14384103622589045
    >>> f"{relative_entropy(0.5, 0.5 + 1e-9):.4g}"  # the plain formula gives 0 or noise
    '2e-18'
    >>> float(relative_entropy(0.5, 1.0))
    inf
    """
    impossible = (q < 0.0) | (q > 1.0) | ((q == 0.0) & (p > 0.0)) | ((q == 1.0) & (p < 1.0))
    inside = np.minimum(np.maximum(q, 0.0), 1.0)
    return where(impossible, np.inf, shifted_entropy(p, inside, inside - p))


def shifted_entropy(p: Any, q: Any, shift: Any) -> Any:
    """kl(p, q) for 0 ≤ q ≤ 1 when ``shift`` = q − p is known better than the difference of the two numbers.

    The first-order parts of the two logarithms cancel exactly, so they are left out: with g(x) = x − ln(1 + x), which
    is never negative, kl = p·g(shift/p) + (1 − p)·g(−shift/(1 − p)).
    """
    return entropy_part(p, q, shift) + entropy_part(1.0 - p, 1.0 - q, -shift)


def entropy_part(p: Any, q: Any, shift: Any) -> Any:
    """p·(x − ln(1 + x)) with x = shift/p and so 1 + x = q/p; at p = 0 its limit, the shift itself."""
    x = shift / np.maximum(p, FLOOR)
    near = np.minimum(np.maximum(x, -SERIES_RADIUS), SERIES_RADIUS)
    series = 1.0 / 13.0
    for power in range(12, 1, -1):  # 0.05¹² is below the last digit of the first term
        series = series * -near + 1.0 / power
    far = x - np.log(np.maximum(q, FLOOR) / np.maximum(p, FLOOR))
    return where(p > 0.0, p * where(np.abs(x) < SERIES_RADIUS, near * near * series, far), shift)


@compiled
def ratio_divergence(mean_reward: Any, mean_cost: Any, ratio: Any) -> Any:
    """d(r, c; ρ) with an error of about 1e-15, enough for policies; infinite where ρ is infinite and the cost is not 0.

    >>> round(float(ratio_divergence(0.3, 0.5, 1.0)), 6)  # kl(0.3, 0.4) + kl(0.5, 0.4)
    0.042012
    >>> float(ratio_divergence(0.3, 0.5, 0.6))
    0.0
    """
    finite = np.minimum(ratio, RATIO_MAX)
    tilt = tilt_at_gap(mean_reward, mean_cost, finite, finite * mean_cost - mean_reward)
    value = plain_divergence(mean_reward, mean_cost, finite, tilt)
    return where((mean_cost > 0.0) & (ratio == np.inf), np.inf, value)


@compiled
def plain_divergence(mean_reward: Any, mean_cost: Any, ratio: Any, tilt: Any) -> Any:
    """kl(r, r′) + kl(c, c′) for the r′ and c′ of this s, by plain logarithms: (1 − r)/(1 − r′) = 1 + s, and so on."""
    more = (mean_reward + tilt) / np.maximum(ratio * mean_cost * (1.0 + tilt), FLOOR)  # c′/c, since r′ = ρc′
    reward = np.log1p(tilt) - mean_reward * np.log1p(tilt / np.maximum(mean_reward, FLOOR))
    cost = (1.0 - mean_cost) * np.log(np.maximum(1.0 - tilt, FLOOR)) - mean_cost * np.log(np.maximum(more, FLOOR))
    return where(tilt > 0.0, np.maximum(reward + cost, 0.0), 0.0)


def divergence_at_gap(mean_reward: Any, mean_cost: Any, ratio: Any, gap: Any) -> Any:
    """d(r, c; ρ) for finite ρ, exact near a tie when ``gap`` = ρc − r is known better than that difference."""
    return tilted_divergence(mean_reward, mean_cost, ratio, tilt_at_gap(mean_reward, mean_cost, ratio, gap))


@compiled
def tilt_at_gap(mean_reward: Any, mean_cost: Any, ratio: Any, gap: Any) -> Any:
    """The s of the module's formula, which is also the derivative of d by ln ρ; 0 where the gap is not positive."""
    shrink = 1.0 / np.maximum(ratio, 1.0)  # all terms of the quadratic, so that a huge ρ overflows nothing
    up, down = (1.0 - mean_reward) * shrink, np.minimum(ratio, 1.0) * (1.0 - mean_cost)
    less, short = shrink - np.minimum(ratio, 1.0), np.maximum(gap, 0.0) * shrink
    steep = (up + down) * (up + down) - 4.0 * less * short
    flat = (up - 2.0 * less) * (up - 2.0 * less) + down * (down + 4.0 * less + 2.0 * up)
    root = np.sqrt(np.maximum(where(ratio > 1.0, steep, flat), 0.0))
    return np.minimum(2.0 * short / np.maximum(up + down + root, FLOOR), 1.0)


def tilted_divergence(mean_reward: Any, mean_cost: Any, ratio: Any, tilt: Any) -> Any:
    """kl(r, r′) + kl(c, c′) for the r′ and c′ of this s, to the last digits even where s is tiny."""
    reward = np.minimum((mean_reward + tilt) / (1.0 + tilt), 1.0)
    cost = np.minimum(reward / np.maximum(ratio, FLOOR), mean_cost)
    # (c − s)/(1 − s) − c keeps its digits as long as s is not close to 1, where the difference is large anyway
    lower = where(tilt < 0.5, -tilt * (1.0 - mean_cost) / np.maximum(1.0 - tilt, 0.5), cost - mean_cost)
    higher = tilt * (1.0 - mean_reward) / (1.0 + tilt)
    value = shifted_entropy(mean_reward, reward, higher) + shifted_entropy(mean_cost, cost, lower)
    return where(tilt > 0.0, np.maximum(value, 0.0), 0.0)


@compiled
def largest_ratio(mean_reward: Any, mean_cost: Any, level: Any) -> Any:
    """The largest ρ with d(r, c; ρ) ≤ ``level``, for a level of at least 0; infinite where the cost is 0.

    d is convex in ln ρ, because its derivative s rises with ρ. So Newton's method, started above the root, comes down
    to it and never passes it. The start divides an upper bound of r′ by a lower bound of c′, from Pinsker's inequality
    and its refinements for small means.

    >>> round(float(largest_ratio(0.3, 0.5, ratio_divergence(0.3, 0.5, 1.25))), 9)
    1.25
    """
    cost = np.maximum(mean_cost, FLOOR)
    radius = np.sqrt(level / 2.0)
    above = mean_reward + np.minimum(radius, level + np.sqrt(level * level + 2.0 * mean_reward * level))
    rest = np.maximum(1.0 - mean_cost, FLOOR)
    log_below = np.log(cost) - (level - rest * np.log(rest)) / cost
    below = cost - np.minimum(radius, np.sqrt(2.0 * cost * level))
    log_below = np.maximum(log_below, np.log(np.maximum(below, FLOOR)))
    lowest = np.log(np.maximum(mean_reward, FLOOR)) - np.log(cost)
    place = np.log(np.maximum(np.minimum(above, 1.0), FLOOR)) - log_below
    settled = level < 0.0
    for _ in range(NEWTON_STEPS):
        place = np.minimum(np.maximum(place, lowest), LOG_RATIO_MAX)
        ratio = np.exp(place)
        tilt = tilt_at_gap(mean_reward, mean_cost, ratio, ratio * mean_cost - mean_reward)
        excess = plain_divergence(mean_reward, mean_cost, ratio, tilt) - level
        place = where(settled, place, place - np.maximum(excess, 0.0) / np.maximum(tilt, FLOOR))
        settled = excess <= NEWTON_TOLERANCE * level
        if all_true(settled):
            break
    largest = np.exp(np.minimum(np.maximum(place, lowest), LOG_RATIO_MAX))
    return where(mean_cost > 0.0, where(level > 0.0, largest, mean_reward / cost), np.inf)


@compiled
def largest_weighted_ratio(mean_reward: Any, mean_cost: Any, reward_weight: Any, cost_weight: Any, level: Any) -> Any:
    """The largest ρ with min { u kl(r, r′) + w kl(c, c′) : r′ ≥ ρ c′ } ≤ ``level``, for means inside (0, 1).

    The general case of `largest_ratio`, started at the root of a normal approximation where there is one. Here
    r′ = (ur + s)/(u + s) and c′ = (wc − s)/(w − s), where s solves (ρ − 1)s² + bs = uw(ρc − r) with
    b = w(1 − ρc) + u(ρ − r). It is the derivative by ln ρ, and that quadratic gives the second derivative, too: each
    step goes to the root of a parabola.

    >>> round(float(largest_weighted_ratio(0.3, 0.5, 1.0, 1.0, ratio_divergence(0.3, 0.5, 1.25))), 9)
    1.25
    """
    reward_level, cost_level = level / reward_weight, level / cost_weight
    rest, down_weight = 1.0 - mean_cost, cost_weight * mean_cost
    lowest = mean_reward / mean_cost
    # (ρc − r)² = 2 level (ρ² V_c + V_r), whose root is close after many pulls
    square = mean_cost * mean_cost - 2.0 * cost_level * mean_cost * rest
    constant = mean_reward * mean_reward - 2.0 * reward_level * mean_reward * (1.0 - mean_reward)
    product = mean_reward * mean_cost
    normal = square > 0.5 * mean_cost * mean_cost
    ratio = (product + np.sqrt(np.maximum(product * product - square * constant, 0.0))) / np.maximum(square, FLOOR)
    if not all_true(normal):
        ratio = where(normal, ratio, ratio_above(mean_reward, mean_cost, reward_level, cost_level))
    settled = level < 0.0
    for _ in range(NEWTON_STEPS):
        # all terms of the quadratic by max(ρ, 1), so that a huge ρ overflows nothing
        shrink, unit = 1.0 / np.maximum(ratio, 1.0), np.minimum(ratio, 1.0)
        slope = cost_weight * (shrink - unit * mean_cost) + reward_weight * (unit - shrink * mean_reward)
        product = reward_weight * cost_weight * np.maximum(unit * mean_cost - shrink * mean_reward, 0.0)
        bend = unit - shrink
        root = np.sqrt(np.maximum(slope * slope + 4.0 * bend * product, 0.0))
        # below 0 the slope only is where ρ > 1
        tilt = where(
            slope < 0.0,
            (root - slope) / np.maximum(2.0 * bend, FLOOR),
            2.0 * product / np.maximum(slope + root, FLOOR),
        )
        up, down = tilt / reward_weight, tilt / cost_weight
        less = (mean_reward + up) / (ratio * mean_cost * (1.0 + up))  # c′/c
        excess = (
            reward_weight * (np.log(1.0 + up) - mean_reward * np.log(1.0 + up / mean_reward))
            + cost_weight * (rest * np.log(np.maximum(1.0 - down, FLOOR)) - mean_cost * np.log(less))
            - level
        )
        far = np.minimum(up, down) >= NEAR_SHIFT
        if not all_true(far):
            excess = where(
                far, excess, near_evidence(mean_reward, mean_cost, reward_weight, cost_weight, tilt, less) - level
            )
        curvature = unit * (reward_weight * down_weight - tilt * (tilt + reward_weight - down_weight))
        bent = tilt * tilt - 2.0 * excess * curvature / np.maximum(root, FLOOR)
        slope = tilt + np.sqrt(np.maximum(bent, 0.25 * tilt * tilt))
        step = np.exp(np.minimum(-2.0 * excess / np.maximum(slope, FLOOR), LONGEST_STEP))
        ratio = where(settled, ratio, np.minimum(np.maximum(ratio * step, lowest), RATIO_MAX))
        settled = settled | (np.abs(excess) <= HALLEY_TOLERANCE * level)
        if all_true(settled):
            break
    return where(level > 0.0, ratio, lowest)


@compiled
def near_evidence(
    mean_reward: Any, mean_cost: Any, reward_weight: Any, cost_weight: Any, tilt: Any, less: Any
) -> Any:  # fmt: skip
    """u kl(r, r′) + w kl(c, c′) to the last digits where s is tiny; ``less`` is c′/c."""
    up, down = tilt / reward_weight, np.minimum(tilt / cost_weight, LARGEST_SHIFT)
    reward = np.log1p(up) - mean_reward * np.log1p(up / mean_reward)
    rest = np.log1p(-down)
    near = rest - mean_cost * np.log1p(-np.minimum(down / mean_cost, 0.5))
    cost = where(down < 0.5 * mean_cost, near, (1.0 - mean_cost) * rest - mean_cost * np.log(less))
    return reward_weight * reward + cost_weight * cost


@compiled
def ratio_above(mean_reward: Any, mean_cost: Any, reward_level: Any, cost_level: Any) -> Any:
    """A ratio above that of `largest_weighted_ratio`: the highest mean reward by the lowest mean cost, each alone."""
    above = mean_reward + np.minimum(
        np.sqrt(reward_level / 2.0),
        reward_level + np.sqrt(reward_level * reward_level + 2.0 * mean_reward * reward_level),
    )
    below = mean_cost - np.minimum(np.sqrt(cost_level / 2.0), np.sqrt(2.0 * mean_cost * cost_level))
    rest = 1.0 - mean_cost
    log_below = np.log(mean_cost) - (cost_level - rest * np.log(rest)) / mean_cost
    log_below = np.maximum(log_below, np.log(np.maximum(below, FLOOR)))
    return np.exp(np.minimum(np.log(np.minimum(above, 1.0)) - log_below, LOG_RATIO_MAX))


def empirical_divergence(weights: Any, rewards: Any, costs: Any, ratio: float) -> Any:
    """D(ρ) = max{ Σ w ln(1 − λ(R − ρC)) : 0 ≤ λ ≤ 1 } for each column of ``weights``, over the rows' pairs (R, C).

    It is the relative entropy from the law that gives the pairs these weights to the nearest one on [0, 1]² with ratio
    ρ (docs/explanation/theory.md, "Any law"). The sum is concave in λ, and the sign of its derivative is bisected.

    >>> pairs = np.array([1.0, 0.0]), np.array([0.0, 1.0])  # it pays or it costs
    >>> float(empirical_divergence(np.array([0.5, 0.5]), *pairs, ratio=1.0))
    0.0
    >>> round(float(empirical_divergence(np.array([0.25, 0.75]), *pairs, ratio=1.0)), 6)  # kl(1/4, 1/2)
    0.130812
    """
    total_cost = costs @ weights
    if ratio == np.inf:
        return np.where(total_cost > 0.0, np.inf, 0.0)
    excess = rewards - ratio * costs
    mean = excess @ weights
    low, high = np.zeros(np.shape(mean)), np.full(np.shape(mean), 1.0 - 1e-12)
    for _ in range(DIVERGENCE_BISECTIONS):
        middle = (low + high) / 2.0
        rising = np.einsum("p...,p,p...->...", weights, excess, 1.0 / (1.0 - np.multiply.outer(excess, middle))) < 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    value = np.einsum("p...,p...->...", weights, np.log1p(-np.multiply.outer(excess, high)))
    return np.where(mean < 0.0, np.maximum(value, 0.0), 0.0)
