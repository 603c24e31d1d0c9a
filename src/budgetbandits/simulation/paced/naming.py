"""Who answers a request by `bts-paced`, once the program is solved: `paced_plans.named`, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from budgetbandits.policies import worth
from budgetbandits.simulation.compiled.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.paced.posteriors import COSTS, REWARDS, law_of
from budgetbandits.simulation.paced.program import costs_of, rewards_of
from budgetbandits.simulation.paced.requests import offered

for function in (worth.in_vain, worth.too_few):
    register_jitable(function)


@njit(cache=True, nogil=True, error_model="numpy")
def named_by_mix(game, rng):
    """The arm of the mix for the request; if it may not have that one, what is worth most at the price on money."""
    who = whole_pointer(game.who_at)
    place = base = whole_pointer(game.arm_at)[game.segment]
    mixes = game.segment == game.mixed and game.share > 0.0
    if mixes and rng.random() < game.share and pays_for_upgrade(game):
        place = game.upgrade
    if not offered(game, who[place]):
        place = most_worth(game, place)
    if game.segments > 1 and game.horizon < np.inf and not (mixes and place == base):
        place = unless_in_vain(game, place)
    return who[place]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def to_come(game):
    """How many requests of the segment are still to come."""
    return max(game.horizon - float(game.rounds), 1.0) * float_pointer(game.weight_at)[game.segment]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def pays_for_upgrade(game):
    if game.segments == 1 or game.horizon == np.inf:
        return True
    return not worth.too_few(to_come(game) * game.share, game.price, game.price_if_short)


@njit(cache=True, nogil=True, error_model="numpy")
def most_worth(game, otherwise):
    """The place of the arm that is worth most at the price on money, of those that are offered."""
    who = whole_pointer(game.who_at)
    reward, cost = rewards_of(game, game.segment), costs_of(game, game.segment)
    best, top = otherwise, -np.inf
    for other in range(game.planned):
        value = reward[other] - game.price * cost[other]
        if offered(game, who[other]) and value > top:
            best, top = other, value
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def unless_in_vain(game, place):
    """This place, or that of the best arm if it is a cheaper one's that is not worth a trial."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    best, top = place, -np.inf
    for other in range(game.planned):
        law, scale = law_of(game, game.segment, who[other]), scales[who[other]]
        value = mean_of(law, REWARDS) - game.price * (mean_of(law, COSTS) * scale)
        if offered(game, who[other]) and value > top:
            best, top = other, value
    if best == place:
        return place
    mine, other = law_of(game, game.segment, who[place]), law_of(game, game.segment, who[best])
    scale, other_scale = scales[who[place]], scales[who[best]]
    cost = mean_of(mine, COSTS) * scale
    if cost >= mean_of(other, COSTS) * other_scale:
        return place
    unsure = variance_of(mine, COSTS) * scale * scale + variance_of(other, COSTS) * other_scale * other_scale
    spread = variance_of(mine, REWARDS) + variance_of(other, REWARDS) + game.price * game.price * unsure
    loss = top - (mean_of(mine, REWARDS) - game.price * cost)
    return best if worth.in_vain(loss, spread, to_come(game)) else place


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def mean_of(law, place):
    return law[place] / (law[place] + law[place + 1])


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def variance_of(law, place):
    mean = mean_of(law, place)
    return mean * (1.0 - mean) / (law[place] + law[place + 1] + 1.0)
