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
    EVALUATIONS,
    FIRST_PATIENCE,
    FLOOR_SEEN,
    GIVEN_UP,
    GOING_ON,
    LEADER,
    NEEDS_OUTCOMES,
    PATIENCE,
    REACH,
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
from budgetbandits.simulation.index.election import now
from budgetbandits.simulation.index.pulling import score
from budgetbandits.simulation.index.tapes import lengthen, place_on_tape

FINITE = 1e300
"""A level that only infinite indices lie above."""

NARROWEST = 1.5
"""Spans narrower than this many standard deviations of one pull are not worth their evaluation."""

LARGEST_SWEEP = 1 << 13
"""So many pulls a sweep aims at, if there is room for three times as many."""

LEAST_ROOM = 32
"""With room for fewer pulls before a budget may end, or for fewer than there are arms, a sweep does not pay."""

TRIES = 4
"""Levels tried before the lazy engine plays on."""

LEAST_TAPE = 64
"""Tapes shorter than this are for outcomes that NumPy draws; sweeps would be taken back all the time."""

SOLE = 2048
"""Where the arms pulled in a sweep are pulled more often than this on average, blocks of the leader are faster."""


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
            if desk.cost_atoms[arm] == 0:
                number[LEADER] = arm
                return NEEDS_OUTCOMES
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
def worth_a_sweep(desk, rule, world, ends):
    """Whether sweeps are allowed, and there is room and memory for them."""
    if rule.kind == FLOOR_SEEN or world.chunk < LEAST_TAPE:
        return False
    return sure_rounds(desk, ends) >= max(LEAST_ROOM, desk.arms >> 1)


@njit(cache=True, nogil=True, error_model="numpy")
def fathom(index, rule, desk, world, arm, count):
    """How low the arm's index comes in its next ``count`` pulls, seen from a few of them: (status, the lowest)."""
    lowest = now(index, rule, desk, arm)
    step = max(np.int64(1), count >> 3)
    for _ in range(count // step):
        status = read(desk, world, arm, step, np.inf, np.inf)
        if status != GOING_ON:
            return status, lowest
        lowest = min(lowest, now(index, rule, desk, arm))
    return GOING_ON, lowest


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def aim(index, rule, desk, world, leader, depth, deepest):
    """A level that the leader and the arm pulled most come to in about ``depth`` pulls each: (status, level).

    If the leader would not come down at all, more pulls are tried, but not more than ``deepest``.
    """
    most = leader
    for arm in range(desk.arms):
        if desk.pulls[arm] > desk.pulls[most]:
            most = arm
    top = now(index, rule, desk, leader)
    while True:
        status, level = fathom(index, rule, desk, world, leader, depth)
        if status == GOING_ON and most != leader:
            status, other = fathom(index, rule, desk, world, most, depth)
            level = max(level, other)
        take_back(desk)
        if status != GOING_ON or level < top or depth == deepest:
            return status, level
        depth = min(4 * depth, deepest)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def just_above(rule, value):
    """A level that an index of this value lies below, whatever rounding does."""
    return value + 4.0 * rule.slack * (1.0 + abs(value))


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_once(index, rule, desk, world, leader, room):
    """A sweep to a level that suits: GOING_ON, GIVEN_UP (nothing happened) or NEEDS_OUTCOMES of the arm that leads."""
    number, amount = desk.number, desk.amount
    top = now(index, rule, desk, leader)
    last = number[ROUNDS] + room
    target = min(min(room >> 1, np.int64(LARGEST_SWEEP)), world.chunk)
    depth = max(np.int64(1), np.int64(amount[SHARE] * float(target)))
    level = FINITE
    most = room
    remember(desk)
    if top < np.inf:
        most = 4 * depth + (target >> 3)
        status, lowest = aim(index, rule, desk, world, leader, depth, target)
        if status != GOING_ON:
            return status
        level = just_above(rule, lowest)
    for _ in range(TRIES):
        if not level < top:
            break
        status, lowest = sweep(index, rule, desk, world, level, target, last, most)
        if status == GOING_ON:
            if top < np.inf:
                played = float(number[ROUNDS] - number[ROUNDS_BEFORE])
                amount[SHARE] = min(amount[SHARE] * min(max(float(target) / max(played, 1.0), 0.5), 2.0), 1.0)
            return GOING_ON
        take_back(desk)
        if status == NEEDS_OUTCOMES:
            return NEEDS_OUTCOMES
        number[TAKEN_BACK] += 1
        amount[SHARE] *= 0.7
        # the arm that would not come down to the level did come down to this
        level = just_above(rule, lowest)
    return GIVEN_UP


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_on(index, rule, desk, world, ends):
    """One sweep after the other while they pay: GOING_ON, or NEEDS_OUTCOMES of the arm that is called leader."""
    number = desk.number
    leader = highest(index, rule, desk)
    while worth_a_sweep(desk, rule, world, ends):
        status = sweep_once(index, rule, desk, world, leader, sure_rounds(desk, ends))
        if status == NEEDS_OUTCOMES:
            return NEEDS_OUTCOMES
        if status == GIVEN_UP:
            number[PATIENCE] = min(2 * number[PATIENCE], 1 << 30)
            return GOING_ON
        number[PATIENCE] = FIRST_PATIENCE
        leader = number[LEADER]
        played = number[ROUNDS] - number[ROUNDS_BEFORE]
        number[SWEPT] += played
        pulled = 0
        for arm in range(desk.arms):
            pulled += desk.pulls[arm] > desk.pulls_before[arm]
        if played > SOLE * pulled:
            return GOING_ON
    return GOING_ON
