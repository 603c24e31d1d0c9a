"""One game of ε-first on finite laws, compiled: exploration in turns, then the best arm to the end.

Whole turns that cannot reach the end of the exploration whatever they cost, and whole stretches that cannot end the
game, are a few binomial draws for each arm; each such block takes a good part of what is left, so they are few.
Only the last pulls are drawn one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import uniform
from budgetbandits.simulation.engines.runtime.laws import LawFields, outcome, outcomes
from budgetbandits.simulation.engines.runtime.records import (
    FINISHED,
    ROUND_LIMIT,
    Floats,
    Wholes,
    Words,
    budget_end,
    float_pointer,
    whole_pointer,
)


class EpsilonFirstRecord(LawFields):
    """The record of a game and its arrays. Money and rewards are counted in the units of `laws.Tables`."""

    rounds: int
    arms: int
    max_rounds: int
    reward: float
    spent: float
    budget: float
    exploration: float  # the money to explore with
    tolerance: float
    reward_scale: float
    cost_scale: float
    stream: Words
    pulls: Wholes  # sums of each arm, as the next two
    rewards: Floats
    costs: Floats


@njit(cache=True, nogil=True, error_model="numpy")
def play(games):
    """Play a game to its end, or until it has taken too many rounds.

    The exploration must leave enough for any pull: budget - exploration > largest cost + tolerance.
    """
    game = games[0]
    explore(game)
    exploit(game, best_ratio(game))
    return ROUND_LIMIT if game.rounds > game.max_rounds else FINISHED


@njit(cache=True, nogil=True, error_model="numpy")
def explore(game):
    """Pull the arms in turn until the money for it is spent."""
    tops = float_pointer(game.cost_top_at)
    turn_cost = 0.0  # at most
    for arm in range(game.arms):
        turn_cost += tops[arm]
    while game.spent < game.exploration and game.rounds <= game.max_rounds:
        turns = np.int64((game.exploration - game.spent) / turn_cost - 1e-9)
        for arm in range(game.arms):
            if turns >= 1:
                reward, _, cost = outcomes(game, arm, turns)
                book(game, arm, turns, reward, cost)
            elif game.spent < game.exploration:
                reward, cost = outcome(game, arm)
                book(game, arm, np.int64(1), reward, cost)
            else:
                break


@njit(cache=True, nogil=True, error_model="numpy")
def book(game, arm, count, reward, cost):
    """Enter pulls that do not end the game."""
    game.rounds += count
    game.reward += reward
    game.spent += cost
    whole_pointer(game.pulls_at)[arm] += count
    float_pointer(game.rewards_at)[arm] += reward
    float_pointer(game.costs_at)[arm] += cost


@njit(cache=True, nogil=True, error_model="numpy")
def best_ratio(game):
    """The arm with the highest ratio of reward to cost so far, ties broken uniformly."""
    pulls, rewards, costs = whole_pointer(game.pulls_at), float_pointer(game.rewards_at), float_pointer(game.costs_at)
    best = -np.inf
    chosen = 0
    ties = 0
    for arm in range(game.arms):
        ratio = -np.inf
        if pulls[arm] > 0:
            ratio = (rewards[arm] / game.reward_scale) / (costs[arm] / game.cost_scale) if costs[arm] > 0.0 else np.inf
        if ratio > best:
            best = ratio
            chosen = arm
            ties = 1
        elif ratio == best:
            ties += 1
            if uniform(game.stream_at) * ties < 1.0:  # the j-th of equals replaces the choice with probability 1/j
                chosen = arm
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def exploit(game, arm):
    """Pull one arm until the budget is spent."""
    top = float_pointer(game.cost_top_at)[arm]
    while game.rounds <= game.max_rounds:
        count = np.int64((game.budget - game.spent - game.tolerance) / top) - 1
        if count >= 2:
            reward, _, cost = outcomes(game, arm, count)
            book(game, arm, count, reward, cost)
            continue
        reward, cost = outcome(game, arm)
        ends, covered = budget_end(game.spent + cost, game.budget, game.tolerance)
        if not covered:
            game.rounds += 1  # the pull that overdraws earns nothing and is not paid for
            whole_pointer(game.pulls_at)[arm] += 1
            return
        book(game, arm, np.int64(1), reward, cost)
        if ends:
            return
