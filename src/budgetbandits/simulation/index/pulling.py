"""One pull, or a block of pulls of one arm: what it brings, what it costs, and which budgets it ends.

Sums of rewards and costs are kept in units of the problem's lattice, as whole numbers in float64, wherever all values
lie on one: then they are exact up to 2^53 units, in whatever order they are added.
"""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.index.memory import (
    CHECKPOINT,
    CONSTANT,
    FINISHED,
    FLOOR,
    FLOOR_SEEN,
    GOING_ON,
    NEEDS_OUTCOMES,
    OWN,
    REWARD_SUM,
    ROUNDS,
    SPENT,
    VARIANCE,
)
from budgetbandits.simulation.index.tapes import block_sum, outcome, place_on_tape


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def score(index, rule, desk, arm, rounds, floor):
    """The arm's index as if ``rounds`` rounds had been played and ``floor`` were the smallest mean cost."""
    pulls = float(desk.pulls[arm])
    mean_reward = desk.reward[arm] * rule.reward_unit / pulls
    mean_cost = desk.cost[arm] * rule.cost_unit / pulls
    first = rule.first
    if rule.kind != CONSTANT:
        if rule.kind == OWN:
            first = desk.own[arm]
        elif rule.kind == VARIANCE:
            square = desk.square[arm] * (rule.reward_unit * rule.reward_unit)
            first = max(square / pulls - mean_reward * mean_reward, 0.0)
        else:
            first = floor
    return index(mean_reward, mean_cost, pulls, float(rounds), first, rule.second, rule.third)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def note_mean_cost(desk, rule, arm):
    """Keep the smallest mean cost of all arms at the root of a tournament tree."""
    spot = (desk.leaves) + arm
    desk.tree[spot] = desk.cost[arm] * rule.cost_unit / float(desk.pulls[arm])
    while spot > 1:
        spot >>= 1
        smaller = min(desk.tree[2 * spot], desk.tree[2 * spot + 1])
        if desk.tree[spot] == smaller:
            break
        desk.tree[spot] = smaller
    desk.amount[FLOOR] = desk.tree[1]


@njit(cache=True, nogil=True, error_model="numpy")
def close(desk, rule, out, place, reward, spent):
    """Write down the game that ended."""
    for arm in range(desk.arms):
        out.pulls[place * desk.arms + arm] = desk.pulls[arm]
    out.reward[place] = reward * rule.reward_unit
    out.spend[place] = spent * rule.cost_unit
    out.rounds[place] = desk.number[ROUNDS]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def pull(desk, rule, world, ends, out, arm):
    """One pull of the arm: GOING_ON, FINISHED (the last budget's game ended) or NEEDS_OUTCOMES (nothing happened)."""
    if desk.used[arm] < desk.filled[arm]:
        spot = place_on_tape(world, arm, desk.used[arm])
        desk.used[arm] += 1
        reward = world.buffer[spot]
        cost = world.buffer[spot + 1]
    elif desk.cost_atoms[arm] > 0:
        reward, cost = outcome(desk, world, arm)
    else:
        return NEEDS_OUTCOMES
    desk.number[ROUNDS] += 1
    desk.pulls[arm] += 1
    desk.reward[arm] += reward
    desk.square[arm] += reward * reward
    desk.cost[arm] += cost
    if rule.kind == FLOOR_SEEN:
        note_mean_cost(desk, rule, arm)
    after = desk.amount[SPENT] + cost
    place = desk.number[CHECKPOINT]
    while after >= ends.budgets[place] - ends.tolerance:
        if after <= ends.budgets[place] + ends.tolerance:
            close(desk, rule, out, place, desk.amount[REWARD_SUM] + reward, after)
        else:
            close(desk, rule, out, place, desk.amount[REWARD_SUM], desk.amount[SPENT])
        place += 1
        desk.number[CHECKPOINT] = place
        if place == ends.count:
            return FINISHED
    desk.amount[SPENT] = after
    desk.amount[REWARD_SUM] += reward
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def pull_block(desk, world, arm, count):
    """``count`` pulls that cannot end any game. From a tape, as many of them as it holds: the number is returned."""
    if desk.used[arm] == desk.filled[arm] and desk.cost_atoms[arm] > 0:
        reward, squares = block_sum(
            desk.stream, count, world.reward_value, world.reward_chance, desk.reward_first[arm], desk.reward_atoms[arm]
        )
        cost, _ = block_sum(
            desk.stream, count, world.cost_value, world.cost_chance, desk.cost_first[arm], desk.cost_atoms[arm]
        )
        desk.reward[arm] += reward
        desk.square[arm] += squares
        desk.cost[arm] += cost
        desk.amount[REWARD_SUM] += reward
        desk.amount[SPENT] += cost
    else:
        # one by one, so that sums of floats are those of the naive loop to the last bit
        count = min(count, desk.filled[arm] - desk.used[arm])
        for place in range(desk.used[arm], desk.used[arm] + count):
            spot = place_on_tape(world, arm, place)
            reward = world.buffer[spot]
            cost = world.buffer[spot + 1]
            desk.reward[arm] += reward
            desk.square[arm] += reward * reward
            desk.cost[arm] += cost
            desk.amount[REWARD_SUM] += reward
            desk.amount[SPENT] += cost
        desk.used[arm] += count
    desk.pulls[arm] += count
    desk.number[ROUNDS] += count
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def stop(desk, rule, ends, out):
    """The policy can afford nothing more: every game that is still open ends as it stands."""
    for place in range(desk.number[CHECKPOINT], ends.count):
        close(desk, rule, out, place, desk.amount[REWARD_SUM], desk.amount[SPENT])
    desk.number[CHECKPOINT] = ends.count
    return FINISHED


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def can_pay(desk, ends, arm):
    """Whether the policy thinks it can afford the arm."""
    left = ends.budgets[ends.count - 1] - desk.amount[SPENT]
    return desk.price[arm] <= left + ends.affordable
