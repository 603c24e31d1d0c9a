"""Compiled draws from an arm's finite laws: one value, or the sum of many.

A law is (values, chances, how many): pointers into the flat arrays of `laws.Tables`, which a game's record holds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.engines.runtime.draws import uniform
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer

FEW_VALUES = 8
"""Up to so many values are all compared with the draw: cheaper than a jump that no processor can foresee."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def reward_law(game, arm):
    first = 8 * whole_pointer(game.reward_first_at)[arm]
    return (
        float_pointer(game.reward_value_at + first),
        float_pointer(game.reward_chance_at + first),
        whole_pointer(game.reward_atoms_at)[arm],
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def cost_law(game, arm):
    first = 8 * whole_pointer(game.cost_first_at)[arm]
    return (
        float_pointer(game.cost_value_at + first),
        float_pointer(game.cost_chance_at + first),
        whole_pointer(game.cost_atoms_at)[arm],
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def one_value(stream, law):
    """One draw; the last value takes whatever rounding leaves."""
    values, chances, atoms = law
    last = atoms - 1
    if last == 0:
        return values[0]
    u = uniform(stream)
    if atoms <= FEW_VALUES:
        reached = 0.0
        drawn = 0
        for place in range(last):
            reached += chances[place]
            drawn += np.int64(u >= reached)
        return values[drawn]
    for place in range(last):
        if u < chances[place]:
            return values[place]
        u -= chances[place]
    return values[last]


@njit(cache=True, nogil=True, error_model="numpy")
def block_sum(stream, law, count):
    """The sum and the sum of squares of ``count`` draws: one conditional binomial for each value."""
    values, chances, atoms = law
    total = 0.0
    squares = 0.0
    if atoms > 2 and count <= 16:
        for _ in range(count):
            value = one_value(stream, law)
            total += value
            squares += value * value
        return total, squares
    left = np.int64(count)
    rest = 1.0
    for place in range(atoms):
        if left == 0:
            break
        drawn = left
        if place < atoms - 1:
            share = chances[place] / rest if chances[place] < rest else 1.0
            drawn = binomial(stream, left, share)
        left -= drawn
        rest -= chances[place]
        total += drawn * values[place]
        squares += drawn * (values[place] * values[place])
    return total, squares


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def outcome(game, arm):
    """(reward, cost) of one pull."""
    reward = one_value(game.stream_at, reward_law(game, arm))
    return reward, one_value(game.stream_at, cost_law(game, arm))


@njit(cache=True, nogil=True, error_model="numpy")
def outcomes(game, arm, count):
    """(reward, sum of squared rewards, cost) of that many pulls together."""
    reward, squares = block_sum(game.stream_at, reward_law(game, arm), count)
    cost, _ = block_sum(game.stream_at, cost_law(game, arm), count)
    return reward, squares, cost
