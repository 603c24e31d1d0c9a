"""Any index policy, all arms evaluated in every round, compiled: exact by inspection, and the cost grows with K.

It serves rules whose monotonicity nobody declared, and it is what the lazy engine is tested against.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import uniform
from budgetbandits.simulation.index.memory import (
    CHOOSING,
    FINISHED,
    FLOOR,
    GOING_ON,
    LEADER,
    NEEDS_OUTCOMES,
    NOT_A_NUMBER,
    OPENED,
    OPENING,
    PULLING,
    ROUND_LIMIT,
    ROUNDS,
    STAGE,
    open_desk,
    open_ends,
    open_world,
)
from budgetbandits.simulation.index.pulling import can_pay, pull, score, stop


@njit(cache=True, nogil=True, error_model="numpy")
def first_pulls(desk, rule, world, ends, out):
    """Every affordable arm once, in order."""
    number = desk.number
    while number[OPENED] < desk.arms:
        arm = number[OPENED]
        if number[ROUNDS] == ends.max_rounds:
            return ROUND_LIMIT
        if can_pay(desk, ends, arm):
            status = pull(desk, rule, world, ends, out, arm)
            if status == NEEDS_OUTCOMES:
                number[LEADER] = arm
                return status
            if status == FINISHED:
                return status
        number[OPENED] += 1
    number[LEADER] = -1
    number[STAGE] = CHOOSING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def best_of_all(index, rule, desk, ends):
    """The arm with the highest index, ties broken uniformly; -1 when none can be afforded or all are −∞, -2 - arm if one is NaN."""
    chosen = -1
    best = -np.inf
    ties = 0
    for arm in range(desk.arms):
        if desk.pulls[arm] == 0 or not can_pay(desk, ends, arm):
            continue
        value = score(index, rule, desk, arm, desk.number[ROUNDS], desk.amount[FLOOR])
        if value != value:
            return -2 - arm
        if value > best:
            chosen, best, ties = arm, value, 1
        elif value == best and value > -np.inf:
            ties += 1
            if uniform(desk.stream) * ties < 1.0:  # the j-th of equals replaces the choice with probability 1/j
                chosen = arm
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def play_plain(
    index, rule, limits, budgets, floats, wholes, number, amount, table, tree, stream,
    reward_value, reward_chance, cost_value, cost_chance, buffer, out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    """Play on until the game ends or an outcome is missing; ``limits`` are the last three fields of `Ends`."""
    desk = open_desk(floats, wholes, number, amount, table, tree, stream.ctypes.data)
    world = open_world(reward_value, reward_chance, cost_value, cost_chance, buffer)
    ends, out = open_ends(budgets, limits, out_pulls, out_reward, out_spend, out_rounds)
    if number[STAGE] == OPENING:
        status = first_pulls(desk, rule, world, ends, out)
        if status != GOING_ON:
            return status
    while True:
        if number[STAGE] == CHOOSING:
            if number[ROUNDS] == ends.max_rounds:
                return ROUND_LIMIT
            number[LEADER] = best_of_all(index, rule, desk, ends)
            if number[LEADER] < -1:
                number[LEADER] = -2 - number[LEADER]
                return NOT_A_NUMBER
            if number[LEADER] < 0:
                return stop(desk, rule, ends, out)
            number[STAGE] = PULLING
        status = pull(desk, rule, world, ends, out, number[LEADER])
        if status != GOING_ON:
            return status
        number[STAGE] = CHOOSING
