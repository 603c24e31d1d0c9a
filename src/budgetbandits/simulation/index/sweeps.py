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

from budgetbandits.simulation.index.blocks import lowest_index, spreads
from budgetbandits.simulation.index.election import now
from budgetbandits.simulation.index.memory import (
    EVALUATIONS,
    GIVEN_UP,
    GOING_ON,
    LEADER,
    REACH,
    REWARD_SUM,
    ROUNDS,
    SPENT,
)
from budgetbandits.simulation.index.pulling import score
from budgetbandits.simulation.index.tapes import lengthen, place_on_tape

NARROWEST = 1.5
"""Spans narrower than this many standard deviations of one pull are not worth their evaluation."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def span(index, rule, desk, arm, value, above, longest):
    """Pulls that keep the index above ``above``: (how many, up to what shortfall of reward, what excess of cost)."""
    stride = desk.amount[REACH] * (value - above) * float(desk.pulls[arm])
    if not rule.blocks or stride < NARROWEST or not value < np.inf:
        desk.amount[REACH] *= 1.05  # what was too far once need not be so for ever
        return np.int64(1), np.inf, np.inf
    reward_spread, cost_spread = spreads(rule, desk, arm)
    for _ in range(2):
        count = min(longest, np.int64(min(2.0 * stride * stride, 1e9)) + 8)
        shortfall, excess = stride * reward_spread, stride * cost_spread
        worst = lowest_index(index, rule, desk, arm, count, shortfall, excess)
        # the index falls about in proportion to the stride: the next one is to use most of the gap
        desk.amount[REACH] = 0.8 * stride / (float(desk.pulls[arm]) * max(value - worst, 1e-300))
        if worst - rule.slack * (1.0 + abs(worst)) > above:
            return count, shortfall / rule.reward_unit, excess / rule.cost_unit
        stride = desk.amount[REACH] * (value - above) * float(desk.pulls[arm])
        if not stride >= NARROWEST:
            break
    return np.int64(1), np.inf, np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def read(desk, world, arm, count, shortfall, excess):
    """Pull the arm ``count`` times, or until its rewards fall short or its costs exceed by more than they may."""
    number, amount = desk.number, desk.amount
    pulls = float(desk.pulls[arm])
    mean_reward, mean_cost = desk.reward[arm] / pulls, desk.cost[arm] / pulls
    reward, square, cost = desk.reward[arm], desk.square[arm], desk.cost[arm]
    short = over = 0.0
    began = used = desk.used[arm]
    filled = desk.filled[arm]
    while used < began + count and short <= shortfall and over <= excess:
        if used == filled:
            free = world.chunk - (used - desk.used_before[arm])
            if free == 0:
                return GIVEN_UP
            lengthen(desk, world, arm, min(free, min(np.int64(64), max(np.int64(8), desk.pulls[arm]))))
            filled = desk.filled[arm]
        spot = place_on_tape(world, arm, used)
        earned, paid = world.buffer[spot], world.buffer[spot + 1]
        reward += earned
        square += earned * earned
        cost += paid
        short += mean_reward - earned
        over += paid - mean_cost
        used += 1
    played = used - began
    amount[REWARD_SUM] += reward - desk.reward[arm]
    amount[SPENT] += cost - desk.cost[arm]
    number[ROUNDS] += played
    desk.reward[arm], desk.square[arm], desk.cost[arm] = reward, square, cost
    desk.pulls[arm] += played
    desk.used[arm] = used
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def slide(index, rule, desk, world, arm, above, last):
    """Pull the arm until its index is not above ``above``: (status, the lowest index it came to)."""
    lowest = np.inf
    while True:
        value = now(index, rule, desk, arm)
        if value != value:
            return GIVEN_UP, value  # whoever plays on from here comes to it and says so
        lowest = min(lowest, value)
        if not value > above:
            return GOING_ON, value
        longest = last - desk.number[ROUNDS]
        if longest <= 0:
            return GIVEN_UP, lowest
        count, shortfall, excess = span(index, rule, desk, arm, value, above, longest)
        status = read(desk, world, arm, count, shortfall, excess)
        if status != GOING_ON:
            return status, lowest


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def in_round(index, rule, desk, arm, rounds):
    """The arm's index in a later round, if it is not pulled until then: no index before is higher."""
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, rounds, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def descend(index, rule, desk, world, above, below, until, last, most):
    """Pull until no index is above ``above``: (status, a bound on the indices then); the leader is who has it.

    An arm whose index is below in the round ``until`` need not be looked at before that round; the others wait for
    their turn again, because indices rise while other arms are pulled.
    """
    number = desk.number
    number[LEADER] = 0
    top = -np.inf
    waiting = 0
    for arm in range(desk.arms):
        bound = in_round(index, rule, desk, arm, until)
        if not bound < below:
            desk.candidate[waiting] = arm
            waiting += 1
        elif bound > top:
            top, number[LEADER] = bound, arm
    while waiting > 0:
        began = number[ROUNDS]
        kept = 0
        for spot in range(waiting):
            arm = desk.candidate[spot]
            pulls = desk.pulls[arm]
            status, value = slide(index, rule, desk, world, arm, above, min(last, number[ROUNDS] + most))
            if status != GOING_ON:
                return status, value
            bound = in_round(index, rule, desk, arm, until) if desk.pulls[arm] > pulls else np.inf
            if not bound < below:
                desk.candidate[kept] = arm
                desk.value[kept] = value
                kept += 1
            elif bound > top:
                top, number[LEADER] = bound, arm
        waiting = kept
        if number[ROUNDS] == began:
            break
    for spot in range(waiting):
        if desk.value[spot] > top:
            top, number[LEADER] = desk.value[spot], desk.candidate[spot]
    return GOING_ON, top


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sweep(index, rule, desk, world, level, patience, last, most):
    """Pull until every index is below the level: (status, a bound on the indices then).

    Given up, with the index that would not come down, where that takes one arm more than ``most`` pulls at a time or
    all arms more than there are before the round ``last``. Rounding gets a margin: what is pulled has an index above
    it, what is left one below it, or the sweep is given up, too.
    """
    margin = rule.slack * (1.0 + abs(level))
    while True:
        until = desk.number[ROUNDS] + patience
        status, top = descend(index, rule, desk, world, level + margin, level - margin, until, last, most)
        if status != GOING_ON:
            return status, top
        if desk.number[ROUNDS] <= until:
            return (GOING_ON if top < level - margin else GIVEN_UP), top
