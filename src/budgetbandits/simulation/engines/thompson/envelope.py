"""Bounds on one arm's ratio that can be sampled: above a level (cold arms) and below it (the leader).

The ratio is reward / cost with reward ~ Beta(a,b) and cost ~ Beta(c,d), all parameters at least 1; with
`classical` set the cost is the constant 1 and the ratio is the reward itself.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import beta, exponential, gamma
from budgetbandits.simulation.engines.runtime.special import ONE_OVER_TWO_PI, kernel_body, root_change, scaled_log

NO_TANGENT = 0
"""Kind of an envelope without a tangent."""

COST_TANGENT = 1
"""Kind of an envelope with a tangent in the cost."""

REWARD_TANGENT = 2
"""Kind of an envelope with a tangent in the reward."""

CLASSICAL_TANGENT = 3
"""Kind of an envelope where all costs are 1."""

BELOW_ONE = 1.0 - 2.0**-53
"""Largest number below 1."""


@njit(cache=True, nogil=True, error_model="numpy")
def classical_tangent(a, b, level):
    """Tangent to the log density of log reward at the level itself."""
    if level >= 1.0:
        return NO_TANGENT, 0.0, 0.0, 1.0, 1.0
    slope = (b - 1.0) * level / (1.0 - level) - a
    if slope <= 0.0:
        return NO_TANGENT, 0.0, 0.0, 1.0, 1.0
    steep = slope * (1.0 - level)
    root = ONE_OVER_TWO_PI * a * b / (a + b)
    log_bound = kernel_body(level, a, b) + 0.5 * math.log(root / (steep * steep))
    return CLASSICAL_TANGENT, log_bound, slope, level, 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def log_density(x, a, b):
    """(body, root): the density of log Beta(a, b) at log x is e^body times the square root of root."""
    if b == 1.0:
        return a * math.log(x), a * a
    return kernel_body(x, a, b), ONE_OVER_TWO_PI * a * b / ((a + b) * (1.0 - x) * (1.0 - x))


@njit(cache=True, nogil=True, error_model="numpy")
def scaled_moment(x, a, b, power):
    """(body, root) of E[(theta / x)^power] with theta ~ Beta(a, b)."""
    if b == 1.0:
        return -power * math.log(x), (a / (a + power)) ** 2
    return kernel_body(x, a, b) - kernel_body(x, a + power, b), root_change(a, b, power)


@njit(cache=True, nogil=True, error_model="numpy")
def cost_tangent(a, b, c, d, x, y):
    """(kind, log G, slope) of the tangent to the density of the log cost at y; with d = 1 that is a straight line."""
    slope = c if d == 1.0 else c - (d - 1.0) * y / (1.0 - y)
    if slope <= 0.0:
        return NO_TANGENT, np.inf, 0.0
    body, root = log_density(y, c, d)
    more, change = scaled_moment(x, a, b, slope)
    return COST_TANGENT, body + more + 0.5 * math.log(root * change / (slope * slope)), slope


@njit(cache=True, nogil=True, error_model="numpy")
def reward_tangent(a, b, c, d, x, y):
    """(kind, log G, slope) of the tangent to the density of the log reward at x."""
    slope = (b - 1.0) * x / (1.0 - x) - a
    if not 0.0 < slope < c:
        return NO_TANGENT, np.inf, 0.0
    body, root = log_density(x, a, b)
    more, change = scaled_moment(y, c, d, -slope)
    return REWARD_TANGENT, body + more + 0.5 * math.log(root * change / (slope * slope)), slope


@njit(cache=True, nogil=True, error_model="numpy")
def densest_point(a, b, c, d, level):
    """Where on the line reward = level * cost the joint density is largest; off the ends where it vanishes."""
    shape = a + c
    half = 0.5 * (shape * (1.0 + level) + (b - 1.0) * level + (d - 1.0))
    root = half * half - level * (shape + b + d - 2.0) * shape
    y = shape / (half + math.sqrt(max(root, 0.0)))
    x = level * y
    if x > 1.0:
        x = 1.0
        y = 1.0 / level
    if y > 1.0:
        y = 1.0
        x = level
    if d > 1.0 and y > BELOW_ONE:
        y = BELOW_ONE
        x = level * y
    if b > 1.0 and x > BELOW_ONE:
        x = BELOW_ONE
        y = x / level
    return x, y


@njit(cache=True, nogil=True, error_model="numpy")
def tangent(a, b, c, d, level, classical):
    """(kind, log G, slope, x, y) with P(ratio > level) <= G; NO_TANGENT when the level is below the mode.

    The point of tangency only decides how tight G is: any point inside the unit square gives a valid bound, so
    rounding in the root of the quadratic is harmless.
    """
    if classical:
        return classical_tangent(a, b, level)
    x, y = densest_point(a, b, c, d, level)
    if b > 1.0 and d == 1.0:
        # A straight line has no curvature, but it goes on beyond a cost of 1: where costs are always 1 that part is
        # nearly all of it.
        kind, log_bound, slope = cost_tangent(a, b, c, d, x, y)
        other, log_other, other_slope = reward_tangent(a, b, c, d, x, y)
        if log_other < log_bound:
            return other, log_other, other_slope, x, y
        return kind, log_bound, slope, x, y
    # The flatter coordinate takes the tangent: the flatter the curve, the less its tangent overshoots.
    if b > 1.0 and (b - 1.0) * x * (1.0 - y) * (1.0 - y) < (d - 1.0) * y * (1.0 - x) * (1.0 - x):
        kind, log_bound, slope = reward_tangent(a, b, c, d, x, y)
        if kind != NO_TANGENT:
            return kind, log_bound, slope, x, y
    kind, log_bound, slope = cost_tangent(a, b, c, d, x, y)
    return kind, log_bound, slope, x, y


@njit(cache=True, nogil=True, error_model="numpy")
def accepts(stream, counts, tangent, ratio):
    """Whether a proposed ratio is kept; kept ratios have exactly the arm's law above the level proposed from."""
    a, b, c, d = counts
    kind, _, slope, x, y = tangent
    if kind == COST_TANGENT:
        w = beta(stream, a + slope, b) / ratio
        if w >= 1.0 or w <= 0.0:
            return False
        if d == 1.0:
            return True
        return exponential(stream) >= -scaled_log(c - slope, w - y, w, y) - scaled_log(d - 1.0, y - w, 1.0 - w, 1.0 - y)
    if kind == REWARD_TANGENT:
        v = ratio * beta(stream, c - slope, d)
    else:
        v = ratio
    if v >= 1.0 or v <= 0.0:
        return False
    return exponential(stream) >= -scaled_log(a + slope, v - x, v, x) - scaled_log(b - 1.0, x - v, 1.0 - v, 1.0 - x)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_ratio(stream, a, b, c, d, classical):
    """One plain draw of the ratio."""
    reward = gamma(stream, a)
    against = gamma(stream, b)
    if classical:
        return reward / (reward + against)
    cost = gamma(stream, c)
    relief = gamma(stream, d)
    return reward * (cost + relief) / ((reward + against) * cost)


@njit(cache=True, nogil=True, error_model="numpy")
def shortfall_tilt(a, b, c, d, level, classical):
    """The exponent of Markov's inequality that nearly minimises the bound on P(ratio < level); 0 if there is none."""
    trials = a + b
    if classical:
        if level >= 1.0 or a <= level * trials:
            return 0.0
        tilt = (a - level * trials) / (1.0 - level)
    else:
        cost_trials = c + d
        constant = level * c * trials - a * cost_trials
        if constant >= 0.0:
            return 0.0
        linear = level * (trials - c) + cost_trials - a
        root = linear * linear - 4.0 * (1.0 - level) * constant
        bottom = linear + math.sqrt(max(root, 0.0))
        if bottom <= 0.0:
            return 0.0
        tilt = -2.0 * constant / bottom
    # The moment of order -tilt exists only below a; keep off the pole.
    return min(tilt, a * 0.999)


@njit(cache=True, nogil=True, error_model="numpy")
def log_shortfall(a, b, c, d, level, tilt, classical):
    """log of M = level^tilt E[cost^tilt] E[reward^-tilt], which bounds P(ratio < level) for 0 < tilt < a.

    M rises with b and c and falls with a and d, because each factor is the mean of a monotone function.
    """
    if classical:
        return kernel_body(level, a, b) - kernel_body(level, a - tilt, b) + 0.5 * math.log(root_change(a, b, -tilt))
    # Powers of the reference points cancel between the two factors when x = level * y.
    y = (c + tilt) / (c + d + tilt)
    x = level * y
    if x >= BELOW_ONE:
        x = 0.5
        y = x / level
        if y >= BELOW_ONE:
            return 0.0
    return (
        kernel_body(y, c, d)
        - kernel_body(y, c + tilt, d)
        + kernel_body(x, a, b)
        - kernel_body(x, a - tilt, b)
        + 0.5 * math.log(root_change(c, d, tilt) * root_change(a, b, -tilt))
    )


@njit(cache=True, nogil=True, error_model="numpy")
def draw_shortfall(stream, a, b, c, d, level, tilt, classical):
    """A proposal from the measure behind log_shortfall: the ratio if accepted as below the level, else infinity."""
    reward = beta(stream, a - tilt, b)
    if reward <= 0.0:
        return np.inf
    cost = 1.0 if classical else beta(stream, c + tilt, d)
    ratio = reward / cost
    if ratio >= level:
        return np.inf
    if exponential(stream) >= -scaled_log(tilt, ratio - level, ratio, level):
        return ratio
    return np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def log_unpulled_below(level, classical):
    """log P(ratio <= level) of an arm never pulled: the ratio of two uniforms, or one uniform."""
    if classical:
        return math.log(min(level, 1.0))
    if level >= 1.0:
        return math.log1p(-0.5 / level)
    return math.log(0.5 * level)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_best_unpulled(stream, members, classical):
    """The largest ratio among arms never pulled, by inverting its distribution function: one draw however many."""
    log_below = -exponential(stream) / members
    if classical:
        return math.exp(log_below)
    above = -math.expm1(log_below)
    if above <= 0.5:
        return 0.5 / max(above, 1e-300)
    return 2.0 * math.exp(log_below)
