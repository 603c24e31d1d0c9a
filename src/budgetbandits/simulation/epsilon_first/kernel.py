"""One game of ε-first on finite laws, compiled: exploration in turns, then the best arm to the end.

Whole turns that cannot reach the end of the exploration whatever they cost, and whole stretches that cannot end the
game, are a few binomial draws for each arm; each such block takes a good part of what is left, so they are few.
Only the last pulls are drawn one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import uniform
from budgetbandits.simulation.compiled.pointers import pointer_to
from budgetbandits.simulation.index.tapes import atom, block_sum


@njit(cache=True, nogil=True, error_model="numpy")
def explore_then_exploit(
    stream, budget, exploration, tolerance, reward_scale, cost_scale, reward_value, reward_chance, reward_first,
    reward_atoms, cost_value, cost_chance, cost_first, cost_atoms, cost_top, pulls, reward, cost, max_rounds,
):  # fmt: skip
    """(total reward, spent) in units; fills pulls, reward and cost of the arms (zero at first).

    Breaks off after max_rounds. The exploration must leave enough for any pull:
    budget - exploration > dearest pull + tolerance.
    """
    arms = pulls.shape[0]
    values, chances = pointer_to(reward_value), pointer_to(reward_chance)
    prices, price_chances = pointer_to(cost_value), pointer_to(cost_chance)
    spent = 0.0
    total = 0.0
    dearest = cost_top.sum()
    rounds = np.int64(0)
    while spent < exploration and rounds <= max_rounds:
        turns = np.int64((exploration - spent) / dearest - 1e-9)
        for arm in range(arms):
            if turns >= 1:
                earned, _ = block_sum(stream, turns, values, chances, reward_first[arm], reward_atoms[arm])
                paid, _ = block_sum(stream, turns, prices, price_chances, cost_first[arm], cost_atoms[arm])
                pulls[arm] += turns
            else:
                if spent >= exploration:
                    break
                earned = values[atom(stream, chances, reward_first[arm], reward_atoms[arm])]
                paid = prices[atom(stream, price_chances, cost_first[arm], cost_atoms[arm])]
                pulls[arm] += 1
            rounds += max(turns, 1)
            reward[arm] += earned
            cost[arm] += paid
            total += earned
            spent += paid
    best = -np.inf
    chosen = 0
    ties = 0
    for arm in range(arms):
        ratio = -np.inf
        if pulls[arm] > 0:
            ratio = (reward[arm] / reward_scale) / (cost[arm] / cost_scale) if cost[arm] > 0.0 else np.inf
        if ratio > best:
            best = ratio
            chosen = arm
            ties = 1
        elif ratio == best:
            ties += 1
            if uniform(stream) * ties < 1.0:
                chosen = arm
    top = cost_top[chosen]
    while rounds <= max_rounds:
        count = np.int64((budget - spent - tolerance) / top) - 1
        rounds += max(count, 1)
        if count >= 2:
            earned, _ = block_sum(stream, count, values, chances, reward_first[chosen], reward_atoms[chosen])
            paid, _ = block_sum(stream, count, prices, price_chances, cost_first[chosen], cost_atoms[chosen])
            pulls[chosen] += count
        else:
            earned = values[atom(stream, chances, reward_first[chosen], reward_atoms[chosen])]
            paid = prices[atom(stream, price_chances, cost_first[chosen], cost_atoms[chosen])]
            pulls[chosen] += 1
            if spent + paid >= budget - tolerance:
                if spent + paid <= budget + tolerance:
                    total += earned
                    spent += paid
                return total, spent
        total += earned
        spent += paid
    return total, spent
