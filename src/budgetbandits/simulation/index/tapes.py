"""What pulls of an arm bring: drawn one by one, in blocks, or ahead onto a tape.

An arm's outcomes are independent of everything else, so they may be drawn before anybody asks for them. A tape holds
such outcomes in their order: a ring in `World.buffer` into which ``filled`` have been written so far and from which
``used`` have been read. What stands on a tape comes before anything drawn anew.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.binomials import binomial
from budgetbandits.simulation.compiled.bits import ONE, trials
from budgetbandits.simulation.compiled.draws import uniform

FEW_VALUES = 8
"""Up to so many values are all compared with the draw: cheaper than a jump that no processor can foresee."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def atom(stream, chance, first, atoms):
    """Which of an arm's values comes up; the last one takes whatever rounding leaves."""
    last = first + atoms - 1
    if atoms == 1:
        return last
    u = uniform(stream)
    if atoms <= FEW_VALUES:
        reached = 0.0
        drawn = first
        for here in range(first, last):
            reached += chance[here]
            drawn += np.int64(u >= reached)
        return drawn
    for here in range(first, last):
        if u < chance[here]:
            return here
        u -= chance[here]
    return last


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def block_sum(stream, count, value, chance, first, atoms):
    """The sum and the sum of squares of ``count`` draws: one conditional binomial a value."""
    left = np.int64(count)
    rest = 1.0
    total = 0.0
    squares = 0.0
    last = first + atoms - 1
    if atoms > 2 and count <= 16:
        for _ in range(count):
            drawn_value = value[atom(stream, chance, first, atoms)]
            total += drawn_value
            squares += drawn_value * drawn_value
        return total, squares
    for here in range(first, last + 1):
        if left == 0:
            break
        drawn = left
        if here < last:
            share = chance[here] / rest if chance[here] < rest else 1.0
            drawn = binomial(stream, left, share)
        left -= drawn
        rest -= chance[here]
        total += drawn * value[here]
        squares += drawn * (value[here] * value[here])
    return total, squares


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def outcome(desk, world, arm):
    """(reward, cost) of one pull of an arm with finite laws."""
    here = atom(desk.stream, world.reward_chance, desk.reward_first[arm], desk.reward_atoms[arm])
    there = atom(desk.stream, world.cost_chance, desk.cost_first[arm], desk.cost_atoms[arm])
    return world.reward_value[here], world.cost_value[there]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def place_on_tape(world, arm, number):
    """Where in the buffer the arm's outcome of that number stands; its cost stands behind its reward."""
    return 2 * (arm * world.chunk + (number & (world.chunk - 1)))


@njit(cache=True, nogil=True, error_model="numpy")
def write_two_valued(stream, count, world, arm, filled, offset, value, chance, first, atoms):
    """Write ``count`` draws, at most 64, of a law with one or two values."""
    low = value[first]
    high = value[first + atoms - 1]
    bits = trials(stream, chance[first + atoms - 1], count)
    for number in range(filled, filled + count):
        world.buffer[place_on_tape(world, arm, number) + offset] = high if bits & ONE else low
        bits >>= ONE


@njit(cache=True, nogil=True, error_model="numpy")
def lengthen(desk, world, arm, count):
    """Draw ``count`` more outcomes, at most 64, of an arm with finite laws onto its tape."""
    filled = desk.filled[arm]
    if desk.reward_atoms[arm] <= 2 and desk.cost_atoms[arm] <= 2:
        write_two_valued(
            desk.stream, count, world, arm, filled, 0,
            world.reward_value, world.reward_chance, desk.reward_first[arm], desk.reward_atoms[arm],
        )  # fmt: skip
        write_two_valued(
            desk.stream, count, world, arm, filled, 1,
            world.cost_value, world.cost_chance, desk.cost_first[arm], desk.cost_atoms[arm],
        )  # fmt: skip
    else:
        for number in range(filled, filled + count):
            spot = place_on_tape(world, arm, number)
            world.buffer[spot], world.buffer[spot + 1] = outcome(desk, world, arm)
    desk.filled[arm] = filled + count
