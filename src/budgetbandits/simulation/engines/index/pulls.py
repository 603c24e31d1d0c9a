"""Pulls of one arm, one or a block of them: what they bring, what they cost, and which budgets they end.

Sums of rewards and costs are kept in units of the problem's lattice, as whole numbers in float64, wherever all values
lie on one: then they are exact up to 2^53 units, in whatever order they are added.

An arm's outcomes are independent of everything else, so they may be drawn before they are needed. A *tape* holds such
outcomes in their order: a ring in the game's buffer into which ``filled`` have been written so far and from which
``used`` have been read. What stands on a tape is read before anything new is drawn.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.state import (
    BEST_RATIO,
    FLOOR_SEEN,
    can_pay,
    knows_variances,
    pulls_of,
)
from budgetbandits.simulation.engines.plain.loop import pull_of, request_status
from budgetbandits.simulation.engines.runtime.binomials import ONE, trials
from budgetbandits.simulation.engines.runtime.laws import cost_law, outcome, outcomes, reward_law
from budgetbandits.simulation.engines.runtime.records import CHOOSING, GOING_ON, float_pointer, set_leaf, whole_pointer


@njit(cache=True, nogil=True, error_model="numpy")
def first_pulls(game):
    """Every affordable arm once, in order, where the policy wants that."""
    while game.forced and game.opened < game.arms:
        status = request_status(game)
        if status == GOING_ON and can_pay(game, game.opened):
            status = pull(game, game.opened, 0, 0)
        if status != GOING_ON:
            return status
        game.opened += 1
    game.leader = -1
    game.stage = CHOOSING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def next_outcome(game, arm):
    """(whether there is one, reward, cost): what stands on the arm's tape, else a draw from its law if it is finite."""
    used = whole_pointer(game.used_at)
    if used[arm] < whole_pointer(game.filled_at)[arm]:
        tape, mask = tape_of(game, arm)
        spot = 2 * (used[arm] & mask)
        used[arm] += 1
        return True, tape[spot], tape[spot + 1]
    if whole_pointer(game.cost_atoms_at)[arm] > 0:
        reward, cost = outcome(game, arm)
        return True, reward, cost
    return False, 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def learn_outcome(game, arm, reward, cost, learn, rng):
    """Add to the sums of the arm and of the game."""
    add(game, arm, reward, reward * reward, cost)
    if knows_variances(game):
        float_pointer(game.cost_squares_at)[arm] += cost * cost
        float_pointer(game.products_at)[arm] += reward * cost
    if game.kind >= FLOOR_SEEN:
        note_floor(game, arm)
    game.reward += reward
    game.spent += cost


pull = pull_of("index", next_outcome, learn_outcome)
"""One pull of an arm, whose two last arguments are not looked at: no rule has an update of its own."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def add(game, arm, reward, squares, cost):
    """Add to the arm's own sums."""
    float_pointer(game.rewards_at)[arm] += reward
    float_pointer(game.squares_at)[arm] += squares
    float_pointer(game.costs_at)[arm] += cost


@njit(cache=True, nogil=True, error_model="numpy")
def note_floor(game, arm):
    """Keep the smallest mean cost of all arms, or cost of a unit of reward, at the root of a tournament tree."""
    tree = float_pointer(game.tree_at)
    cost = float_pointer(game.costs_at)[arm] * game.cost_unit / float(pulls_of(game, arm))
    if game.kind == BEST_RATIO:
        reward = float_pointer(game.rewards_at)[arm] * game.reward_unit / float(pulls_of(game, arm))
        cost = cost / reward if cost > 0.0 else 0.0
    set_leaf(tree, game.leaves + arm, cost)
    game.floor = tree[1]


@njit(cache=True, nogil=True, error_model="numpy")
def pull_block(game, arm, count):
    """``count`` pulls that cannot end any game. From a tape, as many of them as it holds: the number is returned."""
    used, filled = whole_pointer(game.used_at), whole_pointer(game.filled_at)
    if used[arm] == filled[arm] and whole_pointer(game.cost_atoms_at)[arm] > 0:
        reward, squares, cost = outcomes(game, arm, count)
        add(game, arm, reward, squares, cost)
        game.reward += reward
        game.spent += cost
    else:
        # one by one, so that sums of floats are those of the naive loop to the last bit
        tape, mask = tape_of(game, arm)
        count = min(count, filled[arm] - used[arm])
        for number in range(used[arm], used[arm] + count):
            spot = 2 * (number & mask)
            reward, cost = tape[spot], tape[spot + 1]
            add(game, arm, reward, reward * reward, cost)
            game.reward += reward
            game.spent += cost
        used[arm] += count
    whole_pointer(game.pulls_at)[arm] += count
    game.rounds += count
    return count


# --- tapes -----------------------------------------------------------------------------------------------------------


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
