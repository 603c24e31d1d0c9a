"""The fallback: nothing reached the level, so the best ratio below it is looked for."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.engines.thompson.envelope import draw_ratio
from budgetbandits.simulation.engines.thompson.level import keeps_ratio
from budgetbandits.simulation.engines.thompson.state import LOG_BOUND, SLOPE, counts_of


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
