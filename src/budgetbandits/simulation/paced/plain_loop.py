"""The plain loops of policies with a budget and a horizon: `reference.play`, compiled, with the same draws in order.

Outcomes are drawn by the Python side, in the batches of the reference simulator: any law will do. The formulas are the
policies' own functions, compiled.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit
from numba.extending import register_jitable

from budgetbandits import fluid
from budgetbandits.policies import paced
from budgetbandits.policies.paced import SMALLEST_COST
from budgetbandits.policies.pooling import FIRST_COUNT, FIRST_MEAN
from budgetbandits.policies.primal_dual import lower
from budgetbandits.simulation.compiled.budgets import add_cost
from budgetbandits.simulation.compiled.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.compiled.status import FINISHED, GOING_ON, ROUND_LIMIT
from budgetbandits.simulation.index import rules as index_rules  # noqa: F401 - lets `lower` be called here
from budgetbandits.simulation.sampling import rules as sampling_rules  # noqa: F401 - lets `note` call `trial`

for function in (fluid.next_break, fluid.mix_of_one, paced.beta_parameters, paced.note):
    register_jitable(function)

SUMS = paced.PRICED


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
def next_request(game):
    """Whether there is one: GOING_ON, FINISHED or ROUND_LIMIT; a new phase may begin with it."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return FINISHED
    first = whole_pointer(game.first_at)
    while game.phase + 1 < game.phases and game.rounds >= first[game.phase + 1]:
        game.phase += 1
        offer, who = whole_pointer(game.offer_at + 8 * game.arms * game.phase), whole_pointer(game.who_at)
        game.offered = 0
        for arm in range(game.arms):
            if offer[arm] > 0:
                who[game.offered] = arm
                game.offered += 1
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sums_of(game, arm):
    return carray(float_pointer(game.sums_at + 8 * SUMS * arm), (SUMS,))


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_mix(game, rng):
    """Draw plausible means of all arms on offer, and make an arm of the best mix the leader."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    if game.rounds == 0:
        for arm in range(game.arms):
            renew_law(game, arm)
    elif game.last >= 0:
        renew_law(game, game.last)
    who, law, scales = whole_pointer(game.who_at), float_pointer(game.law_at), float_pointer(game.scales_at)
    rewards = carray(float_pointer(game.rewards_at), (game.offered,))
    costs = carray(float_pointer(game.costs_at), (game.offered,))
    for place in range(game.offered):
        at = 4 * who[place]
        rewards[place] = max(rng.beta(law[at], law[at + 1]), SMALLEST_COST)
    for place in range(game.offered):
        at = 4 * who[place]
        costs[place] = max(rng.beta(law[at + 2], law[at + 3]), SMALLEST_COST) * scales[who[place]]
    paid = 0.0
    for arm in range(game.arms):
        paid += sums_of(game, arm)[paced.PAID] * scales[arm]
    rate = max(game.budget - paid, 0.0) / max(game.horizon - float(game.rounds), 1.0)
    arm, upgrade, share, _ = fluid.mix_of_one(rewards, costs, rate)
    if share > 0.0 and rng.random() < share:
        arm = upgrade
    game.leader = who[arm]
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def renew_law(game, arm):
    """The posteriors of an arm's mean reward and mean cost, from its sums."""
    sums, law = sums_of(game, arm), float_pointer(game.law_at + 32 * arm)
    law[0], law[1] = paced.beta_parameters(
        sums[paced.COUNT], sums[paced.REWARD], sums[paced.REWARD_SQUARED], FIRST_COUNT, FIRST_MEAN, game.reward_square
    )  # fmt: skip
    law[2], law[3] = paced.beta_parameters(
        sums[paced.COUNT], sums[paced.COST], sums[paced.COST_SQUARED], FIRST_COUNT, FIRST_MEAN, game.cost_square
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def best_index(game, index, rng):
    """Make the next arm without a pull the leader, else the arm with the highest index, and raise the prices; exact
    ties are broken uniformly, as `policies.base.best` does."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    offer = whole_pointer(game.offer_at + 8 * game.arms * game.phase)
    while game.opened < game.arms:
        arm = game.opened
        game.opened += 1
        if offer[arm] > 0 and sums_of(game, arm)[paced.COUNT] == 0.0:
            game.leader = arm
            return GOING_ON
    top = max(game.log_money, game.log_time)
    money = math.exp(game.log_money - top) * game.money_use
    time = math.exp(game.log_time - top) * game.time_use
    scores, who = float_pointer(game.rewards_at), whole_pointer(game.who_at)
    best, ties = -np.inf, 0
    for place in range(game.offered):
        sums = sums_of(game, who[place])
        pulls = sums[paced.COUNT]
        value = np.inf
        if pulls > 0.0:
            means = sums[paced.REWARD] / pulls, sums[paced.COST] / pulls
            value = index(means[0], means[1], pulls, float(game.rounds), game.width, money, time, 0.0)
        scores[place] = value
        if value > best:
            best, ties, game.leader = value, 1, who[place]
        elif value == best:
            ties += 1
    if ties > 1:
        left = rng.integers(0, ties)
        for place in range(game.offered):
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
    sums = sums_of(game, game.leader)
    pulls = sums[paced.COUNT]
    if pulls > 0.0:
        game.log_money += game.money_growth * lower(sums[paced.COST] / pulls, pulls, game.width)
        game.log_time += game.time_growth


@njit(cache=True, nogil=True, error_model="numpy")
def pull(game, rng):
    """Pull the leader: GOING_ON, FINISHED, or the place in the buffer whose outcomes have run out; then nothing has
    happened."""
    place = game.phase * game.arms + game.leader
    used = whole_pointer(game.used_at)
    if used[place] == whole_pointer(game.filled_at)[place]:
        return place
    outcome = float_pointer(game.buffer_at + 16 * (game.chunk * place + used[place]))
    reward, cost = outcome[0], outcome[1]
    used[place] += 1
    told = cost / float_pointer(game.scales_at)[game.leader]
    paced.note(sums_of(game, game.leader), reward, told, rng, game.trials, game.forget)
    whole_pointer(game.pulls_at)[place] += 1
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
