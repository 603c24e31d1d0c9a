"""The program of two scarce resources for the means that were drawn: `fluid.best_mix`, compiled.

Drawn means stand segment by segment, those of the arms that are planned for.
"""

from __future__ import annotations

from numba import carray, njit
from numba.extending import register_jitable

from budgetbandits.numerics import fluid
from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer

for function in (fluid.next_break, fluid.mix_of_one, fluid.at_price):
    register_jitable(function)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def rewards_of(game, segment):
    return carray(float_pointer(game.rewards_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def costs_of(game, segment):
    return carray(float_pointer(game.costs_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy")
def solve(game, rate):
    """Find the arm of each segment, the one that mixes two, and the price on money."""
    arm = whole_pointer(game.arm_at)
    game.mixed = 0
    if game.segments == 1:
        arm[0], game.upgrade, game.share, game.price, game.price_if_short = fluid.mix_of_one(
            rewards_of(game, 0), costs_of(game, 0), rate
        )
        return
    spent = best_ratio(game)
    game.upgrade, game.share = arm[0], 0.0
    if spent >= rate:
        return
    for segment in range(game.segments):
        look_ahead(game, segment)
    walk_down(game, spent, rate)


@njit(cache=True, nogil=True, error_model="numpy")
def best_ratio(game):
    """Give each segment its arm at the best ratio of what all bring to what they cost, which is then the price; return
    what these cost. Newton's method."""
    arm, weight = whole_pointer(game.arm_at), float_pointer(game.weight_at)
    ratio, better, costs = -1.0, 0.0, 0.0
    while better > ratio:
        ratio = better
        brings, costs = 0.0, 0.0
        for segment in range(game.segments):
            reward, cost = rewards_of(game, segment), costs_of(game, segment)
            best = fluid.at_price(reward, cost, ratio)
            arm[segment] = best
            brings += weight[segment] * reward[best]
            costs += weight[segment] * cost[best]
        better = brings / costs
    game.price = ratio
    return costs


@njit(cache=True, nogil=True, error_model="numpy")
def look_ahead(game, segment):
    """The price at which a segment changes to a dearer arm, and that arm."""
    price, arm = fluid.next_break(
        rewards_of(game, segment), costs_of(game, segment), whole_pointer(game.arm_at)[segment]
    )
    float_pointer(game.break_price_at)[segment] = price
    whole_pointer(game.break_arm_at)[segment] = arm


@njit(cache=True, nogil=True, error_model="numpy")
def walk_down(game, spent, rate):
    """Let the price fall from one break to the next until the money for a request is used up."""
    arm, weight = whole_pointer(game.arm_at), float_pointer(game.weight_at)
    break_price, break_arm = float_pointer(game.break_price_at), whole_pointer(game.break_arm_at)
    while True:
        game.price_if_short = game.price
        segment = 0
        for other in range(1, game.segments):
            if break_price[other] > break_price[segment]:
                segment = other
        game.price = break_price[segment]
        if game.price <= 0.0:
            game.price, game.mixed, game.upgrade = 0.0, 0, arm[0]
            return
        costs = costs_of(game, segment)
        dearer = break_arm[segment]
        more = weight[segment] * (costs[dearer] - costs[arm[segment]])
        if spent + more > rate:
            game.mixed, game.upgrade, game.share = segment, dearer, (rate - spent) / more
            return
        spent += more
        arm[segment] = dearer
        look_ahead(game, segment)
