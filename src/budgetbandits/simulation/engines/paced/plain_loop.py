"""The plain loops of policies with a budget and a horizon: `reference.play`, compiled, with the same draws in order.

Outcomes are drawn by the Python side, in the batches of the reference simulator: any law will do. The formulas are the
policies' own functions, compiled.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable

from budgetbandits.policies.paced import statistics
from budgetbandits.policies.paced.selection import COSTS, REWARDS
from budgetbandits.policies.paced.statistics import COST, COUNT, PAID, REWARD, SMALLEST_COST
from budgetbandits.policies.primal_dual import lower
from budgetbandits.simulation.engines.index import rules as index_rules  # noqa: F401 - lets `lower` be called here
from budgetbandits.simulation.engines.paced.posteriors import law_of, renew, sums_of
from budgetbandits.simulation.engines.paced.selection import (
    costs_of,
    next_request,
    offered,
    rewards_of,
    select_arm,
    solve,
)
from budgetbandits.simulation.engines.runtime.records import FINISHED, GOING_ON, add_cost, float_pointer, whole_pointer
from budgetbandits.simulation.engines.sampling import engine as sampling_engine  # noqa: F401 - lets `add_outcome` call `trial`

register_jitable(statistics.add_outcome)


@njit(cache=True, nogil=True, error_model="numpy")
def play_paced(games, rng):
    """A game of `bts-paced`, until it ends or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = draw_and_mix(game, rng) if game.leader < 0 else pull(game, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def play_priced(games, index, rng):
    """The same of `primal-dual-bwk`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = best_index(game, index, rng) if game.leader < 0 else pull(game, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_mix(game, rng):
    """Draw plausible means of all segments and the arms planned for, and make an arm of the best mix the leader."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    renew(game)
    draw_means(game, rng)
    weigh_segments(game)
    rate = rate_of(game)
    solve(game, rate)
    game.leader = select_arm(game, rng, rate)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def draw_means(game, rng):
    """Rewards first, then costs."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    for segment in range(game.segments):
        rewards = rewards_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            rewards[place] = max(rng.beta(law[REWARDS], law[REWARDS + 1]), SMALLEST_COST)
    for segment in range(game.segments):
        costs = costs_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            costs[place] = max(rng.beta(law[COSTS], law[COSTS + 1]), SMALLEST_COST) * scales[who[place]]


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_segments(game):
    """How often each segment has come, and once more."""
    answered, weight = float_pointer(game.answered_at), float_pointer(game.weight_at)
    total = float(game.rounds + game.segments)
    for segment in range(game.segments):
        weight[segment] = (answered[segment] + 1.0) / total


@njit(cache=True, nogil=True, error_model="numpy")
def rate_of(game):
    """Money for each request that is still to come."""
    scales, paid = float_pointer(game.scales_at), 0.0
    for segment in range(game.segments):
        for arm in range(game.arms):
            paid += sums_of(game, segment, arm)[PAID] * scales[arm]
    return max(game.budget - paid, 0.0) / max(game.horizon - float(game.rounds), 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def best_index(game, index, rng):
    """Make the next arm without a pull the leader, else the arm with the highest index, and raise the prices; exact
    ties are broken uniformly, as `policies.base.best` does."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    while game.opened < game.arms:
        arm = game.opened
        game.opened += 1
        if offered(game, arm) and sums_of(game, 0, arm)[COUNT] == 0.0:
            game.leader = arm
            return GOING_ON
    top = max(game.log_money, game.log_time)
    money = math.exp(game.log_money - top) * game.money_use
    time = math.exp(game.log_time - top) * game.time_use
    scores, who = rewards_of(game, 0), whole_pointer(game.who_at)
    best, ties = -np.inf, 0
    for place in range(game.planned):
        sums = sums_of(game, 0, who[place])
        pulls = sums[COUNT]
        value = np.inf
        if pulls > 0.0:
            means = sums[REWARD] / pulls, sums[COST] / pulls
            value = index(means[0], means[1], pulls, float(game.rounds), game.width_of_bounds, money, time, np.int64(0))
        scores[place] = value
        if value > best:
            best, ties, game.leader = value, 1, who[place]
        elif value == best:
            ties += 1
    if ties > 1:
        left = rng.integers(0, ties)
        for place in range(game.planned):
            if scores[place] == best:
                if left == 0:
                    game.leader = who[place]
                    break
                left -= 1
    raise_prices(game)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def raise_prices(game):
    """By what the chosen arm is sure to use of either resource; an arm never pulled uses nothing yet."""
    sums = sums_of(game, 0, game.leader)
    pulls = sums[COUNT]
    if pulls > 0.0:
        game.log_money += game.money_growth * lower(sums[COST] / pulls, pulls, game.width_of_bounds)
        game.log_time += game.time_growth


@njit(cache=True, nogil=True, error_model="numpy")
def pull(game, rng):
    """Pull the leader: GOING_ON, FINISHED, or the place in the buffer whose outcomes have run out; then nothing has
    happened."""
    place = game.part * game.arms + game.leader
    used = whole_pointer(game.used_at)
    if used[place] == whole_pointer(game.filled_at)[place]:
        return place
    outcome = float_pointer(game.buffer_at + 16 * (game.chunk * place + used[place]))
    reward, cost = outcome[0], outcome[1]
    used[place] += 1
    relative = cost / float_pointer(game.scales_at)[game.leader]
    statistics.add_outcome(sums_of(game, game.segment, game.leader), reward, relative, rng, game.trials, game.forget)
    whole_pointer(game.pulls_at)[place] += 1
    float_pointer(game.answered_at)[game.segment] += 1.0
    game.rounds += 1
    game.last, game.leader = game.leader, -1
    return pay(game, reward, cost)


@njit(cache=True, nogil=True, error_model="numpy")
def pay(game, reward, cost):
    """A cost that reaches the budget ends the game; the reward counts where the cost is still covered."""
    after = game.spent + cost
    if after >= game.budget - game.tolerance:
        fits = after <= game.budget + game.tolerance
        game.reward += reward * fits
        game.spent += cost * fits
        return FINISHED
    game.reward += reward
    add_cost(game, cost)
    return GOING_ON
