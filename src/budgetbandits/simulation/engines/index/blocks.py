"""The leader in blocks: pulls that cannot cost it the lead, whatever their outcomes.

Where the rule is monotone in everything, the leader's own index is bounded from below over a whole region of outcomes,
and the pulls inside it are drawn together.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.pulls import add, pull, pull_block
from budgetbandits.simulation.engines.index.state import can_pay, lowest_index, means, pulls_of
from budgetbandits.simulation.engines.runtime.binomials import ONE, low_bits, ones, trials
from budgetbandits.simulation.engines.runtime.laws import cost_law, reward_law
from budgetbandits.simulation.engines.runtime.records import GOING_ON, float_pointer, whole_pointer

SHORTEST_STRIDE = 0.75
"""Regions narrower than this many standard deviations of one pull are not worth their evaluation."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def spreads(game, arm):
    """How far one pull's reward and cost lie from their means, roughly."""
    pulls, mean_reward, mean_cost = means(game, arm)
    reward_spread = math.sqrt(max(mean_reward * (1.0 - mean_reward), 0.0) + 1.0 / pulls)
    if not game.cost_matters:
        return reward_spread, 1e300  # no excess of costs can hurt
    return reward_spread, math.sqrt(max(mean_cost * (1.0 - mean_cost), 0.0) + 1.0 / pulls)


@njit(cache=True, nogil=True, error_model="numpy")
def region(game, index, lead, rival):
    """Find a region that the leader's sums may wander in and still lead; how many pulls it is good for.

    As long as rewards fall short of their mean so far by at most ``shortfall`` and costs exceed theirs by at most
    ``excess``, for that many pulls, the index stays above ``rival``. Zero when no region worth the name exists.
    """
    ending = game.max_rounds
    if game.groups > 0:
        ending = min(np.int64(float_pointer(game.expiry_key_at)[0]), ending)
    longest = ending - game.rounds
    if longest < 4 or not lead < np.inf:
        return np.int64(0)
    if game.stride < SHORTEST_STRIDE:
        # the last try showed that there is none; look again after a few rounds
        game.stride *= 1.1
        return np.int64(0)
    reward_spread, cost_spread = spreads(game, game.leader)
    for _ in range(2):
        stride = game.stride
        count = min(longest, np.int64(2.0 * stride * stride) + 8)
        shortfall = stride * reward_spread
        excess = stride * cost_spread
        worst = lowest_index(game, index, game.leader, count, shortfall, excess)
        if worst - game.slack * (1.0 + abs(worst)) > rival:
            game.stride = min(1.3 * stride, 1e8)
            game.shortfall = shortfall / game.reward_unit
            game.excess = excess / game.cost_unit
            return count
        share = (lead - rival) / (lead - worst)
        game.stride = max(0.5, stride * min(0.8 * share, 0.7))
        if game.stride < SHORTEST_STRIDE:
            break
    return np.int64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def roam(game, count):
    """Pull the leader until it leaves the region or has been pulled ``count`` times."""
    leader = game.leader
    rewards, costs = float_pointer(game.rewards_at), float_pointer(game.costs_at)
    reward_before, cost_before = rewards[leader], costs[leader]
    enter(game, leader)
    top = float_pointer(game.cost_top_at)[leader]
    per_room = 1.0 / top if top > 0.0 else 1e300
    drawn_as_bits = two_valued(game, leader)
    played = np.int64(0)
    while played < count and game.short <= game.shortfall and game.over <= game.excess:
        # pulls that cannot leave the region, whatever their outcomes, and pulls that cannot end a game
        safe = min(float(count - played), pulls_inside(game))
        room = float_pointer(game.budget_at)[game.checkpoint] - game.tolerance - game.spent
        fitting = (room - float_pointer(game.price_at)[leader]) * per_room - 1.0
        if drawn_as_bits and safe < 64.0 and fitting >= 64.0:
            played += walk(game, leader, min(count - played, np.int64(64)))
            continue
        block = np.int64(max(min(safe, fitting), 0.0))
        if block >= 2:
            pulled = pull_block(game, leader, block)
            if pulled == 0:
                return leader
            played += pulled
        else:
            if not can_pay(game, leader):
                return GOING_ON
            status = pull(game, leader, 0, 0)
            if status != GOING_ON:
                return status
            played += 1
        game.short = game.mean_reward * float(played) - (rewards[leader] - reward_before)
        game.over = (costs[leader] - cost_before) - game.mean_cost * float(played)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def enter(game, leader):
    """The leader stands in the middle of its region."""
    pulls = float(pulls_of(game, leader))
    game.short = game.over = 0.0
    game.mean_reward = float_pointer(game.rewards_at)[leader] / pulls
    game.mean_cost = float_pointer(game.costs_at)[leader] / pulls
    reward_step = game.mean_reward - float_pointer(game.reward_floor_at)[leader]
    cost_step = float_pointer(game.cost_top_at)[leader] - game.mean_cost
    # how many pulls a unit of room to the region's edge is good for
    game.per_shortfall = 1.0 / reward_step if reward_step > 1e-300 else 1e300
    game.per_excess = 1.0 / cost_step if cost_step > 1e-300 else 1e300


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def pulls_inside(game):
    """How many pulls surely do not leave the region, whatever their outcomes."""
    return min((game.shortfall - game.short) * game.per_shortfall, (game.excess - game.over) * game.per_excess)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def two_valued(game, arm):
    """Whether the arm's outcomes take one or two values each and none are left on its tape."""
    rewards, costs = whole_pointer(game.reward_atoms_at)[arm], whole_pointer(game.cost_atoms_at)[arm]
    read = whole_pointer(game.used_at)[arm] == whole_pointer(game.filled_at)[arm]
    return 1 <= rewards <= 2 and 1 <= costs <= 2 and read


@njit(cache=True, nogil=True, error_model="numpy")
def some_pulls(game, law, count):
    """(the lower value, how much the higher lies above it, in which pulls it comes up): a law of one or two values."""
    values, chances, atoms = law
    if atoms == 2:
        return values[0], values[1] - values[0], trials(game.stream_at, chances[1], count)
    return values[0], 0.0, np.uint64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def walk(game, leader, count):
    """Play up to 64 pulls of an arm with two-valued laws, drawn as bits and cut where the region is left; their number.

    The bits that are cut off are independent of all others and were not used: to forget them changes nothing.
    """
    reward_base, reward_more, reward_bits = some_pulls(game, reward_law(game, leader), count)
    cost_base, cost_more, cost_bits = some_pulls(game, cost_law(game, leader), count)
    reward_drift = game.mean_reward - reward_base
    cost_drift = cost_base - game.mean_cost
    # what the loop looks at in every step, in registers
    short, over, shortfall, excess = game.short, game.over, game.shortfall, game.excess
    per_shortfall, per_excess = game.per_shortfall, game.per_excess
    pulled = np.int64(0)
    while pulled < count and short <= shortfall and over <= excess:
        safe = min((shortfall - short) * per_shortfall, (excess - over) * per_excess)
        step = np.int64(min(max(safe, 1.0), float(count - pulled)))
        shift = np.uint64(pulled)
        if step == 1:
            short += reward_drift - reward_more * float((reward_bits >> shift) & ONE)
            over += cost_drift + cost_more * float((cost_bits >> shift) & ONE)
        else:
            mask = low_bits(step) << shift
            short += reward_drift * float(step) - reward_more * float(ones(reward_bits & mask))
            over += cost_drift * float(step) + cost_more * float(ones(cost_bits & mask))
        pulled += step
    game.short, game.over = short, over
    taken = low_bits(pulled)
    hits = float(ones(reward_bits & taken))
    reward = reward_base * float(pulled) + reward_more * hits
    cost = cost_base * float(pulled) + cost_more * float(ones(cost_bits & taken))
    top = reward_base + reward_more
    add(game, leader, reward, reward_base * reward_base * (float(pulled) - hits) + top * top * hits, cost)
    game.reward += reward
    game.spent += cost
    whole_pointer(game.pulls_at)[leader] += pulled
    game.rounds += pulled
    return pulled
