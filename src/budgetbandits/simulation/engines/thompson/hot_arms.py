"""Ratios of hot arms, which are drawn in every open round.

A ratio is made of four gammas, each from a normal variate by Marsaglia and Tsang's method, all four kept or rejected
together.  `draw_hot` draws the four normals.  `sketch_hot` draws only the one direction along which the logarithm of
the ratio moves to first order, and says how far the other three can still move it; most rounds need no more than that,
and `resolve_hot` draws the rest for those that do.

The table of constants has COLUMNS columns an arm, behind a bare pointer.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, gamma_log_acceptance, normal, uniform

# Columns: four centres, four spreads, then what a sketch needs, then the direction (four).
CENTRE, SPREAD, MIDDLE, STEEPNESS, CURVATURE, LOSS, DIRECTION, COLUMNS = 0, 4, 8, 9, 10, 11, 12, 16

SPREAD_LAG = 1.0 / 1024.0  # how far a spread may lag behind its centre
ROUNDED_UP = 1.0 + 2.0**-51  # so that rounding never makes a spread too small
SMALLEST_CENTRE = 100.0  # below this an arm is not sketched
LONGEST_NORMAL = 6.0  # nor is a normal beyond this
BALL = 14.0  # squared radius of the ball in which the three normals not drawn lie, but for a chance of OUTSIDE_CHANCE
LARGEST_RADIUS = math.sqrt(LONGEST_NORMAL * LONGEST_NORMAL + BALL)
"""Largest norm of the four normals: of the drawn one with the three in the ball."""

OUTSIDE_CHANCE = math.erfc(math.sqrt(BALL / 2.0)) + math.sqrt(2.0 * BALL / math.pi) * math.exp(-BALL / 2.0)
"""Probability that the three normals lie outside the ball."""

INSIDE_SCALE = 1.0 / (1.0 - OUTSIDE_CHANCE)
"""Inverse of the probability that they lie inside."""

SIXTH = 1.0 / 6.0
"""The constant 1/6."""

ROUNDING = 1e-12  # of the arithmetic of a sketch, far above it


@njit(cache=True, nogil=True, error_model="numpy")
def keep_constants(constants, slot, counts):
    """Bring a hot arm's constants up to date.

    Any spread from 1/sqrt(9 centre) upwards gives the exact law, only with more rejections (draws.gamma_prepared uses
    the smallest).  So the spreads, and what follows from them, are kept while the centres grow by less than SPREAD_LAG, and
    most pulls change the centres and the middle alone.
    """
    row = COLUMNS * slot
    fresh = True
    for part in range(4):
        centre = counts[part] - 1.0 / 3.0
        spread = constants[row + SPREAD + part]
        constants[row + CENTRE + part] = centre
        fresh &= 0.0 <= 9.0 * centre * spread * spread - 1.0 <= SPREAD_LAG
    c0, c1, c2, c3 = constants[row], constants[row + 1], constants[row + 2], constants[row + 3]
    constants[row + MIDDLE] = c0 * (c2 + c3) / ((c0 + c1) * c2)
    if fresh:
        return
    for part in range(4):
        constants[row + SPREAD + part] = ROUNDED_UP / math.sqrt(9.0 * constants[row + CENTRE + part])
    if min(min(c0, c1), min(c2, c3)) < SMALLEST_CENTRE:
        constants[row + STEEPNESS] = 0.0
        return
    # log reward = -log(1 + e^w), w = log(c1/c0) + 3 log(1 + y1) - 3 log(1 + y0), and y = spread x.  To first order it
    # moves by 3 (1 - mean) (y0 - y1).  For |y| <= far, |log(1 + y) - y| <= bent y^2 and |log(1 + y)| <= slow |y|, with
    # equality at y = -far; and the curvature of log(1 + e^w) is at most 1/4, and mean (1 - mean) e^|change of w|.  So
    # the rest is at most (3 bent (1 - mean) + 9 slow^2 curvature) (y0^2 + y1^2); likewise for the cost.
    steepness = 0.0
    curvature = 0.0
    widest = 0.0
    for pair in range(2):
        first, second = constants[row + 2 * pair], constants[row + 2 * pair + 1]
        spread_first, spread_second = constants[row + SPREAD + 2 * pair], constants[row + SPREAD + 2 * pair + 1]
        far = LARGEST_RADIUS * max(spread_first, spread_second)
        slow = -math.log1p(-far) / far
        bent = (slow - 1.0) / far
        rest = second / (first + second)
        change = 3.0 * slow * LARGEST_RADIUS * math.sqrt(spread_first * spread_first + spread_second * spread_second)
        bend = 3.0 * bent * rest + 9.0 * slow * slow * min(0.25, rest * (1.0 - rest) * math.exp(change))
        along = 3.0 * rest if pair == 0 else -3.0 * rest
        constants[row + DIRECTION + 2 * pair] = along * spread_first
        constants[row + DIRECTION + 2 * pair + 1] = -along * spread_second
        square = max(spread_first * spread_first, spread_second * spread_second)
        steepness += along * along * (spread_first * spread_first + spread_second * spread_second)
        curvature = max(curvature, bend * square)
        widest = max(widest, square)
    steepness = math.sqrt(steepness)
    # Until the next refresh the spreads lag by up to SPREAD_LAG, and 1 - mean moves by that factor at most.
    curvature *= 1.0 + 4.0 * SPREAD_LAG
    constants[row + CURVATURE] = curvature
    constants[row + LOSS] = SIXTH * (1.0 + SPREAD_LAG) * widest
    for part in range(4):
        constants[row + DIRECTION + part] /= steepness
    largest_margin = steepness * SPREAD_LAG * LARGEST_RADIUS + curvature * LARGEST_RADIUS * LARGEST_RADIUS
    close = steepness * LONGEST_NORMAL < 0.45 and largest_margin < 0.14
    constants[row + STEEPNESS] = steepness if close else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def ratio_from(constants, row, y0, y1, y2, y3):
    """A ratio of the means from four normal draws."""
    reward = constants[row] * (1.0 + y0) ** 3
    against = constants[row + 1] * (1.0 + y1) ** 3
    cost = constants[row + 2] * (1.0 + y2) ** 3
    relief = constants[row + 3] * (1.0 + y3) ** 3
    return reward * (cost + relief) / ((reward + against) * cost)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_hot(stream, constants, slot, classical):
    """One ratio of a hot arm: two or four gammas accepted or rejected together, with one uniform for all."""
    row = COLUMNS * slot
    while True:
        x0 = normal(stream)
        x1 = normal(stream)
        y0 = constants[row + SPREAD] * x0
        y1 = constants[row + SPREAD + 1] * x1
        lowest = min(y0, y1)
        x2 = 0.0
        x3 = 0.0
        y2 = 0.0
        y3 = 0.0
        if not classical:
            x2 = normal(stream)
            x3 = normal(stream)
            y2 = constants[row + SPREAD + 2] * x2
            y3 = constants[row + SPREAD + 3] * x3
            lowest = min(lowest, min(y2, y3))
        # A gamma is kept with probability exp(h), h = x^2/2 + centre (1 - v + log v).  For y >= -1/2 the series of
        # the logarithm gives 1 - v + log v >= -9/2 y^2 - 3/2 y^4; with 9 centre spread^2 = 1 + e, e <= SPREAD_LAG, that is
        # h >= -e x^2/2 - (1 + e) (x y)^2/6.  The product of the four is at least 1 minus the sum.
        s0, s1, s2, s3 = x0 * y0, x1 * y1, x2 * y2, x3 * y3
        squares = x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3
        fourths = s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3
        u = uniform(stream)
        if lowest < -0.5 or u >= 1.0 - 0.5 * SPREAD_LAG * squares - SIXTH * (1.0 + SPREAD_LAG) * fourths:
            if lowest <= -1.0:
                continue
            exponent = gamma_log_acceptance(x0, y0, constants[row])
            exponent += gamma_log_acceptance(x1, y1, constants[row + 1])
            if not classical:
                exponent += gamma_log_acceptance(x2, y2, constants[row + 2])
                exponent += gamma_log_acceptance(x3, y3, constants[row + 3])
            if math.log(u) >= exponent:
                continue
        if classical:
            reward = constants[row] * (1.0 + y0) ** 3
            against = constants[row + 1] * (1.0 + y1) ** 3
            return reward / (reward + against)
        return ratio_from(constants, row, y0, y1, y2, y3)


@njit(cache=True, nogil=True, error_model="numpy")
def can_sketch(constants, slot):
    """Whether an arm has constants for a sketch."""
    return constants[COLUMNS * slot + STEEPNESS] > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def sketch_hot(stream, constants, slot):
    """(ratio, margin, z): the ratio up to a factor 1 +- margin, and the normal it came from; margin 0 means exact.

    The three normals across the direction lie in the ball or, with chance OUTSIDE_CHANCE, out of it; the first case needs no
    more when the uniform keeps the gammas wherever in the ball they are.
    """
    row = COLUMNS * slot
    while True:
        z = normal(stream)
        u = uniform(stream)
        inside = u >= OUTSIDE_CHANCE
        if inside:
            u = (u - OUTSIDE_CHANCE) * INSIDE_SCALE
            reach = z * z + BALL
            if abs(z) < LONGEST_NORMAL and u < 1.0 - 0.5 * SPREAD_LAG * reach - constants[row + LOSS] * reach * reach:
                move = constants[row + STEEPNESS] * z
                # The direction may lag by SPREAD_LAG, and the length of the normals is at most sqrt(reach) <= 2 + reach/8.
                around = (
                    constants[row + STEEPNESS] * SPREAD_LAG * (2.0 + 0.125 * reach) + constants[row + CURVATURE] * reach
                )
                square = move * move
                ratio = constants[row + MIDDLE] * (1.0 + move + square * (0.5 + SIXTH * move))
                # For |move| <= 1/2 the cubic is within a factor 1 +- 0.07 move^4 of the exponential, and for
                # around <= 0.15 e^around <= 1 + 1.08 around: keep_constants sees to both.
                return ratio, 1.1 * around + 0.07 * square * square + ROUNDING, z
        else:
            u = uniform(stream)
        kept, ratio = try_all(stream, constants, slot, z, inside, u)
        if kept:
            return ratio, 0.0, z


@njit(cache=True, nogil=True, error_model="numpy")
def resolve_hot(stream, constants, slot, z):
    """The ratio that a sketch with this z knows up to a margin."""
    return try_all(stream, constants, slot, z, np.bool_(True), 0.0)[1]


@njit(cache=True, nogil=True, error_model="numpy")
def draw_across(stream, constants, slot, inside):
    """Four normals without their component along the direction, given that they lie inside the ball or outside."""
    row = COLUMNS * slot + DIRECTION
    a0, a1, a2, a3 = constants[row], constants[row + 1], constants[row + 2], constants[row + 3]
    while True:
        x0 = normal(stream)
        x1 = normal(stream)
        x2 = normal(stream)
        x3 = normal(stream)
        along = a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
        x0 -= along * a0
        x1 -= along * a1
        x2 -= along * a2
        x3 -= along * a3
        square = x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3
        if not inside or square <= BALL:
            break
    if inside:
        return x0, x1, x2, x3
    # The direction is uniform whatever the length; the squared length r is chi-square(3) beyond BALL, its density
    # sqrt(r) exp(-r/2) below the exponential that touches it at BALL.
    while True:
        length = BALL + exponential(stream) / (0.5 - 0.5 / BALL)
        if exponential(stream) >= 0.5 * (length / BALL - 1.0 - math.log(length / BALL)):
            break
    stretch = math.sqrt(length / square)
    return stretch * x0, stretch * x1, stretch * x2, stretch * x3


@njit(cache=True, nogil=True, error_model="numpy")
def try_all(stream, constants, slot, z, inside, u):
    """(kept, ratio) of four gammas whose normals have the component z along the direction and the others drawn now.

    u decides whether they are kept; 0 when that is certain.
    """
    row = COLUMNS * slot
    x0, x1, x2, x3 = draw_across(stream, constants, slot, inside)
    x0 += z * constants[row + DIRECTION]
    x1 += z * constants[row + DIRECTION + 1]
    x2 += z * constants[row + DIRECTION + 2]
    x3 += z * constants[row + DIRECTION + 3]
    y0, y1 = constants[row + SPREAD] * x0, constants[row + SPREAD + 1] * x1
    y2, y3 = constants[row + SPREAD + 2] * x2, constants[row + SPREAD + 3] * x3
    if min(min(y0, y1), min(y2, y3)) <= -1.0:
        return False, 0.0
    if u > 0.0:
        exponent = gamma_log_acceptance(x0, y0, constants[row]) + gamma_log_acceptance(x1, y1, constants[row + 1])
        exponent += gamma_log_acceptance(x2, y2, constants[row + 2])
        exponent += gamma_log_acceptance(x3, y3, constants[row + 3])
        if math.log(u) >= exponent:
            return False, 0.0
    return True, ratio_from(constants, row, y0, y1, y2, y3)
