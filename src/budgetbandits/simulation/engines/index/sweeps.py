"""Sweeps near a tie: all arms down to a level, one after the other, in any order.

As long as some index lies above a level, an index policy pulls an arm whose index does. If indices rise with the round,
every order of such pulls ends in the same round in the same state, given the outcome of each arm's k-th pull
(docs/explanation/engine.md, "Sweeps", proves it). So the leader need not be known: each arm is pulled until its index is
below the level, in a loop of its own.

Sweeps should be long, but end before a budget may. So the level is taken from the leader's own tape: what its index
comes to after some pulls. A sweep that does not come down to its level in time is taken back: what it read stays on the
tapes, and the lazy loop plays on from the same tapes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.blocks import spreads
from budgetbandits.simulation.engines.index.pulls import lengthen, tape_of
from budgetbandits.simulation.engines.index.state import FIRST_PATIENCE, lowest_index, now, pulls_of, score
from budgetbandits.simulation.engines.runtime.records import GIVEN_UP, GOING_ON, float_pointer, whole_pointer

NARROWEST_SPAN = 1.5
"""Spans narrower than this many standard deviations of one pull are not worth their evaluation."""


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def span(game, index, arm, value, above, longest):
    """Pulls that keep the index above ``above``: (how many, up to what shortfall of reward, what excess of cost)."""
    stride = game.reach * (value - above) * float(pulls_of(game, arm))
    if not game.blocks or stride < NARROWEST_SPAN or not value < np.inf:
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
        if not stride >= NARROWEST_SPAN:
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
            return GIVEN_UP, value  # the lazy loop plays on from here, comes to it and reports it
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
def descend(game, index, above, below, until, last, limit):
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
            status, value = slide(game, index, arm, above, min(last, game.rounds + limit))
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
def sweep(game, index, level, patience, last, limit):
    """Pull until every index is below the level: (status, a bound on the indices then).

    Given up, with the index that would not come down, where that takes one arm more than ``limit`` pulls at a time or
    all arms more than there are before the round ``last``. Rounding gets a margin: what is pulled has an index above
    it, what is left one below it, or the sweep is given up, too.
    """
    margin = game.slack * (1.0 + abs(level))
    while True:
        until = game.rounds + patience
        status, top = descend(game, index, level + margin, level - margin, until, last, limit)
        if status != GOING_ON:
            return status, top
        if game.rounds <= until:
            return (GOING_ON if top < level - margin else GIVEN_UP), top


# --- when to sweep, and down to which level --------------------------------------------------------------------------


LARGEST_SWEEP = 1 << 13
"""Pulls that a sweep aims at, or four of each arm, if there is room for twice as many."""

LEAST_ROOM = 32
"""Fewest pulls before a budget may end with which a sweep pays; it also needs half as many as there are arms."""

TRIES = 4
"""Levels tried before the lazy engine plays on."""

LAZY_EVALUATION_PRICE = 2.0
"""How many evaluations of a sweep take the time of one by the lazy engine with all that goes with it."""

STAKE = 8
"""Evaluations of each arm that are risked before sweeps are found not to pay."""

PULLS_PER_ARM_MAX = 2048
"""Where the arms pulled in a sweep are pulled more often than this on average, blocks of the leader are faster."""


@njit(cache=True, nogil=True, error_model="numpy")
def remember(game):
    """Note the state of the game, so that a sweep can be taken back."""
    game.rounds_before, game.reward_before, game.spent_before = game.rounds, game.reward, game.spent
    copy_rows(game, False)


@njit(cache=True, nogil=True, error_model="numpy")
def take_back(game):
    """Undo the pulls since the sweep began; outcomes that were read stay on the tapes and are read again."""
    game.rounds, game.reward, game.spent = game.rounds_before, game.reward_before, game.spent_before
    copy_rows(game, True)


@njit(cache=True, nogil=True, error_model="numpy")
def copy_rows(game, back):
    """Copy what pulls change of the arms to where `remember` keeps it, or back; all are numbers of eight bytes."""
    for row, kept in (
        (game.pulls_at, game.pulls_before_at),
        (game.used_at, game.used_before_at),
        (game.rewards_at, game.rewards_before_at),
        (game.squares_at, game.squares_before_at),
        (game.costs_at, game.costs_before_at),
    ):
        source, target = whole_pointer(kept if back else row), whole_pointer(row if back else kept)
        for arm in range(game.arms):
            target[arm] = source[arm]


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
    """How many pulls surely neither end a game nor make an arm unaffordable, whatever they cost."""
    top = 0.0
    price = 0.0
    for arm in range(game.arms):
        top = max(top, float_pointer(game.cost_top_at)[arm])
        price = max(price, float_pointer(game.price_at)[arm])
    room = float_pointer(game.budget_at)[game.checkpoint] - game.tolerance - game.spent - price
    return min(np.int64(max(room / top - 1.0, 0.0)), game.max_rounds - game.rounds - 1)


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
    """The value that the indices of the leader and of the arm pulled most both reach in about ``depth`` pulls each.

    If the leader would not come down at all, more pulls are tried, but not more than ``deepest``.
    """
    veteran = leader
    for arm in range(game.arms):
        if pulls_of(game, arm) > pulls_of(game, veteran):
            veteran = arm
    top = now(game, index, leader)
    while True:
        lowest = fathom(game, index, leader, depth)
        if veteran != leader:
            lowest = max(lowest, fathom(game, index, veteran, depth))
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
        lazily = LAZY_EVALUATION_PRICE * game.lazy_price * float(game.rounds - began)
        stake = float(STAKE * game.arms) if status == GOING_ON else 0.0
        pays = float(game.evaluations - evaluated) < lazily + stake
        if status == GOING_ON and game.rounds - game.rounds_before > PULLS_PER_ARM_MAX * arms_pulled(game):
            break
    game.swept += game.rounds - began
    game.patience = max(FIRST_PATIENCE, game.arms) if pays else min(2 * game.patience, 1 << 30)
