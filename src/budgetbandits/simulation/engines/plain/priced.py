"""The rule of `primal-dual-bwk` with a horizon: the best index at prices on money and on time, which rise with use."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.policies.paced.statistics import COST, COUNT, REWARD
from budgetbandits.policies.primal_dual import lower
from budgetbandits.simulation.engines.plain.loop import loop_of
from budgetbandits.simulation.engines.plain.paced import pull_paced
from budgetbandits.simulation.engines.plain.posteriors import sums_of
from budgetbandits.simulation.engines.plain.selection import next_request, offered, rewards_of
from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    PULLING,
    place_of_equal,
    whole_pointer,
)


@njit(cache=True, nogil=True, error_model="numpy")
def best_index(game, index, rng):
    """Make the next arm without a pull the leader, else the arm with the highest index, and raise the prices; exact
    ties are broken uniformly, as `policies.base.best` does."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    game.stage = PULLING
    while game.opened < game.arms:
        arm = game.opened
        game.opened += 1
        if offered(game, arm) and sums_of(game, 0, arm)[COUNT] == 0.0:
            game.leader = arm
            return GOING_ON
    top = max(game.log_money, game.log_time)
    money = math.exp(game.log_money - top) * game.money_use
    time = math.exp(game.log_time - top) * game.time_use
    scores, who = rewards_of(game, 0), whole_pointer(game.who_at)
    best, ties = -np.inf, 0
    for place in range(game.planned):
        sums = sums_of(game, 0, who[place])
        pulls = sums[COUNT]
        value = np.inf
        if pulls > 0.0:
            means = sums[REWARD] / pulls, sums[COST] / pulls
            value = index(means[0], means[1], pulls, float(game.rounds), game.width_of_bounds, money, time, np.int64(0))
        scores[place] = value
        if value > best:
            best, ties, game.leader = value, 1, who[place]
        elif value == best:
            ties += 1
    if ties > 1:
        game.leader = who[place_of_equal(scores, best, rng.integers(0, ties))]
    raise_prices(game)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def raise_prices(game):
    """Raise both prices by what the chosen arm certainly uses; an arm never pulled uses nothing yet."""
    sums = sums_of(game, 0, game.leader)
    pulls = sums[COUNT]
    if pulls > 0.0:
        game.log_money += game.money_growth * lower(sums[COST] / pulls, pulls, game.width_of_bounds)
        game.log_time += game.time_growth


play_priced = loop_of("priced", best_index, pull_paced)
"""The loop of `primal-dual-bwk`."""
