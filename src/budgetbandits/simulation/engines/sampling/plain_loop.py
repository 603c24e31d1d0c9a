"""The plain loop of sampling policies: `reference.play`, compiled, with the same draws in the same order.

Every arm draws its score in every round, so a round takes as many draws as there are arms. Outcomes are drawn by the
Python side, in the batches of the reference simulator: any law will do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    NOT_A_NUMBER,
    ROUND_LIMIT,
    add_cost,
    close_budgets,
    float_pointer,
    stop,
    whole_pointer,
)


@njit(cache=True, nogil=True, error_model="numpy")
def play_sampling(games, score, learn, rng):
    """Play until every budget's game has ended or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = choose(game, score, rng) if game.leader < 0 else pull(game, learn, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def statistics_of(game, arm):
    """The address of an arm's statistics."""
    return game.statistics_at + 8 * game.rows * arm


@njit(cache=True, nogil=True, error_model="numpy")
def choose(game, score, rng):
    """Make the arm with the highest score the leader; exact ties are broken uniformly, as `policies.base.best` does."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return stop(game)
    scores = float_pointer(game.scores_at)
    top = -np.inf
    ties = 0
    for arm in range(game.arms):
        value = score(statistics_of(game, arm), rng, game.extras_at)
        scores[arm] = value
        if value != value:
            game.leader = arm
            return NOT_A_NUMBER
        if value > top:
            top, ties, game.leader = value, 1, arm
        elif value == top:
            ties += 1
    if top == -np.inf:  # the reference takes that for a policy that stops
        return stop(game)
    if ties > 1:
        left = rng.integers(0, ties)
        for arm in range(game.arms):
            if scores[arm] == top:
                if left == 0:
                    game.leader = arm
                    break
                left -= 1
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def pull(game, learn, rng):
    """Pull the leader: GOING_ON, FINISHED, or the arm itself if its outcomes have run out and nothing happened."""
    arm = game.leader
    used = whole_pointer(game.used_at)
    if used[arm] == whole_pointer(game.filled_at)[arm]:
        return arm
    outcome = float_pointer(game.buffer_at + 16 * (game.chunk * arm + used[arm]))
    reward, cost = outcome[0], outcome[1]
    used[arm] += 1
    learn(statistics_of(game, arm), reward, cost, rng, game.extras_at)
    whole_pointer(game.pulls_at)[arm] += 1
    game.rounds += 1
    game.leader = -1
    status = close_budgets(game, reward, cost)
    if status == GOING_ON:
        game.reward += reward
        add_cost(game, cost)
    return status
