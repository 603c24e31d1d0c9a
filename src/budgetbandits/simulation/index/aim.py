"""When to sweep, and down to which level.

Sweeps want to be long, but to end before a budget may. So a level is taken from the leader's own tape: what its index
comes to after some pulls. A sweep that does not come down to its level in time is taken back: what it read stands on
the tapes, so that whoever plays on reads the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.index.election import now
from budgetbandits.simulation.index.memory import (
    CHECKPOINT,
    EVALUATIONS,
    FIRST_PATIENCE,
    GIVEN_UP,
    GOING_ON,
    LAZY_PRICE,
    LEADER,
    PATIENCE,
    POOL_SIZE,
    REWARD_BEFORE,
    REWARD_SUM,
    ROUNDS,
    ROUNDS_BEFORE,
    SHARE,
    SPENT,
    SPENT_BEFORE,
    SWEPT,
    TAKEN_BACK,
)
from budgetbandits.simulation.index.sweeps import read, sweep

LARGEST_SWEEP = 1 << 13
"""So many pulls a sweep aims at, or four of each arm, if there is room for twice as many."""

LEAST_ROOM = 32
"""With room for fewer pulls before a budget may end, or for fewer than half as many as arms, a sweep does not pay."""

TRIES = 4
"""Levels tried before the lazy engine plays on."""

DEARER = 2.0
"""How many evaluations of a sweep take the time of one by the lazy engine with all that goes with it."""

STAKE = 8
"""So many evaluations of each arm are risked before sweeps are found not to pay."""

SOLE = 2048
"""Where the arms pulled in a sweep are pulled more often than this on average, blocks of the leader are faster."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def remember(desk):
    """Note the state of the game, so that a sweep can be taken back."""
    desk.number[ROUNDS_BEFORE] = desk.number[ROUNDS]
    desk.amount[REWARD_BEFORE] = desk.amount[REWARD_SUM]
    desk.amount[SPENT_BEFORE] = desk.amount[SPENT]
    for arm in range(desk.arms):
        desk.pulls_before[arm] = desk.pulls[arm]
        desk.used_before[arm] = desk.used[arm]
        desk.reward_before[arm] = desk.reward[arm]
        desk.square_before[arm] = desk.square[arm]
        desk.cost_before[arm] = desk.cost[arm]


@njit(cache=True, nogil=True, error_model="numpy")
def take_back(desk):
    """As if nothing had been pulled since; what was read stands on the tapes and will be read again."""
    desk.number[ROUNDS] = desk.number[ROUNDS_BEFORE]
    desk.amount[REWARD_SUM] = desk.amount[REWARD_BEFORE]
    desk.amount[SPENT] = desk.amount[SPENT_BEFORE]
    for arm in range(desk.arms):
        desk.pulls[arm] = desk.pulls_before[arm]
        desk.used[arm] = desk.used_before[arm]
        desk.reward[arm] = desk.reward_before[arm]
        desk.square[arm] = desk.square_before[arm]
        desk.cost[arm] = desk.cost_before[arm]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def arms_pulled(desk):
    """How many arms have been pulled since `remember`."""
    pulled = 0
    for arm in range(desk.arms):
        pulled += desk.pulls[arm] > desk.pulls_before[arm]
    return pulled


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def highest(index, rule, desk):
    """An arm with the highest index."""
    leader = 0
    top = -np.inf
    for arm in range(desk.arms):
        value = now(index, rule, desk, arm)
        if value > top:
            leader, top = arm, value
    return leader


@njit(cache=True, nogil=True, error_model="numpy")
def sure_rounds(desk, ends):
    """So many pulls of any arms neither end a game nor make an arm unaffordable, whatever they cost."""
    dearest = 0.0
    price = 0.0
    for arm in range(desk.arms):
        dearest = max(dearest, desk.cost_top[arm])
        price = max(price, desk.price[arm])
    room = ends.budgets[desk.number[CHECKPOINT]] - ends.tolerance - desk.amount[SPENT] - price
    return min(np.int64(max(room / dearest - 1.0, 0.0)), ends.max_rounds - desk.number[ROUNDS] - 1)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def worth_a_sweep(desk, rule, ends):
    """Whether sweeps are allowed and there is room for one; arms whose index is infinite are better drawn by lot."""
    if not rule.sweeps or desk.number[POOL_SIZE] > 0:
        return False
    return sure_rounds(desk, ends) >= max(LEAST_ROOM, desk.arms >> 1)


@njit(cache=True, nogil=True, error_model="numpy")
def fathom(index, rule, desk, world, arm, count):
    """How low the arm's index comes in its next ``count`` pulls, seen from a few of them."""
    lowest = now(index, rule, desk, arm)
    step = max(np.int64(1), count >> 3)
    for _ in range(count // step):
        read(desk, world, arm, step, np.inf, np.inf)
        lowest = min(lowest, now(index, rule, desk, arm))
    return lowest


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def aim(index, rule, desk, world, leader, depth, deepest):
    """What the indices of the leader and of the arm pulled most both come to in about ``depth`` pulls each.

    If the leader would not come down at all, more pulls are tried, but not more than ``deepest``.
    """
    most = leader
    for arm in range(desk.arms):
        if desk.pulls[arm] > desk.pulls[most]:
            most = arm
    top = now(index, rule, desk, leader)
    while True:
        lowest = fathom(index, rule, desk, world, leader, depth)
        if most != leader:
            lowest = max(lowest, fathom(index, rule, desk, world, most, depth))
        take_back(desk)
        if lowest < top or depth == deepest:
            return lowest
        depth = min(4 * depth, deepest)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def just_above(rule, value):
    """A level that an index of this value lies below, whatever rounding does."""
    return value + 4.0 * rule.slack * (1.0 + abs(value))


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_once(index, rule, desk, world, leader, room):
    """A sweep to a level that suits: GOING_ON, or GIVEN_UP if nothing happened."""
    number, amount = desk.number, desk.amount
    top = now(index, rule, desk, leader)
    if not top < np.inf:
        return GIVEN_UP
    last = number[ROUNDS] + room
    target = min(room >> 1, np.int64(max(LARGEST_SWEEP, 4 * desk.arms)))
    deepest = min(target, world.chunk)
    depth = max(np.int64(1), np.int64(amount[SHARE] * float(deepest)))
    remember(desk)
    level = just_above(rule, aim(index, rule, desk, world, leader, depth, deepest))
    for _ in range(TRIES):
        if not level < top:
            break
        status, lowest = sweep(index, rule, desk, world, level, target, last, 4 * depth + (target >> 3))
        if status == GOING_ON:
            played = float(number[ROUNDS] - number[ROUNDS_BEFORE])
            amount[SHARE] = min(amount[SHARE] * min(max(float(target) / max(played, 1.0), 0.5), 2.0), 1.0)
            return GOING_ON
        take_back(desk)
        number[TAKEN_BACK] += 1
        amount[SHARE] *= 0.7
        # the arm that would not come down to the level did come down to this
        level = just_above(rule, lowest)
    return GIVEN_UP


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_on(index, rule, desk, world, ends):
    """One sweep after the other while they need fewer evaluations a round than the lazy engine did."""
    number, amount = desk.number, desk.amount
    began, evaluated = number[ROUNDS], number[EVALUATIONS]
    leader = highest(index, rule, desk)
    status = GOING_ON
    pays = True
    while status == GOING_ON and pays and worth_a_sweep(desk, rule, ends):
        status = sweep_once(index, rule, desk, world, leader, sure_rounds(desk, ends))
        leader = number[LEADER]
        lazily = DEARER * amount[LAZY_PRICE] * float(number[ROUNDS] - began)
        stake = float(STAKE * desk.arms) if status == GOING_ON else 0.0
        pays = float(number[EVALUATIONS] - evaluated) < lazily + stake
        if status == GOING_ON and number[ROUNDS] - number[ROUNDS_BEFORE] > SOLE * arms_pulled(desk):
            break
    number[SWEPT] += number[ROUNDS] - began
    number[PATIENCE] = max(FIRST_PATIENCE, desk.arms) if pays else min(2 * number[PATIENCE], 1 << 30)
