"""The pieces of a round: tangents of cold arms, the fallback, the leader's window and its duels."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import exponential, geometric_from_rate, waiting_rate
from budgetbandits.simulation.compiled.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.thompson.alarms import NEVER, rebuild, set_alarm
from budgetbandits.simulation.thompson.envelope import (
    KIND,
    LOG_BOUND,
    NO_TANGENT,
    RATE,
    SLOPE,
    X,
    Y,
    accepts,
    draw_ratio,
    draw_shortfall,
    log_shortfall,
    shortfall_tilt,
    tangent,
)
from budgetbandits.simulation.thompson.hot_arms import keep_constants
from budgetbandits.simulation.thompson.memory import counts_of, hot_arm, tangent_of
from budgetbandits.simulation.thompson.planning import PRICE_DIP, PRICE_WINDOW


@njit(cache=True, nogil=True, error_model="numpy")
def take_tangent(game, slot):
    """Store the arm's bound at the level; True when it stays cold."""
    a, b, c, d = counts_of(game, slot)
    kind, log_bound, slope, x, y = tangent(a, b, c, d, game.level, game.classical)
    if kind == NO_TANGENT or log_bound > game.log_hot:
        return False
    tangents = float_pointer(game.tangents_at)
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
    wait = geometric_from_rate(game.stream_at, tangent_of(game, slot, RATE))
    set_alarm(whole_pointer(game.tree_at), game.base, slot, after + wait)


@njit(cache=True, nogil=True, error_model="numpy")
def keep_hot_constants(game, slot):
    keep_constants(float_pointer(game.constants_at), whole_pointer(game.posterior_at), slot)


@njit(cache=True, nogil=True, error_model="numpy")
def keeps_ratio(game, slot, ratio):
    """Whether a ratio proposed by an arm's bound is one of its own."""
    a, b, c, d = counts_of(game, slot)
    return accepts(
        game.stream_at, a, b, c, d, tangent_of(game, slot, KIND), tangent_of(game, slot, SLOPE),
        tangent_of(game, slot, X), tangent_of(game, slot, Y), ratio,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def best_between(game, above, gap):
    """The best of the cold arms, each known to be at most level / e^above, if it exceeds level / e^gap; else -1.

    An accepted ratio above what is known contradicts it, so that arm's whole trial is repeated.
    """
    stream, level = game.stream_at, game.level
    tangents, hot_place = float_pointer(game.tangents_at), whole_pointer(game.hot_place_at)
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
        found = best_between(game, above, gap)
        if found >= 0 or gap == lowest:
            break
        above = gap
        step *= 2.0
    game.rung = min(game.rung * 1.3, 8.0) if above > 0.0 else max(game.rung * 0.984, 1e-6)
    return found if found >= 0 else winner


@njit(cache=True, nogil=True, error_model="numpy")
def open_window(game):
    """How many pulls of the leader one bound is good for, and that bound on its chance to fall below the level.

    The bounds are taken at the worst corner: no reward and full cost in every pull of the window.  Half the tilt gives
    a weaker bound at the level but a better one for rivals far above it.
    """
    a, b, c, d = counts_of(game, game.leader)
    level, classical, width = game.level, game.classical, game.window
    while True:
        grown_b = b + width
        grown_c = c + width
        tilt = shortfall_tilt(a, grown_b, grown_c, d, level, classical)
        log_bound = log_shortfall(a, grown_b, grown_c, d, level, tilt, classical) if tilt > 0.0 else 0.0
        dips = width * math.exp(min(log_bound, 0.0))
        if width == 1 or dips * PRICE_DIP < 2.0 * PRICE_WINDOW:
            break
        width = max(width // 4, 1) if dips * PRICE_DIP > 8.0 * PRICE_WINDOW else max(width // 2, 1)
    game.window = width
    if dips * PRICE_DIP < 0.3 * PRICE_WINDOW:
        game.window = min(2 * width, max(np.int64(a + b + c + d), 1))
    game.window_left, game.tilt, game.log_ceiling = width, tilt, log_bound
    game.log_half = log_shortfall(a, grown_b, grown_c, d, level, 0.5 * tilt, classical) if tilt > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def leader_loses(game):
    """Whether the leader, known to be at or above the level, draws less than the rival's ratio.

    ``duel_coin`` says that the first proposal below the ratio was already granted at the window's rate.
    """
    stream, level, classical, ratio = game.stream_at, game.level, game.classical, game.duel_ratio
    a, b, c, d = counts_of(game, game.leader)
    tilt, log_ceiling = game.tilt, game.log_ceiling
    coin_won = game.duel_coin > 0
    gap = math.log(ratio / level)
    log_chance = log_ceiling + tilt * gap
    if game.log_half + 0.5 * tilt * gap < log_chance:
        tilt *= 0.5
        log_ceiling = game.log_half
        log_chance = game.log_half + tilt * gap
    if log_chance >= game.log_direct:
        while True:
            drawn = draw_ratio(stream, a, b, c, d, classical)
            if drawn >= level:
                return drawn < ratio
    log_present = log_shortfall(a, b, c, d, level, tilt, classical)
    while True:
        if not coin_won and exponential(stream) < -log_chance:
            return False
        coin_won = False
        if exponential(stream) < log_ceiling - log_present:
            return False
        drawn = draw_shortfall(stream, a, b, c, d, ratio, tilt, classical)
        if drawn == np.inf:
            return False
        if drawn >= level:
            return True


@njit(cache=True, nogil=True, error_model="numpy")
def apply_level(game):
    """Sort every pulled arm into hot or cold and set fresh alarms."""
    tree, hot, hot_place = whole_pointer(game.tree_at), whole_pointer(game.hot_at), whole_pointer(game.hot_place_at)
    game.hot_count = 0
    for slot in range(game.active):
        if take_tangent(game, slot):
            hot_place[slot] = -1
            wait = geometric_from_rate(game.stream_at, tangent_of(game, slot, RATE))
            tree[game.base + slot] = game.round - 1 + wait
        else:
            hot_place[slot] = game.hot_count
            hot[game.hot_count] = slot
            game.hot_count += 1
            keep_hot_constants(game, slot)
            tree[game.base + slot] = NEVER
    rebuild(tree, game.base)


@njit(cache=True, nogil=True, error_model="numpy")
def become_hot(game, slot):
    """A cold arm becomes hot."""
    set_alarm(whole_pointer(game.tree_at), game.base, slot, np.int64(NEVER))
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
def refresh_hot_arms(game):
    """Bring the constants of all hot arms up to date."""
    for place in range(game.hot_count):
        keep_hot_constants(game, hot_arm(game, place))
