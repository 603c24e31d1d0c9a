"""Which request comes next, and which arm answers it by `bts-paced`: `policies.paced.selection.select`, compiled."""

from __future__ import annotations

import numpy as np
from numba import carray, njit
from numba.extending import register_jitable

from budgetbandits.numerics import fluid
from budgetbandits.policies.paced import selection as policy_selection
from budgetbandits.policies.paced.statistics import COUNT
from budgetbandits.simulation.engines.paced.posteriors import COSTS, REWARDS, law_of, sums_of
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.engines.runtime.status import FINISHED, GOING_ON, ROUND_LIMIT


@njit(cache=True, nogil=True, error_model="numpy")
def next_request(game):
    """Whether there is one: GOING_ON, FINISHED or ROUND_LIMIT; it may be of another part than the one before."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return FINISHED
    part = whole_pointer(game.list_at)[game.rounds] if game.listed > 0 else part_of_phase(game)
    if part != game.part:
        enter(game, part)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def part_of_phase(game):
    """The part of the request where there is one segment, so that each phase has one part."""
    first = whole_pointer(game.first_at)
    part = max(game.part, 0)
    while part + 1 < game.parts and game.rounds >= first[part + 1]:
        part += 1
    return part


@njit(cache=True, nogil=True, error_model="numpy")
def enter(game, part):
    """The request is of this part: see which arms are planned for."""
    game.part = part
    game.segment = part % game.width if game.segments > 1 else 0
    plan, who = whole_pointer(game.plan_at + 8 * game.arms * part), whole_pointer(game.who_at)
    game.planned = 0
    for arm in range(game.arms):
        if plan[arm] > 0:
            who[game.planned] = arm
            game.planned += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def offered(game, arm):
    """Whether this arm may answer the request."""
    return whole_pointer(game.offer_at)[game.part * game.arms + arm] > 0


for function in (fluid.next_break, fluid.mix_of_one, fluid.at_price, fluid.solve):
    register_jitable(function)
for function in (policy_selection.exploration_is_wasted, policy_selection.too_few_upgrades):
    register_jitable(function)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def rewards_of(game, segment):
    """The mean rewards that were drawn for a segment, of the arms that are planned for."""
    return carray(float_pointer(game.rewards_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def costs_of(game, segment):
    return carray(float_pointer(game.costs_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy")
def solve(game, rate):
    """Find the arm of each segment, the one that mixes two, and the price on money, for the means that were drawn."""
    shape, segments = (game.segments, game.planned), (game.segments,)
    game.mixed, game.upgrade, game.share, game.price, game.price_if_short = fluid.solve(
        carray(float_pointer(game.rewards_at), shape),
        carray(float_pointer(game.costs_at), shape),
        carray(float_pointer(game.weight_at), segments),
        rate,
        carray(whole_pointer(game.arm_at), segments),
        carray(float_pointer(game.break_price_at), segments),
        carray(whole_pointer(game.break_arm_at), segments),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def select_arm(game, rng, rate):
    """The arm of the mix for the request; if it may not have that one, what is worth most at the price on money."""
    who = whole_pointer(game.who_at)
    place = whole_pointer(game.arm_at)[game.segment]
    prune_exploration = game.segments > 1 and game.horizon < np.inf and game.forget == 0.0
    upgrades = game.segment == game.mixed and game.share > 0.0 and rng.random() < game.share
    if upgrades and not (
        prune_exploration and policy_selection.too_few_upgrades(upgrades_to_come(game), game.price, game.price_if_short)
    ):
        place = game.upgrade
    if not offered(game, who[place]):
        place = most_worth(game)
    if prune_exploration:
        place = substitute(game, place, rate)
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
def substitute(game, place, rate):
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
    vain = policy_selection.exploration_is_wasted(loss, reward[place], certainty, variance, unsure + spread, coming)
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
