"""When to sweep, and down to which level.

Sweeps want to be long, but to end before a budget may. So a level is taken from the leader's own tape: what its index
comes to after some pulls. A sweep that does not come down to its level in time is taken back: what it read stands on
the tapes, so that whoever plays on reads the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.scores import now
from budgetbandits.simulation.engines.index.state import FIRST_PATIENCE, pulls_of
from budgetbandits.simulation.engines.index.sweeps import read, sweep
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.engines.runtime.status import GIVEN_UP, GOING_ON

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


@njit(cache=True, nogil=True, error_model="numpy")
def remember(game):
    """Note the state of the game, so that a sweep can be taken back."""
    game.rounds_before, game.reward_before, game.spent_before = game.rounds, game.reward, game.spent
    copy_words(game.pulls_at, game.pulls_before_at, game.arms)
    copy_words(game.used_at, game.used_before_at, game.arms)
    copy_words(game.rewards_at, game.rewards_before_at, game.arms)
    copy_words(game.squares_at, game.squares_before_at, game.arms)
    copy_words(game.costs_at, game.costs_before_at, game.arms)


@njit(cache=True, nogil=True, error_model="numpy")
def take_back(game):
    """As if nothing had been pulled since; what was read stands on the tapes and will be read again."""
    game.rounds, game.reward, game.spent = game.rounds_before, game.reward_before, game.spent_before
    copy_words(game.pulls_before_at, game.pulls_at, game.arms)
    copy_words(game.used_before_at, game.used_at, game.arms)
    copy_words(game.rewards_before_at, game.rewards_at, game.arms)
    copy_words(game.squares_before_at, game.squares_at, game.arms)
    copy_words(game.costs_before_at, game.costs_at, game.arms)


@njit(cache=True, nogil=True, error_model="numpy")
def copy_words(source, target, count):
    """Copy numbers of eight bytes from one address to another."""
    there, here = whole_pointer(source), whole_pointer(target)
    for place in range(count):
        here[place] = there[place]


@njit(cache=True, nogil=True, error_model="numpy")
def arms_pulled(game):
    """How many arms have been pulled since `remember`."""
    before = whole_pointer(game.pulls_before_at)
    pulled = 0
    for arm in range(game.arms):
        pulled += pulls_of(game, arm) > before[arm]
    return pulled


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def highest(game, index):
    """An arm with the highest index."""
    leader = np.int64(0)
    top = -np.inf
    for arm in range(game.arms):
        value = now(game, index, arm)
        if value > top:
            leader, top = arm, value
    return leader


@njit(cache=True, nogil=True, error_model="numpy")
def sure_rounds(game):
    """So many pulls of any arms neither end a game nor make an arm unaffordable, whatever they cost."""
    dearest = 0.0
    price = 0.0
    for arm in range(game.arms):
        dearest = max(dearest, float_pointer(game.cost_top_at)[arm])
        price = max(price, float_pointer(game.price_at)[arm])
    room = float_pointer(game.budget_at)[game.checkpoint] - game.tolerance - game.spent - price
    return min(np.int64(max(room / dearest - 1.0, 0.0)), game.max_rounds - game.rounds - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def worth_a_sweep(game):
    """Whether sweeps are allowed and there is room for one; arms whose index is infinite are better drawn by lot."""
    if not game.sweeps or game.pool_size > 0:
        return False
    return sure_rounds(game) >= max(LEAST_ROOM, game.arms >> 1)


@njit(cache=True, nogil=True, error_model="numpy")
def fathom(game, index, arm, count):
    """How low the arm's index comes in its next ``count`` pulls, seen from a few of them."""
    lowest = now(game, index, arm)
    step = max(np.int64(1), count >> 3)
    for _ in range(count // step):
        read(game, arm, step, np.inf, np.inf)
        lowest = min(lowest, now(game, index, arm))
    return lowest


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def aim(game, index, leader, depth, deepest):
    """What the indices of the leader and of the arm pulled most both come to in about ``depth`` pulls each.

    If the leader would not come down at all, more pulls are tried, but not more than ``deepest``.
    """
    most = leader
    for arm in range(game.arms):
        if pulls_of(game, arm) > pulls_of(game, most):
            most = arm
    top = now(game, index, leader)
    while True:
        lowest = fathom(game, index, leader, depth)
        if most != leader:
            lowest = max(lowest, fathom(game, index, most, depth))
        take_back(game)
        if lowest < top or depth == deepest:
            return lowest
        depth = min(4 * depth, deepest)


@njit(cache=True, nogil=True, error_model="numpy")
def just_above(game, value):
    """A level that an index of this value lies below, whatever rounding does."""
    return value + 4.0 * game.slack * (1.0 + abs(value))


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_once(game, index, leader, room):
    """A sweep to a level that suits: GOING_ON, or GIVEN_UP if nothing happened."""
    top = now(game, index, leader)
    if not top < np.inf:
        return GIVEN_UP
    last = game.rounds + room
    target = min(room >> 1, np.int64(max(LARGEST_SWEEP, 4 * game.arms)))
    deepest = min(target, game.chunk)
    depth = max(np.int64(1), np.int64(game.share * float(deepest)))
    remember(game)
    level = just_above(game, aim(game, index, leader, depth, deepest))
    for _ in range(TRIES):
        if not level < top:
            break
        status, lowest = sweep(game, index, level, target, last, 4 * depth + (target >> 3))
        if status == GOING_ON:
            played = float(game.rounds - game.rounds_before)
            game.share = min(game.share * min(max(float(target) / max(played, 1.0), 0.5), 2.0), 1.0)
            return GOING_ON
        take_back(game)
        game.taken_back += 1
        game.share *= 0.7
        # the arm that would not come down to the level did come down to this
        level = just_above(game, lowest)
    return GIVEN_UP


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def sweep_on(game, index):
    """One sweep after the other while they need fewer evaluations per round than the lazy engine did."""
    began, evaluated = game.rounds, game.evaluations
    leader = highest(game, index)
    status = GOING_ON
    pays = True
    while status == GOING_ON and pays and worth_a_sweep(game):
        status = sweep_once(game, index, leader, sure_rounds(game))
        leader = game.leader
        lazily = DEARER * game.lazy_price * float(game.rounds - began)
        stake = float(STAKE * game.arms) if status == GOING_ON else 0.0
        pays = float(game.evaluations - evaluated) < lazily + stake
        if status == GOING_ON and game.rounds - game.rounds_before > SOLE * arms_pulled(game):
            break
    game.swept += game.rounds - began
    game.patience = max(FIRST_PATIENCE, game.arms) if pays else min(2 * game.patience, 1 << 30)
