"""Index policies, exactly, without evaluating what cannot matter.

The leader is the arm pulled last; all others stand in groups of equal state, each with a bound on its index that holds
for some rounds (`groups`). While the leader's index lies above the largest bound, nobody else is looked at. Where the
rule is monotone in everything, the leader's own index is bounded from below over a whole region of outcomes, and the
pulls inside it are drawn in blocks. docs/engine.md, section 8, says why that is exact.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.bits import ONE, low_bits, ones, trials
from budgetbandits.simulation.draws import uniform
from budgetbandits.simulation.index.desk import (
    CHECKPOINT,
    CHOOSING,
    EVALUATIONS,
    FLOOR,
    FLOOR_HIGH,
    FLOOR_LOW,
    FLOOR_SEEN,
    FRACTION,
    FREES,
    GOING_ON,
    GROUPS,
    LEADER,
    NEEDS_OUTCOMES,
    NOT_A_NUMBER,
    OPENING,
    OWN,
    POOL_SIZE,
    PRICE_PAID,
    PULLING,
    REWARD_SUM,
    ROUND_LIMIT,
    ROUNDS,
    SINCE,
    SPENT,
    STAGE,
    STRIDE,
    TURN,
    VARIANCE,
    WASTE,
    WINDOW,
    open_desk,
    open_ends,
    open_world,
)
from budgetbandits.simulation.index.groups import bound, dissolve, give, join, pour, wished_horizon
from budgetbandits.simulation.index.plain_loop import first_pulls
from budgetbandits.simulation.index.pulling import can_pay, pull, pull_block, score, stop


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def now(index, rule, desk, arm):
    """The arm's index in this round."""
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, desk.number[ROUNDS], desk.amount[FLOOR])


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def stays_infinite(index, rule, desk, arm):
    """Whether an index that is infinite now is so until the arm is pulled, as long as the floor keeps its window."""
    if rule.kind != FLOOR_SEEN:
        return True
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, desk.number[ROUNDS], desk.amount[FLOOR_HIGH]) == np.inf


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def renew(index, rule, desk, group, value, level, wish, new):
    """File a bound for a group whose index now is ``value``."""
    rounds = desk.number[ROUNDS]
    if rule.kind == FLOOR_SEEN:
        # bounds must hold for every floor in the window: so must the value they are compared with
        desk.number[EVALUATIONS] += 1
        value = score(index, rule, desk, desk.root[group], rounds, desk.amount[FLOOR_LOW])
    bound(index, rule, desk, group, value, level, rounds, wish, new)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def shelve(index, rule, desk, arm, value, level):
    """Put an arm that leads no longer among the others; ``value`` is its index now."""
    if value == np.inf and stays_infinite(index, rule, desk, arm):
        desk.pool[desk.number[POOL_SIZE]] = arm
        desk.number[POOL_SIZE] += 1
        return
    group, new = join(desk, rule, arm)
    if new:
        wish = wished_horizon(desk, arm, level - value, desk.number[ROUNDS])
        renew(index, rule, desk, group, value, level, wish, True)


@njit(cache=True, nogil=True, error_model="numpy")
def gather(index, rule, desk, ends):
    """After the first pulls: all arms into groups, and a bound for each. An arm whose index is NaN, or -1."""
    for arm in range(desk.arms):
        desk.free[arm] = desk.arms - 1 - arm
    desk.number[FREES] = desk.arms
    desk.number[GROUPS] = 0
    level = -np.inf
    found = 0
    for arm in range(desk.arms):
        if desk.pulls[arm] > 0:
            group, new = join(desk, rule, arm)
            if new:
                desk.value[group] = now(index, rule, desk, arm)
                if desk.value[group] != desk.value[group]:
                    if can_pay(desk, ends, arm):
                        return arm
                    desk.value[group] = np.inf  # nobody asks for it: it is dissolved when it is looked at
                level = max(level, desk.value[group])
                desk.candidate[found] = group
                found += 1
    for spot in range(found):
        group = desk.candidate[spot]
        renew(index, rule, desk, group, desk.value[group], level, max(np.int64(16), desk.number[ROUNDS] >> 3), True)
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def reopen(index, rule, desk, level):
    """The floor has left its window: choose a new one and renew every bound."""
    number, amount = desk.number, desk.amount
    groups, pool = number[GROUPS], number[POOL_SIZE]
    # a wide window makes for loose bounds, a narrow one is soon left: move its width whichever way made rounds cheaper
    price = float(number[WASTE] + 3 * (groups + pool)) / float(max(number[ROUNDS] - number[SINCE], 1))
    if price > amount[PRICE_PAID]:
        amount[TURN] = 1.0 / amount[TURN]
    amount[PRICE_PAID] = price
    amount[WINDOW] = min(max(amount[WINDOW] * amount[TURN], 1e-7), 0.25)
    number[WASTE] = 0
    number[SINCE] = number[ROUNDS]
    amount[FLOOR_LOW] = amount[FLOOR] * (1.0 - amount[WINDOW])
    amount[FLOOR_HIGH] = amount[FLOOR] * (1.0 + amount[WINDOW])
    for spot in range(groups):
        desk.candidate[spot] = desk.bound_order[spot]
    for spot in range(groups):
        group = desk.candidate[spot]
        arm = desk.root[group]
        value = now(index, rule, desk, arm)
        if value == np.inf and stays_infinite(index, rule, desk, arm):
            pour(desk, rule, group)
        else:
            wish = max(np.int64(16), number[ROUNDS] >> 6)
            renew(index, rule, desk, group, value, level, wish, False)
    kept = 0
    newcomers = number[POOL_SIZE] - pool
    for spot in range(pool):
        arm = desk.pool[spot]
        if score(index, rule, desk, arm, number[ROUNDS], amount[FLOOR_HIGH]) == np.inf:
            desk.pool[kept] = arm
            kept += 1
        else:
            desk.stack[spot - kept] = arm
    for spot in range(newcomers):
        desk.pool[kept + spot] = desk.pool[pool + spot]
    number[POOL_SIZE] = kept + newcomers
    for spot in range(pool - kept):
        arm = desk.stack[spot]
        shelve(index, rule, desk, arm, now(index, rule, desk, arm), level)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def renew_expired(index, rule, desk, level):
    """Give every group whose bound ends now a new one."""
    rounds = float(desk.number[ROUNDS])
    while desk.number[GROUPS] > 0 and desk.expiry_key[0] <= rounds:
        group = desk.expiry_order[0]
        # a bound is the index in the round of its expiry: no need to evaluate it again
        value = desk.bound[group]
        wish = wished_horizon(desk, desk.root[group], level - value, desk.number[ROUNDS])
        if rule.kind == FLOOR_SEEN:
            wish = max(np.int64(16), desk.number[ROUNDS] >> 6)
        bound(index, rule, desk, group, value, level, desk.number[ROUNDS], wish, False)
        desk.amount[FRACTION] = min(0.5, desk.amount[FRACTION] * 1.02)
        desk.number[WASTE] += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def elect(index, rule, desk, ends, leader, lead):
    """The arm with the highest index now, ties broken uniformly; -1 if there is none, -2 - arm if one's is NaN.

    ``lead`` is the leader's index. The heap is walked from its root as far as bounds reach the best index found.
    """
    number = desk.number
    best = lead
    if number[POOL_SIZE] > 0:
        best = np.inf
    found = 0
    depth = 0
    if number[GROUPS] > 0:
        desk.stack[0] = 0
        depth = 1
    while depth > 0:
        depth -= 1
        spot = desk.stack[depth]
        highest = -desk.bound_key[spot]
        if highest + rule.slack * (1.0 + abs(highest)) >= best:
            group = desk.bound_order[spot]
            desk.value[group] = -np.inf
            if can_pay(desk, ends, desk.root[group]):
                # where rounds do not matter a bound is the index itself, until the arm is pulled
                exact = not rule.rounds_matter and rule.kind != FLOOR_SEEN
                desk.value[group] = desk.bound[group] if exact else now(index, rule, desk, desk.root[group])
                if desk.value[group] != desk.value[group]:
                    return -2 - desk.root[group]
                best = max(best, desk.value[group])
            desk.candidate[found] = group
            found += 1
            below = 2 * spot + 1
            if below < number[GROUPS]:
                desk.stack[depth] = below
                depth += 1
            if below + 1 < number[GROUPS]:
                desk.stack[depth] = below + 1
                depth += 1
    number[WASTE] += max(found - 1, 0)
    if best == -np.inf and leader < 0:
        # what is left cannot be paid for, and will not be: the budget only shrinks
        return -1
    kept = 0
    weight = np.int64(0)
    for spot in range(found):
        group = desk.candidate[spot]
        value = desk.value[group]
        if value == -np.inf:
            dissolve(desk, rule, group)
        elif value == np.inf and stays_infinite(index, rule, desk, desk.root[group]):
            pour(desk, rule, group)
        else:
            desk.candidate[kept] = group
            kept += 1
            if value == best:
                weight += desk.size[group]
    if best == np.inf:
        weight += number[POOL_SIZE]
    if leader >= 0 and lead == best:
        weight += 1
    ticket = np.int64(0)
    if weight > 1:
        ticket = min(np.int64(uniform(desk.stream) * weight), weight - 1)
    chosen = -1
    if leader >= 0 and lead == best:
        if ticket == 0:
            chosen = leader
        ticket -= 1
    source = -1
    for spot in range(kept):
        group = desk.candidate[spot]
        if desk.value[group] == best:
            if 0 <= ticket < desk.size[group] and chosen < 0:
                source = group
            ticket -= desk.size[group]
        else:
            desk.amount[FRACTION] = max(0.015625, desk.amount[FRACTION] * 0.98)
    if chosen < 0 and source < 0:
        chosen = desk.pool[ticket]
        number[POOL_SIZE] -= 1
        desk.pool[ticket] = desk.pool[number[POOL_SIZE]]
    gone = -1
    if source >= 0:
        if desk.size[source] == 1:
            gone = source
        chosen = give(desk, rule, source)
    for spot in range(kept):
        group = desk.candidate[spot]
        # with a moving floor a bound is as good as its window, without rounds it is exact: no renewal makes it tighter
        loose = rule.rounds_matter if rule.kind != FLOOR_SEEN else desk.bound[group] == np.inf
        if group != gone and loose:
            gap = best - desk.value[group]
            rise = desk.bound[group] - desk.value[group]
            wish = wished_horizon(desk, desk.root[group], gap, number[ROUNDS])
            if best == np.inf:
                # only an infinite bound brought it here: it has to end before the index becomes infinite
                wish = (np.int64(desk.expiry_key[desk.expiry_place[group]]) - number[ROUNDS]) >> 1
            elif 0.0 < rise < np.inf:
                length = desk.expiry_key[desk.expiry_place[group]] - float(number[ROUNDS])
                wish = np.int64(min(desk.amount[FRACTION] * gap / rise * length, 1e15))
            renew(index, rule, desk, group, desk.value[group], best, wish, False)
    if leader >= 0 and chosen != leader:
        shelve(index, rule, desk, leader, lead, best)
    return chosen


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
    pulls = float(desk.pulls[leader])
    mean_reward = desk.reward[leader] * rule.reward_unit / pulls
    mean_cost = desk.cost[leader] * rule.cost_unit / pulls
    lowest = desk.reward_floor[leader] * rule.reward_unit
    highest = desk.cost_top[leader] * rule.cost_unit
    reward_spread = math.sqrt(max(mean_reward * (1.0 - mean_reward), 0.0) + 1.0 / pulls)
    cost_spread = math.sqrt(max(mean_cost * (1.0 - mean_cost), 0.0) + 1.0 / pulls)
    if not rule.cost_matters:
        cost_spread = 1e300  # no excess of costs can hurt
    for _ in range(2):
        stride = amount[STRIDE]
        count = min(longest, np.int64(2.0 * stride * stride) + 8)
        shortfall = stride * reward_spread
        excess = stride * cost_spread
        later = pulls + float(count)
        first = rule.first
        if rule.kind == OWN:
            first = desk.own[leader]
        elif rule.kind == VARIANCE:
            square = desk.square[leader] * (rule.reward_unit * rule.reward_unit)
            # the sum of squared deviations from the mean never falls
            first = max(square / pulls - mean_reward * mean_reward, 0.0) * (pulls / later)
        number[EVALUATIONS] += 1
        worst = index(
            max(mean_reward - shortfall / pulls, lowest), min(mean_cost + excess / pulls, highest),
            later, float(rounds), first, rule.second, rule.third,
        )  # fmt: skip
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
    two_values = 1 <= rewards <= 2 and 1 <= costs <= 2
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


@njit(cache=True, nogil=True, error_model="numpy")
def play_lazily(
    index, rule, limits, budgets, floats, wholes, number, amount, table, tree, stream,
    reward_value, reward_chance, cost_value, cost_chance, buffer, out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    """Play on until the game ends or an outcome is missing; ``limits`` are the last three fields of `Ends`."""
    desk = open_desk(floats, wholes, number, amount, table, tree, stream.ctypes.data)
    world = open_world(reward_value, reward_chance, cost_value, cost_chance, buffer)
    ends, out = open_ends(budgets, limits, out_pulls, out_reward, out_spend, out_rounds)
    if number[STAGE] == OPENING:
        status = first_pulls(desk, rule, world, ends, out)
        if status != GOING_ON:
            return status
        amount[FLOOR_LOW] = amount[FLOOR]
        amount[FLOOR_HIGH] = amount[FLOOR]
        odd = gather(index, rule, desk, ends)
        if odd >= 0:
            number[LEADER] = odd
            return NOT_A_NUMBER
    while True:
        leader = number[LEADER]
        if number[STAGE] == CHOOSING:
            if number[ROUNDS] >= ends.max_rounds:
                return ROUND_LIMIT
            if leader >= 0 and not can_pay(desk, ends, leader):
                leader = -1
            lead = now(index, rule, desk, leader) if leader >= 0 else -np.inf
            if lead != lead:
                return NOT_A_NUMBER
            level = lead
            if leader < 0 and number[GROUPS] > 0:
                level = -desk.bound_key[0]
            if number[POOL_SIZE] > 0:
                level = np.inf
            if rule.kind == FLOOR_SEEN and (
                not amount[FLOOR_LOW] <= amount[FLOOR] <= amount[FLOOR_HIGH]
                or number[WASTE] > 16 * (number[GROUPS] + number[POOL_SIZE]) + 64
            ):
                reopen(index, rule, desk, level)
            renew_expired(index, rule, desk, level)
            rival = -np.inf
            if number[GROUPS] > 0:
                rival = -desk.bound_key[0]
                rival += rule.slack * (1.0 + abs(rival))
            if leader >= 0 and number[POOL_SIZE] == 0 and lead > rival:
                if rule.blocks:
                    count, shortfall, excess = region(index, rule, desk, ends, leader, lead, rival)
                    if count > 0:
                        status = roam(desk, rule, world, ends, out, leader, count, shortfall, excess)
                        if status != GOING_ON:
                            return status
                        continue
            else:
                leader = elect(index, rule, desk, ends, leader, lead)
                number[LEADER] = leader
                if leader < -1:
                    number[LEADER] = -2 - leader
                    return NOT_A_NUMBER
                if leader < 0:
                    return stop(desk, rule, ends, out)
            number[STAGE] = PULLING
        status = pull(desk, rule, world, ends, out, leader)
        if status != GOING_ON:
            return status
        number[STAGE] = CHOOSING
