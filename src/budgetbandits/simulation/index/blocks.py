"""The leader in blocks: pulls that cannot cost it the lead, whatever they bring.

Where the rule is monotone in everything, the leader's own index is bounded from below over a whole region of outcomes,
and the pulls inside it are drawn together.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.bits import ONE, low_bits, ones, trials
from budgetbandits.simulation.index.memory import (
    CHECKPOINT,
    EVALUATIONS,
    GOING_ON,
    GROUPS,
    NEEDS_OUTCOMES,
    OWN,
    REWARD_SUM,
    ROUNDS,
    SPENT,
    STRIDE,
    VARIANCE,
)
from budgetbandits.simulation.index.pulling import can_pay, pull, pull_block


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def spreads(rule, desk, arm):
    """How far one pull's reward and cost lie from their means, roughly."""
    pulls = float(desk.pulls[arm])
    mean_reward = desk.reward[arm] * rule.reward_unit / pulls
    mean_cost = desk.cost[arm] * rule.cost_unit / pulls
    reward_spread = math.sqrt(max(mean_reward * (1.0 - mean_reward), 0.0) + 1.0 / pulls)
    if not rule.cost_matters:
        return reward_spread, 1e300  # no excess of costs can hurt
    return reward_spread, math.sqrt(max(mean_cost * (1.0 - mean_cost), 0.0) + 1.0 / pulls)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def lowest_index(index, rule, desk, arm, count, shortfall, excess):
    """The lowest index the arm can come to within ``count`` pulls whose rewards fall short of their mean so far by at
    most ``shortfall`` and whose costs exceed theirs by at most ``excess``."""
    pulls = float(desk.pulls[arm])
    later = pulls + float(count)
    mean_reward = desk.reward[arm] * rule.reward_unit / pulls
    mean_cost = desk.cost[arm] * rule.cost_unit / pulls
    first = rule.first
    if rule.kind == OWN:
        first = desk.own[arm]
    elif rule.kind == VARIANCE:
        square = desk.square[arm] * (rule.reward_unit * rule.reward_unit)
        # the sum of squared deviations from the mean never falls
        first = max(square / pulls - mean_reward * mean_reward, 0.0) * (pulls / later)
    desk.number[EVALUATIONS] += 1
    return index(
        max(mean_reward - shortfall / pulls, desk.reward_floor[arm] * rule.reward_unit),
        min(mean_cost + excess / pulls, desk.cost_top[arm] * rule.cost_unit),
        later, float(desk.number[ROUNDS]), first, rule.second, rule.third,
    )  # fmt: skip


SHORTEST = 0.75
"""Regions narrower than this many standard deviations of one pull are not worth their evaluation."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def region(index, rule, desk, ends, leader, lead, rival):
    """A region that the leader's sums may wander in and still lead: (pulls, reward shortfall, cost excess).

    As long as rewards fall short of their mean so far by at most the one and costs exceed theirs by at most the other,
    for that many pulls, the index stays above ``rival``. Zero pulls when no region worth the name exists.
    """
    number, amount = desk.number, desk.amount
    rounds = number[ROUNDS]
    longest = min(np.int64(desk.expiry_key[0]) if number[GROUPS] > 0 else ends.max_rounds, ends.max_rounds) - rounds
    if longest < 4 or not lead < np.inf:
        return np.int64(0), 0.0, 0.0
    if amount[STRIDE] < SHORTEST:
        # the last try showed that there is none; look again after a few rounds
        amount[STRIDE] *= 1.1
        return np.int64(0), 0.0, 0.0
    reward_spread, cost_spread = spreads(rule, desk, leader)
    for _ in range(2):
        stride = amount[STRIDE]
        count = min(longest, np.int64(2.0 * stride * stride) + 8)
        shortfall = stride * reward_spread
        excess = stride * cost_spread
        worst = lowest_index(index, rule, desk, leader, count, shortfall, excess)
        if worst - rule.slack * (1.0 + abs(worst)) > rival:
            amount[STRIDE] = min(1.3 * stride, 1e8)
            return count, shortfall / rule.reward_unit, excess / rule.cost_unit
        share = (lead - rival) / (lead - worst)
        amount[STRIDE] = max(0.5, stride * min(0.8 * share, 0.7))
        if amount[STRIDE] < SHORTEST:
            break
    return np.int64(0), 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def roam(desk, rule, world, ends, out, leader, count, shortfall, excess):
    """Pull the leader until it leaves the region or has been pulled ``count`` times."""
    number, amount = desk.number, desk.amount
    pulls = float(desk.pulls[leader])
    reward_before = desk.reward[leader]
    cost_before = desk.cost[leader]
    mean_reward = reward_before / pulls
    mean_cost = cost_before / pulls
    reward_step = mean_reward - desk.reward_floor[leader]
    cost_step = desk.cost_top[leader] - mean_cost
    # how many pulls a unit of room to the region's edge is good for
    per_shortfall = 1.0 / reward_step if reward_step > 1e-300 else 1e300
    per_excess = 1.0 / cost_step if cost_step > 1e-300 else 1e300
    per_room = 1.0 / desk.cost_top[leader] if desk.cost_top[leader] > 0.0 else 1e300
    rewards, costs = desk.reward_atoms[leader], desk.cost_atoms[leader]
    two_values = 1 <= rewards <= 2 and 1 <= costs <= 2 and desk.used[leader] == desk.filled[leader]
    played = np.int64(0)
    short = 0.0
    over = 0.0
    while played < count and short <= shortfall and over <= excess:
        # so many pulls cannot leave the region, whatever they bring, and so many cannot end a game
        safe = min(float(count - played), min((shortfall - short) * per_shortfall, (excess - over) * per_excess))
        room = ends.budgets[number[CHECKPOINT]] - ends.tolerance - amount[SPENT] - desk.price[leader]
        fitting = room * per_room - 1.0
        if two_values and safe < 64.0 and fitting >= 64.0:
            short, over, done = walk(
                desk, world, leader, min(count - played, np.int64(64)), short, over, shortfall, excess,
                mean_reward, mean_cost, per_shortfall, per_excess,
            )  # fmt: skip
            played += done
            continue
        block = np.int64(max(min(safe, fitting), 0.0))
        if block >= 2:
            done = pull_block(desk, world, leader, block)
            if done == 0:
                return NEEDS_OUTCOMES
            played += done
        else:
            if not can_pay(desk, ends, leader):
                return GOING_ON
            status = pull(desk, rule, world, ends, out, leader)
            if status != GOING_ON:
                return status
            played += 1
        short = mean_reward * float(played) - (desk.reward[leader] - reward_before)
        over = (desk.cost[leader] - cost_before) - mean_cost * float(played)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def walk(desk, world, leader, count, short, over, shortfall, excess, mean_reward, mean_cost, per_shortfall, per_excess):
    """Up to 64 pulls of an arm with two-valued laws, drawn as bits and cut where the region is left.

    What is cut off is independent of everything before it and has not been used: to forget it changes nothing.
    """
    reward_last = desk.reward_first[leader] + desk.reward_atoms[leader] - 1
    cost_last = desk.cost_first[leader] + desk.cost_atoms[leader] - 1
    reward_base, reward_more = world.reward_value[desk.reward_first[leader]], 0.0
    cost_base, cost_more = world.cost_value[desk.cost_first[leader]], 0.0
    reward_bits = np.uint64(0)
    cost_bits = np.uint64(0)
    if desk.reward_atoms[leader] == 2:
        reward_more = world.reward_value[reward_last] - reward_base
        reward_bits = trials(desk.stream, world.reward_chance[reward_last], count)
    if desk.cost_atoms[leader] == 2:
        cost_more = world.cost_value[cost_last] - cost_base
        cost_bits = trials(desk.stream, world.cost_chance[cost_last], count)
    reward_drift = mean_reward - reward_base
    cost_drift = cost_base - mean_cost
    done = np.int64(0)
    while done < count and short <= shortfall and over <= excess:
        safe = min((shortfall - short) * per_shortfall, (excess - over) * per_excess)
        step = np.int64(min(max(safe, 1.0), float(count - done)))
        shift = np.uint64(done)
        if step == 1:
            short += reward_drift - reward_more * float((reward_bits >> shift) & ONE)
            over += cost_drift + cost_more * float((cost_bits >> shift) & ONE)
        else:
            mask = low_bits(step) << shift
            short += reward_drift * float(step) - reward_more * float(ones(reward_bits & mask))
            over += cost_drift * float(step) + cost_more * float(ones(cost_bits & mask))
        done += step
    taken = low_bits(done)
    hits = float(ones(reward_bits & taken))
    reward = reward_base * float(done) + reward_more * hits
    cost = cost_base * float(done) + cost_more * float(ones(cost_bits & taken))
    top = reward_base + reward_more
    desk.reward[leader] += reward
    desk.square[leader] += reward_base * reward_base * (float(done) - hits) + top * top * hits
    desk.cost[leader] += cost
    desk.amount[REWARD_SUM] += reward
    desk.amount[SPENT] += cost
    desk.pulls[leader] += done
    desk.number[ROUNDS] += done
    return short, over, done
