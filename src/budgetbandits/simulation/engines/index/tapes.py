"""Outcomes of an arm drawn ahead, in order.

An arm's outcomes are independent of everything else, so they may be drawn before anybody asks for them. A tape holds
such outcomes in their order: a ring in the game's buffer into which ``filled`` have been written so far and from which
``used`` have been read. What stands on a tape comes before anything drawn anew.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.bits import ONE, trials
from budgetbandits.simulation.engines.runtime.finite_laws import cost_law, outcome, reward_law
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def tape_of(game, arm):
    """(tape, mask): the arm's outcome of number k stands at place 2 (k & mask), its cost behind its reward."""
    return float_pointer(game.buffer_at + 16 * arm * game.chunk), game.chunk - 1


@njit(cache=True, nogil=True, error_model="numpy")
def write_two_valued(game, arm, count, law, offset):
    """Write ``count`` draws, at most 64, of a law with one or two values."""
    values, chances, atoms = law
    tape, mask = tape_of(game, arm)
    filled = whole_pointer(game.filled_at)[arm]
    low = values[0]
    high = values[atoms - 1]
    bits = trials(game.stream_at, chances[atoms - 1], count)
    for number in range(filled, filled + count):
        tape[2 * (number & mask) + offset] = high if bits & ONE else low
        bits >>= ONE


@njit(cache=True, nogil=True, error_model="numpy")
def lengthen(game, arm, count):
    """Draw ``count`` more outcomes, at most 64, of an arm with finite laws onto its tape."""
    filled = whole_pointer(game.filled_at)
    if whole_pointer(game.reward_atoms_at)[arm] <= 2 and whole_pointer(game.cost_atoms_at)[arm] <= 2:
        write_two_valued(game, arm, count, reward_law(game, arm), np.int64(0))
        write_two_valued(game, arm, count, cost_law(game, arm), np.int64(1))
    else:
        tape, mask = tape_of(game, arm)
        for number in range(filled[arm], filled[arm] + count):
            spot = 2 * (number & mask)
            tape[spot], tape[spot + 1] = outcome(game, arm)
    filled[arm] += count
