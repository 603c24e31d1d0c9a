"""Near a tie: all arms down to a level, one after the other, in whatever order.

An index policy pulls, as long as some index lies above a level, some arm whose index does. If indices rise with the
round, every order of such pulls ends in the same round in the same state, given what each arm's k-th pull brings
(docs/engine.md, section 8, proves it). So nobody has to find out who leads: each arm is pulled until its index is below
the level, in a loop of its own. A sweep reads outcomes from tapes; one that comes too near to the end of a budget is
taken back, and the lazy engine plays on from the same tapes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.blocks import spreads
from budgetbandits.simulation.engines.index.scores import lowest_index, now, score
from budgetbandits.simulation.engines.index.state import pulls_of
from budgetbandits.simulation.engines.index.tapes import lengthen, tape_of
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.engines.runtime.status import GIVEN_UP, GOING_ON

NARROWEST = 1.5
"""Spans narrower than this many standard deviations of one pull are not worth their evaluation."""


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def span(game, index, arm, value, above, longest):
    """Pulls that keep the index above ``above``: (how many, up to what shortfall of reward, what excess of cost)."""
    stride = game.reach * (value - above) * float(pulls_of(game, arm))
    if not game.blocks or stride < NARROWEST or not value < np.inf:
        game.reach *= 1.05  # what was too far once need not be so for ever
        return np.int64(1), np.inf, np.inf
    reward_spread, cost_spread = spreads(game, arm)
    for _ in range(2):
        count = min(longest, np.int64(min(2.0 * stride * stride, 1e9)) + 8)
        shortfall, excess = stride * reward_spread, stride * cost_spread
        worst = lowest_index(game, index, arm, count, shortfall, excess)
        # the index falls about in proportion to the stride: the next one is to use most of the gap
        game.reach = 0.8 * stride / (float(pulls_of(game, arm)) * max(value - worst, 1e-300))
        if worst - game.slack * (1.0 + abs(worst)) > above:
            return count, shortfall / game.reward_unit, excess / game.cost_unit
        stride = game.reach * (value - above) * float(pulls_of(game, arm))
        if not stride >= NARROWEST:
            break
    return np.int64(1), np.inf, np.inf


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read(game, arm, count, shortfall, excess):
    """Pull the arm ``count`` times, or until its rewards fall short or its costs exceed by more than they may."""
    pulls, used, filled = whole_pointer(game.pulls_at), whole_pointer(game.used_at), whole_pointer(game.filled_at)
    rewards, squares, costs = (
        float_pointer(game.rewards_at), float_pointer(game.squares_at), float_pointer(game.costs_at),
    )  # fmt: skip
    tape, mask = tape_of(game, arm)
    mean_reward, mean_cost = rewards[arm] / float(pulls[arm]), costs[arm] / float(pulls[arm])
    reward, square, cost = rewards[arm], squares[arm], costs[arm]
    short = over = 0.0
    began = number = used[arm]
    ready = filled[arm]
    while number < began + count and short <= shortfall and over <= excess:
        if number == ready:
            free = game.chunk - (number - whole_pointer(game.used_before_at)[arm])
            if free == 0:
                return GIVEN_UP
            lengthen(game, arm, min(free, min(np.int64(64), max(np.int64(8), pulls[arm]))))
            ready = filled[arm]
        spot = 2 * (number & mask)
        earned, paid = tape[spot], tape[spot + 1]
        reward += earned
        square += earned * earned
        cost += paid
        short += mean_reward - earned
        over += paid - mean_cost
        number += 1
    game.reward += reward - rewards[arm]
    game.spent += cost - costs[arm]
    game.rounds += number - began
    rewards[arm], squares[arm], costs[arm] = reward, square, cost
    pulls[arm] += number - began
    used[arm] = number
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def slide(game, index, arm, above, last):
    """Pull the arm until its index is not above ``above``: (status, the lowest index it came to)."""
    lowest = np.inf
    while True:
        value = now(game, index, arm)
        if value != value:
            return GIVEN_UP, value  # whoever plays on from here comes to it and says so
        lowest = min(lowest, value)
        if not value > above:
            return GOING_ON, value
        longest = last - game.rounds
        if longest <= 0:
            return GIVEN_UP, lowest
        count, shortfall, excess = span(game, index, arm, value, above, longest)
        status = read(game, arm, count, shortfall, excess)
        if status != GOING_ON:
            return status, lowest


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def in_round(game, index, arm, rounds):
    """The arm's index in a later round, if it is not pulled until then: no index before is higher."""
    return score(game, index, arm, rounds, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def descend(game, index, above, below, until, last, most):
    """Pull until no index is above ``above``: (status, a bound on the indices then); the leader is who has it.

    An arm whose index is below in the round ``until`` need not be looked at before that round; the others wait for
    their turn again, because indices rise while other arms are pulled.
    """
    candidate, values = whole_pointer(game.candidate_at), float_pointer(game.value_at)
    game.leader = 0
    top = -np.inf
    waiting = 0
    for arm in range(game.arms):
        bound = in_round(game, index, arm, until)
        if not bound < below:
            candidate[waiting] = arm
            waiting += 1
        elif bound > top:
            top, game.leader = bound, arm
    while waiting > 0:
        began = game.rounds
        kept = 0
        for spot in range(waiting):
            arm = candidate[spot]
            pulls = pulls_of(game, arm)
            status, value = slide(game, index, arm, above, min(last, game.rounds + most))
            if status != GOING_ON:
                return status, value
            bound = in_round(game, index, arm, until) if pulls_of(game, arm) > pulls else np.inf
            if not bound < below:
                candidate[kept] = arm
                values[kept] = value
                kept += 1
            elif bound > top:
                top, game.leader = bound, arm
        waiting = kept
        if game.rounds == began:
            break
    for spot in range(waiting):
        if values[spot] > top:
            top, game.leader = values[spot], candidate[spot]
    return GOING_ON, top


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def sweep(game, index, level, patience, last, most):
    """Pull until every index is below the level: (status, a bound on the indices then).

    Given up, with the index that would not come down, where that takes one arm more than ``most`` pulls at a time or
    all arms more than there are before the round ``last``. Rounding gets a margin: what is pulled has an index above
    it, what is left one below it, or the sweep is given up, too.
    """
    margin = game.slack * (1.0 + abs(level))
    while True:
        until = game.rounds + patience
        status, top = descend(game, index, level + margin, level - margin, until, last, most)
        if status != GOING_ON:
            return status, top
        if game.rounds <= until:
            return (GOING_ON if top < level - margin else GIVEN_UP), top
