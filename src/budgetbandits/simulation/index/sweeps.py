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
from budgetbandits.simulation.index.desk import (
    CHECKPOINT,
    DROP,
    EVALUATIONS,
    FIRST_PATIENCE,
    FLOOR_SEEN,
    GIVEN_UP,
    GOING_ON,
    LEADER,
    NEEDS_OUTCOMES,
    PATIENCE,
    REACH,
    REWARD_SUM,
    ROUNDS,
    SPENT,
    SWEEPS,
    SWEPT,
    TAKEN_BACK,
)
from budgetbandits.simulation.index.election import now
from budgetbandits.simulation.index.pulling import score
from budgetbandits.simulation.index.tapes import lengthen, place_on_tape

FINITE = 1e300
"""A level that only infinite indices lie above."""

NARROWEST = 1.5
"""Spans narrower than this many standard deviations of one pull are not worth their evaluation."""

PULLS_AN_ARM = 64
"""So many pulls of each arm a sweep aims at, if there is room for four times as many."""

LEAST_ROOM = 32
"""With room for fewer pulls before a budget may end, or for fewer than there are arms, a sweep does not pay."""

LEAST_TAPE = 64
"""Tapes shorter than this are for outcomes that NumPy draws; sweeps would be taken back all the time."""

SOLE = 256
"""Where the arms pulled in a sweep are pulled more often than this on average, blocks of the leader are faster."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def span(index, rule, desk, arm, value, above, longest):
    """Pulls that keep the index above ``above``: (how many, up to what shortfall of reward, what excess of cost)."""
    stride = desk.amount[REACH] * (value - above) * float(desk.pulls[arm])
    if not rule.blocks or stride < NARROWEST or not value < np.inf:
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
    played = np.int64(0)
    while played < count and short <= shortfall and over <= excess:
        used = desk.used[arm] + played
        if used == desk.filled[arm]:
            free = world.chunk - (used - desk.used_before[arm])
            if free == 0:
                return GIVEN_UP
            if desk.cost_atoms[arm] == 0:
                number[LEADER] = arm
                return NEEDS_OUTCOMES
            lengthen(desk, world, arm, min(free, min(np.int64(64), max(np.int64(8), desk.pulls[arm]))))
        spot = place_on_tape(world, arm, used)
        earned, paid = world.buffer[spot], world.buffer[spot + 1]
        reward += earned
        square += earned * earned
        cost += paid
        short += mean_reward - earned
        over += paid - mean_cost
        played += 1
    amount[REWARD_SUM] += reward - desk.reward[arm]
    amount[SPENT] += cost - desk.cost[arm]
    number[ROUNDS] += played
    desk.reward[arm], desk.square[arm], desk.cost[arm] = reward, square, cost
    desk.pulls[arm] += played
    desk.used[arm] += played
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def slide(index, rule, desk, world, arm, above, last):
    """Pull the arm until its index is not above ``above``: (status, its index then)."""
    while True:
        value = now(index, rule, desk, arm)
        if not value > above:
            return GOING_ON, value
        longest = last - desk.number[ROUNDS]
        if longest <= 0:
            return GIVEN_UP, value
        count, shortfall, excess = span(index, rule, desk, arm, value, above, longest)
        status = read(desk, world, arm, count, shortfall, excess)
        if status != GOING_ON:
            return status, value


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def in_round(index, rule, desk, arm, rounds):
    """The arm's index in a later round, if it is not pulled until then: no index before is higher."""
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, rounds, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def descend(index, rule, desk, world, above, below, until, last):
    """Pull until no index is above ``above``: (status, the highest index that could still be found, or a bound on it).

    An arm that is below in the round ``until`` need not be looked at before that round; the others wait for their turn
    again, because indices rise while other arms are pulled.
    """
    top = -np.inf
    waiting = 0
    for arm in range(desk.arms):
        bound = in_round(index, rule, desk, arm, until)
        if bound < below:
            top = max(top, bound)
        else:
            desk.candidate[waiting] = arm
            waiting += 1
    while waiting > 0:
        began = desk.number[ROUNDS]
        highest = -np.inf
        kept = 0
        for spot in range(waiting):
            arm = desk.candidate[spot]
            pulls = desk.pulls[arm]
            status, value = slide(index, rule, desk, world, arm, above, last)
            if status != GOING_ON:
                return status, top
            bound = in_round(index, rule, desk, arm, until) if desk.pulls[arm] > pulls else np.inf
            if bound < below:
                top = max(top, bound)
            else:
                desk.candidate[kept] = arm
                kept += 1
                highest = max(highest, value)
        waiting = kept
        if desk.number[ROUNDS] == began:
            return GOING_ON, max(top, highest)
    return GOING_ON, top


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sweep(index, rule, desk, world, level, patience, last):
    """Pull until every index is below the level, before the round ``last``: (status, a bound on the indices then).

    Rounding gets a margin: what is pulled has an index above it, what is left one below it, or the sweep is given up.
    """
    margin = rule.slack * (1.0 + abs(level))
    while True:
        until = desk.number[ROUNDS] + patience
        status, top = descend(index, rule, desk, world, level + margin, level - margin, until, last)
        if status != GOING_ON:
            return status, top
        if desk.number[ROUNDS] <= until:
            return (GOING_ON if top < level - margin else GIVEN_UP), top


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def remember(desk):
    """Note every arm's state, so that a sweep can be taken back."""
    for arm in range(desk.arms):
        desk.pulls_before[arm] = desk.pulls[arm]
        desk.used_before[arm] = desk.used[arm]
        desk.reward_before[arm] = desk.reward[arm]
        desk.square_before[arm] = desk.square[arm]
        desk.cost_before[arm] = desk.cost[arm]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def take_back(desk):
    """As if the sweep had not been; what it read stands on the tapes and will be read again."""
    for arm in range(desk.arms):
        desk.pulls[arm] = desk.pulls_before[arm]
        desk.used[arm] = desk.used_before[arm]
        desk.reward[arm] = desk.reward_before[arm]
        desk.square[arm] = desk.square_before[arm]
        desk.cost[arm] = desk.cost_before[arm]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
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
def worth_a_sweep(desk, rule, world, ends):
    """Whether there is room and memory for sweeps."""
    if rule.kind == FLOOR_SEEN or world.chunk < LEAST_TAPE:
        return False
    return sure_rounds(desk, ends) >= max(LEAST_ROOM, desk.arms)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_on(index, rule, desk, world, ends):
    """One sweep after the other while they pay: GOING_ON, or NEEDS_OUTCOMES (of the arm called leader)."""
    number, amount = desk.number, desk.amount
    top = -np.inf
    for arm in range(desk.arms):
        top = max(top, now(index, rule, desk, arm))
    while worth_a_sweep(desk, rule, world, ends):
        room = sure_rounds(desk, ends)
        began, earned, spent = number[ROUNDS], amount[REWARD_SUM], amount[SPENT]
        target = min(room >> 2, PULLS_AN_ARM * desk.arms)
        if not amount[DROP] > 0.0:
            amount[DROP] = 0.02 * (1.0 + abs(top)) if top < np.inf else 0.0
        level = top - amount[DROP] if top < np.inf else FINITE
        remember(desk)
        status, top = sweep(index, rule, desk, world, level, target, began + room)
        if status != GOING_ON:
            take_back(desk)
            number[ROUNDS], amount[REWARD_SUM], amount[SPENT] = began, earned, spent
            if status == NEEDS_OUTCOMES:
                return NEEDS_OUTCOMES
            number[TAKEN_BACK] += 1
            amount[DROP] *= 0.25
            number[PATIENCE] = min(2 * number[PATIENCE], 1 << 30)
            return GOING_ON
        number[PATIENCE] = FIRST_PATIENCE
        played = number[ROUNDS] - began
        number[SWEEPS] += 1
        number[SWEPT] += played
        amount[DROP] *= min(max(float(target) / float(max(played, 1)), 0.25), 4.0)
        pulled = 0
        for arm in range(desk.arms):
            pulled += desk.pulls[arm] > desk.pulls_before[arm]
        if played > SOLE * pulled:
            return GOING_ON
    return GOING_ON
