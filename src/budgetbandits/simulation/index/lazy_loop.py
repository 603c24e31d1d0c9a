"""Index policies, exactly, without evaluating what cannot matter: the loop over rounds.

docs/engine.md, section 8, says why that is exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.index.aim import sweep_on, worth_a_sweep
from budgetbandits.simulation.index.blocks import region, roam
from budgetbandits.simulation.index.election import elect, gather, now, renew_expired, reopen
from budgetbandits.simulation.index.memory import (
    CHOOSING,
    COUNTED_FROM,
    EVALUATED_BEFORE,
    EVALUATIONS,
    FLOOR,
    FLOOR_HIGH,
    FLOOR_LOW,
    FLOOR_SEEN,
    GOING_ON,
    GROUPS,
    LAZY_PRICE,
    LEADER,
    NOT_A_NUMBER,
    OPENING,
    PATIENCE,
    POOL_SIZE,
    PULLING,
    ROUND_LIMIT,
    ROUNDS,
    STAGE,
    WASTE,
    open_desk,
    open_ends,
    open_world,
)
from budgetbandits.simulation.index.plain_loop import first_pulls
from budgetbandits.simulation.index.pulling import can_pay, pull, stop


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def laborious(desk):
    """Whether the last rounds needed so many evaluations that sweeps are faster."""
    number = desk.number
    evaluations = number[EVALUATIONS] - number[EVALUATED_BEFORE]
    if evaluations < number[PATIENCE]:
        return False
    rounds = number[ROUNDS] - number[COUNTED_FROM]
    number[EVALUATED_BEFORE] = number[EVALUATIONS]
    number[COUNTED_FROM] = number[ROUNDS]
    desk.amount[LAZY_PRICE] = float(evaluations) / float(max(rounds, 1))
    return rounds < 8 * evaluations


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
            if laborious(desk) and worth_a_sweep(desk, rule, ends):
                sweep_on(index, rule, desk, world, ends)
                odd = gather(index, rule, desk, ends)
                if odd >= 0:
                    number[LEADER] = odd
                    return NOT_A_NUMBER
                number[EVALUATED_BEFORE] = number[EVALUATIONS]
                number[COUNTED_FROM] = number[ROUNDS]
                continue
            if leader >= 0 and not can_pay(desk, ends, leader):
                leader = -1
            lead = now(index, rule, desk, leader) if leader >= 0 else -np.inf
            if leader >= 0 and not lead > -np.inf:
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
