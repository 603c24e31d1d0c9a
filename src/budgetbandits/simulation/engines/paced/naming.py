"""Who answers a request by `bts-paced`, once the program is solved: `paced_plans.named`, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from budgetbandits.policies.paced import exploration
from budgetbandits.policies.paced.statistics import COUNT
from budgetbandits.simulation.engines.paced.posteriors import COSTS, REWARDS, law_of, sums_of
from budgetbandits.simulation.engines.paced.program import costs_of, rewards_of, solve
from budgetbandits.simulation.engines.paced.requests import offered
from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer

for function in (exploration.exploration_is_wasted, exploration.too_few_upgrades):
    register_jitable(function)


@njit(cache=True, nogil=True, error_model="numpy")
def named_by_mix(game, rng, rate):
    """The arm of the mix for the request; if it may not have that one, what is worth most at the price on money."""
    who = whole_pointer(game.who_at)
    place = whole_pointer(game.arm_at)[game.segment]
    careful = game.segments > 1 and game.horizon < np.inf and game.forget == 0.0
    upgrades = game.segment == game.mixed and game.share > 0.0 and rng.random() < game.share
    if upgrades and not (
        careful and exploration.too_few_upgrades(upgrades_to_come(game), game.price, game.price_if_short)
    ):
        place = game.upgrade
    if not offered(game, who[place]):
        place = most_worth(game)
    if careful:
        place = unless_in_vain(game, place, rate)
    return who[place]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def to_come(game):
    """How many requests are still to come."""
    return game.horizon - float(game.rounds)


@njit(cache=True, nogil=True, error_model="numpy")
def upgrades_to_come(game):
    """How many the plan has money for, each at what it was drawn to cost or at what it usually does if that is more."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    arm = whole_pointer(game.arm_at)[game.segment]
    cost = costs_of(game, game.segment)
    extra = cost[game.upgrade] - cost[arm]
    mine, other = who[game.upgrade], who[arm]
    usual = beta_mean(law_of(game, game.segment, mine), COSTS) * scales[mine]
    usual -= beta_mean(law_of(game, game.segment, other), COSTS) * scales[other]
    weight = float_pointer(game.weight_at)[game.segment]
    return to_come(game) * weight * game.share * extra / max(extra, usual)


@njit(cache=True, nogil=True, error_model="numpy")
def most_worth(game):
    """The place of the arm that is worth most at the price on money, of those that are offered."""
    who = whole_pointer(game.who_at)
    reward, cost = rewards_of(game, game.segment), costs_of(game, game.segment)
    best, top = 0, -np.inf
    for place in range(game.planned):
        value = reward[place] - game.price * cost[place]
        if offered(game, who[place]) and value > top:
            best, top = place, value
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def unless_in_vain(game, place, rate):
    """This place, or that of the best of the better known arms if it is not worth a trial; the program is solved for
    the means of the posteriors in the place of those that were drawn."""
    who = whole_pointer(game.who_at)
    take_means(game)
    solve(game, rate)
    reward, cost = rewards_of(game, game.segment), costs_of(game, game.segment)
    unsure = variance_of(game, place)
    best, top = place, -np.inf
    for other in range(game.planned):
        known = offered(game, who[other]) and variance_of(game, other) < unsure
        if known and (game.price > 0.0 or cost[other] > cost[place]):
            value = reward[other] - game.price * cost[other]
            if value > top:
                best, top = other, value
    tried = sums_of(game, game.segment, who[place])[COUNT] > 0.0
    if best == place or not (tried or cost[place] > cost[best]):
        return place
    law = law_of(game, game.segment, who[place])
    loss = max(top - (reward[place] - game.price * cost[place]), 0.0)
    certainty, variance, spread = law[REWARDS] + law[REWARDS + 1], beta_variance(law, REWARDS), variance_of(game, best)
    coming = to_come(game) * max(float_pointer(game.weight_at)[game.segment], 1.0 / game.segments)
    vain = exploration.exploration_is_wasted(loss, reward[place], certainty, variance, unsure + spread, coming)
    return best if vain else place


@njit(cache=True, nogil=True, error_model="numpy")
def take_means(game):
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    for segment in range(game.segments):
        rewards, costs = rewards_of(game, segment), costs_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            rewards[place] = beta_mean(law, REWARDS)
            costs[place] = beta_mean(law, COSTS) * scales[who[place]]


@njit(cache=True, nogil=True, error_model="numpy")
def variance_of(game, place):
    """Of what an arm is worth for the request, at the price on money."""
    arm = whole_pointer(game.who_at)[place]
    law, scale = law_of(game, game.segment, arm), float_pointer(game.scales_at)[arm]
    return beta_variance(law, REWARDS) + game.price * game.price * (beta_variance(law, COSTS) * scale * scale)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def beta_mean(law, place):
    return law[place] / (law[place] + law[place + 1])


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def beta_variance(law, place):
    mean = beta_mean(law, place)
    return mean * (1.0 - mean) / (law[place] + law[place + 1] + 1.0)
