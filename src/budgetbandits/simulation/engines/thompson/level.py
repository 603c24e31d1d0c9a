"""The level: which arms are hot and which are cold, the alarms of the cold ones, and moving to a better level.

If nothing reaches the level in a round, the fallback looks for the best ratio below it.

Alarm times stand in a tournament tree: the root is the earliest, a change walks up only as far as it matters. Leaves
sit at base .. 2*base-1, node k has children 2k and 2k+1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, geometric_from_rate, waiting_rate
from budgetbandits.simulation.engines.runtime.records import float_pointer, set_leaf, whole_pointer
from budgetbandits.simulation.engines.thompson.envelope import NO_TANGENT, accepts, draw_ratio, tangent
from budgetbandits.simulation.engines.thompson.hot_arms import keep_constants
from budgetbandits.simulation.engines.thompson.planning import choose_level
from budgetbandits.simulation.engines.thompson.state import (
    KIND,
    LOG_BOUND,
    PRICE,
    RATE,
    SLOPE,
    X,
    Y,
    counts_of,
    forget_near_tie,
    hot_arms,
    is_hot,
    tangent_of,
)

# --- alarms ----------------------------------------------------------------------------------------------------------


NO_ALARM = (1 << 63) - 1
"""Round of an alarm that never comes."""


@njit(cache=True, nogil=True)
def first_ringing(tree, base):
    """The slot whose alarm is the earliest (the leftmost of several)."""
    node = 1
    time = tree[1]
    while node < base:
        node *= 2
        if tree[node] != time:
            node += 1
    return node - base


@njit(cache=True, nogil=True)
def rebuild(tree, base):
    """Compute all sums of a tree again, from its leaves."""
    for node in range(base - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@njit(cache=True, nogil=True)
def widen(tree, base):
    """Double the number of leaves; returns the new base."""
    wider = 2 * base
    for slot in range(base):
        tree[wider + slot] = tree[base + slot]
    for slot in range(base, wider):
        tree[wider + slot] = NO_ALARM
    rebuild(tree, wider)
    return wider


# --- the level -------------------------------------------------------------------------------------------------------


NUDGE = 1.0 + 1e-12  # what a restless game moves its level by: all alarms are set again, and nothing else changes


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def replan(game):
    """Look for a cheaper level; with a new one every arm is sorted again."""
    game.plans += 1
    evaluated = game.plan_tangents
    if game.restless > 0.0:
        chosen = game.level * NUDGE if game.plans % 2 == 0 else game.level / NUDGE
    else:
        chosen = choose_level(game)
    cost = (game.plan_tangents - evaluated) * PRICE.tangent
    if chosen != game.level:
        game.level_changes += 1
        game.level = chosen
        apply_level(game)
        cost += game.active * PRICE.tangent
        game.patience = max(3.0, game.patience * 0.5)
        game.in_blocks = 0
        forget_near_tie(game)
    else:
        game.patience = min(64.0, game.patience * 2.0)
    game.limit = game.restless if game.restless > 0.0 else cost * game.patience
    game.waste = 0.0
    game.try_blocks = 1 - game.in_blocks


@njit(cache=True, nogil=True, error_model="numpy")
def apply_level(game):
    """Sort every pulled arm into hot or cold and set fresh alarms."""
    tree, hot, hot_place = whole_pointer(game.tree_at), whole_pointer(game.hot_at), whole_pointer(game.hot_place_at)
    game.hot_count = 0
    for slot in range(game.active):
        if take_tangent(game, slot):
            hot_place[slot] = -1
            tree[game.base + slot] = game.round - 1 + draw_wait(game, slot)
        else:
            hot_place[slot] = game.hot_count
            hot[game.hot_count] = slot
            game.hot_count += 1
            keep_hot_constants(game, slot)
            tree[game.base + slot] = NO_ALARM
    rebuild(tree, game.base)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def look_at(game, slot, pulls):
    """A cold arm's alarm was set for the posterior it had; a hot one may have cooled down."""
    next_check = whole_pointer(game.next_check_at)
    hot = is_hot(game, slot)
    if hot and (game.in_blocks or pulls < next_check[slot]):
        if not game.in_blocks:
            keep_hot_constants(game, slot)
        return
    game.tangents += 1
    game.waste += PRICE.tangent
    next_check[slot] = pulls + pulls // 8 + 1
    if take_tangent(game, slot):
        if hot:
            forget_near_tie(game)
            become_cold(game, slot)
            game.try_blocks = 1
        set_next_alarm(game, slot, game.round - 1)
        return
    if not hot:
        forget_near_tie(game)
        become_hot(game, slot)
        if game.in_blocks:
            game.in_blocks = 0
            keep_hot_constants(game, game.leader)
    keep_hot_constants(game, slot)


@njit(cache=True, nogil=True, error_model="numpy")
def become_hot(game, slot):
    """A cold arm becomes hot."""
    set_leaf(whole_pointer(game.tree_at), game.base + slot, np.int64(NO_ALARM))
    whole_pointer(game.hot_place_at)[slot] = game.hot_count
    whole_pointer(game.hot_at)[game.hot_count] = slot
    game.hot_count += 1


@njit(cache=True, nogil=True, error_model="numpy")
def become_cold(game, slot):
    """A hot arm becomes cold; the last of the hot ones takes its place."""
    hot, hot_place = whole_pointer(game.hot_at), whole_pointer(game.hot_place_at)
    place = hot_place[slot]
    game.hot_count -= 1
    hot[place] = hot[game.hot_count]
    hot_place[hot[place]] = place
    hot_place[slot] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def take_tangent(game, slot):
    """Store the arm's bound at the level; True when it stays cold."""
    a, b, c, d = counts_of(game, slot)
    kind, log_bound, slope, x, y = tangent(a, b, c, d, game.level, game.classical)
    if kind == NO_TANGENT or log_bound > game.log_hot:
        return False
    tangents = float_pointer(game.tangent_rows_at)
    tangents[8 * slot + LOG_BOUND] = log_bound
    tangents[8 * slot + SLOPE] = slope
    tangents[8 * slot + X] = x
    tangents[8 * slot + Y] = y
    tangents[8 * slot + KIND] = kind
    tangents[8 * slot + RATE] = waiting_rate(log_bound)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def set_next_alarm(game, slot, after):
    """The next round after this one in which a cold arm may exceed the level."""
    set_leaf(whole_pointer(game.tree_at), game.base + slot, after + draw_wait(game, slot))


@njit(cache=True, nogil=True, error_model="numpy")
def draw_wait(game, slot):
    """How many rounds it takes a cold arm to exceed the level if its bound were its chance."""
    return geometric_from_rate(game.stream_at, float_pointer(game.tangent_rows_at)[8 * slot + RATE])


@njit(cache=True, nogil=True, error_model="numpy")
def keeps_ratio(game, slot, ratio):
    """Whether a ratio proposed by an arm's bound is one of its own."""
    return accepts(game.stream_at, counts_of(game, slot), tangent_of(game, slot), ratio)


@njit(cache=True, nogil=True, error_model="numpy")
def keep_hot_constants(game, slot):
    """Store the constants of a hot arm."""
    keep_constants(float_pointer(game.constants_at), slot, counts_of(game, slot))


@njit(cache=True, nogil=True, error_model="numpy")
def refresh_hot_arms(game):
    """Bring the constants of all hot arms up to date."""
    for place in range(game.hot_count):
        keep_hot_constants(game, hot_arms(game)[place])


# --- the fallback ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def search_below(game, best, winner):
    """Nothing reached the level: find the best ratio, every cold arm being conditioned on a ratio below the level.

    The arms are asked whether they reach a rung below the level, which one or a few most likely do; only if none does,
    a lower one.  So hardly any arm is drawn that does not come near the best.  How far down the first rung is follows
    the searches before, so that about one in seventeen needs a second.
    """
    lowest = math.log(game.level / best) if best > 0.0 else np.inf
    above = 0.0
    step = game.rung
    while True:
        gap = min(above + step, lowest)
        candidate = best_between(game, above, gap)
        if candidate >= 0 or gap == lowest:
            break
        above = gap
        step *= 2.0
    game.rung = min(game.rung * 1.3, 8.0) if above > 0.0 else max(game.rung * 0.984, 1e-6)
    return candidate if candidate >= 0 else winner


@njit(cache=True, nogil=True, error_model="numpy")
def best_between(game, above, gap):
    """The best of the cold arms, each known to be at most level / e^above, if it exceeds level / e^gap; else -1.

    An accepted ratio above what is known contradicts it, so that arm's whole trial is repeated.
    """
    stream, level = game.stream_at, game.level
    tangents, hot_place = float_pointer(game.tangent_rows_at), whole_pointer(game.hot_place_at)
    ceiling = level * math.exp(-above)
    best = level * math.exp(-gap)
    winner = -1
    for slot in range(game.active):
        if hot_place[slot] >= 0:
            continue
        slope = tangents[8 * slot + SLOPE]
        while True:
            log_chance = tangents[8 * slot + LOG_BOUND] + slope * gap
            if log_chance < -0.4:
                if exponential(stream) < -log_chance:
                    break
                ratio = best * math.exp(exponential(stream) / slope)
                if not keeps_ratio(game, slot, ratio):
                    break
                if ratio > ceiling:
                    continue
            else:
                a, b, c, d = counts_of(game, slot)
                ratio = draw_ratio(stream, a, b, c, d, game.classical)
                if ratio > ceiling:
                    continue
                if ratio <= best:
                    break
            best = ratio
            winner = slot
            gap = math.log(level / best)
            break
    return winner
