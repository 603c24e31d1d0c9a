"""Outcomes of decided pulls: rewards, costs, posterior trials, and where each budget's game ends.

Decided pulls of one arm are settled together.  Money is counted in whole steps of the cost lattice for finite laws, in
floats with a tolerance for buffered outcomes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.engines.runtime.draws import geometric, uniform
from budgetbandits.simulation.engines.runtime.records import (
    FINISHED,
    add_cost,
    close_budget,
    close_budgets,
    float_pointer,
    read_outcome,
    whole_pointer,
)
from budgetbandits.simulation.engines.thompson.state import SETTLED, steps_to_the_end


@njit(cache=True, nogil=True, error_model="numpy")
def place_of(u, arm, width, chances, smallest, keys):
    """The place on an arm's support where u falls, counting only keys of at least `smallest`."""
    last = 0
    for place in range(width):
        chance = chances[arm * width + place]
        if chance > 0.0 and keys[arm * width + place] >= smallest:
            if u < chance:
                return place
            u -= chance
            last = place
    return last  # rounding of the sums belongs to the last value that is possible


@njit(cache=True, nogil=True, error_model="numpy")
def trial(stream, chance):
    """One Bernoulli trial; certain ones, the rule with Bernoulli arms, need no draw."""
    if chance >= 1.0:
        return np.int64(1)
    if chance <= 0.0:
        return np.int64(0)
    return np.int64(uniform(stream) < chance)


@njit(cache=True, nogil=True, error_model="numpy")
def reward_block(game, arm, pulls):
    """(sum of rewards, successes of their Bernoulli trials) over a block of pulls of one arm."""
    stream, width = game.stream_at, game.reward_width
    values, probabilities = float_pointer(game.reward_values_at), float_pointer(game.reward_chances_at)
    if pulls == 1:
        value = values[arm * width + place_of(uniform(stream), arm, width, probabilities, 0.0, values)]
        return value, trial(stream, value)
    left = np.int64(pulls)
    remaining = 1.0
    total = 0.0
    successes = np.int64(0)
    for index in range(width):
        if left == 0:
            break
        chance = probabilities[arm * width + index]
        if chance <= 0.0:
            continue
        # Rounding in the running remainder must not leave the last value short of probability 1.
        count = left if chance >= remaining * (1.0 - 1e-14) else binomial(stream, left, chance / remaining)
        left -= count
        remaining -= chance
        total += count * values[arm * width + index]
        successes += binomial(stream, count, values[arm * width + index])
    return total, successes


@njit(cache=True, nogil=True, error_model="numpy")
def cost_block(game, arm, events):
    """(cost steps, successes of their trials) of that many pulls whose cost is known not to be zero."""
    stream, width = game.stream_at, game.cost_width
    steps, trials = whole_pointer(game.cost_steps_at), float_pointer(game.cost_trials_at)
    probabilities = float_pointer(game.cost_chances_at)
    left = np.int64(events)
    remaining = float_pointer(game.cost_chance_at)[arm]
    total = np.int64(0)
    successes = np.int64(0)
    for index in range(width):
        if left == 0:
            break
        chance = probabilities[arm * width + index]
        if chance <= 0.0 or steps[arm * width + index] == 0:
            continue
        count = left if chance >= remaining * (1.0 - 1e-14) else binomial(stream, left, chance / remaining)
        left -= count
        remaining -= chance
        total += count * steps[arm * width + index]
        successes += binomial(stream, count, trials[arm * width + index])
    return total, successes


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def learn(game, slot, count, won, paid):
    """Add ``count`` trials to the posterior, ``won`` of them successes of the reward and ``paid`` of the cost."""
    if game.frozen == 0:
        posterior = whole_pointer(game.posterior_at)
        posterior[4 * slot + 0] += won
        posterior[4 * slot + 1] += count - won
        posterior[4 * slot + 2] += paid
        posterior[4 * slot + 3] += count - paid


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def book(game, arm, slot, count, won, paid):
    """Enter Bernoulli pulls that end no game."""
    game.spent_steps += paid * whole_pointer(game.cost_top_at)[arm]
    game.rounds += count
    game.reward += won
    whole_pointer(game.pulls_at)[arm] += count
    learn(game, slot, count, won, paid)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def settle_one(game, arm, slot):
    """Settle one pull of a Bernoulli arm that cannot end a game; False when it might, or the arm is another.

    What settle_finite does without its branches, for the case that near ties spend their time in.
    """
    chances = float_pointer(game.bernoulli_at)
    chance = chances[2 * arm]
    if chance < 0.0 or whole_pointer(game.cost_top_at)[arm] >= steps_to_the_end(game):
        return False
    won = np.int64(uniform(game.stream_at) < chance)
    paid = np.int64(uniform(game.stream_at) < chances[2 * arm + 1])
    book(game, arm, slot, np.int64(1), won, paid)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def settle_finite(game, arm, slot, decided):
    """Settle decided pulls of an arm with independent finite laws; FINISHED when the last budget's game ended."""
    chances = float_pointer(game.bernoulli_at)
    left = np.int64(decided)
    if chances[2 * arm] >= 0.0 and left <= (steps_to_the_end(game) - 1) // whole_pointer(game.cost_top_at)[arm]:
        # Bernoulli pulls that cannot end a game, as nearly all are: two binomials.
        won = binomial(game.stream_at, left, chances[2 * arm])
        paid = binomial(game.stream_at, left, float_pointer(game.cost_chance_at)[arm])
        book(game, arm, slot, left, won, paid)
        return SETTLED
    return settle_piecewise(game, arm, slot, left)


@njit(cache=True, nogil=True, error_model="numpy")
def settle_piecewise(game, arm, slot, left):
    """Settle pulls that may end a game, or of any finite law.

    A stretch of pulls with `events` costs above zero cannot end a game while events * largest step < room, so only
    the costs that might are drawn one by one.
    """
    stream = game.stream_at
    chance = float_pointer(game.cost_chance_at)[arm]
    top = whole_pointer(game.cost_top_at)[arm]
    walk_pulls = np.int64(0)  # a stretch whose number of costs is known and has to be walked pull by pull
    walk_events = np.int64(0)
    while left > 0:
        fall = -1.0  # where the cost of a single pull falls among those above zero, as a share
        block = np.int64(0)
        events = np.int64(0)
        single = False
        if walk_pulls > 0:
            if uniform(stream) * walk_pulls < walk_events:
                single = True
                walk_events -= 1
            else:
                block = np.int64(1)
            walk_pulls -= 1
        elif left == 1:
            fall = uniform(stream)
            single = fall < chance
            block = np.int64(0) if single else np.int64(1)
            fall /= chance  # uniform again, given that it fell below the chance
        else:
            safe = (steps_to_the_end(game) - 1) // top
            if left <= safe or safe >= 64:
                block = left
                if block > safe:
                    # More pulls than surely fit, so few that the number of costs almost surely does.
                    likely = (safe - game.caution * math.sqrt(float(safe))) / chance
                    block = max(safe, min(block, np.int64(min(likely, 4e18))))
                events = binomial(stream, block, chance)
                if events > safe:
                    # It did not: given their number, the places of the costs are a sample without replacement.
                    walk_pulls = block
                    walk_events = events
                    continue
            else:
                free = geometric(stream, chance) - 1
                block = min(free, left)
                single = free < left
        if block > 0:
            settle_block(game, arm, slot, block, events)
            left -= block
        if single:
            left -= 1
            if settle_cost(game, arm, slot, fall):
                return FINISHED
    return SETTLED


@njit(cache=True, nogil=True, error_model="numpy")
def settle_block(game, arm, slot, block, events):
    """Pulls that end no game; ``events`` of them have a cost above zero."""
    spent, paid = cost_block(game, arm, events)
    earned, won = reward_block(game, arm, block)
    game.spent_steps += spent
    game.rounds += block
    game.reward += earned
    whole_pointer(game.pulls_at)[arm] += block
    learn(game, slot, block, won, paid)


@njit(cache=True, nogil=True, error_model="numpy")
def settle_cost(game, arm, slot, fall):
    """A pull with a cost above zero, which may end games; True when it ended the last. Where the cost falls is drawn
    if it is not given (below 0)."""
    stream, width = game.stream_at, game.cost_width
    steps, ends = whole_pointer(game.cost_steps_at), whole_pointer(game.ends_at)
    if fall < 0.0:
        fall = uniform(stream)
    chance = float_pointer(game.cost_chance_at)[arm]
    place = place_of(fall * chance, arm, width, float_pointer(game.cost_chances_at), 1, steps)
    spent = steps[arm * width + place]
    paid = trial(stream, float_pointer(game.cost_trials_at)[arm * width + place])
    earned, won = reward_block(game, arm, np.int64(1))
    whole_pointer(game.pulls_at)[arm] += 1
    game.rounds += 1
    after = game.spent_steps + spent
    while game.checkpoint < game.budgets and ends[game.checkpoint] <= after:
        reached = whole_pointer(game.whole_at)[game.checkpoint] > 0 and ends[game.checkpoint] == after
        close_budget(
            game,
            game.reward + earned if reached else game.reward,
            after if reached else game.spent_steps,
        )
    if game.checkpoint == game.budgets:
        return True
    game.spent_steps = after
    game.reward += earned
    learn(game, slot, np.int64(1), won, paid)
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def settle_buffered(game, arm, slot, decided):
    """Settle pulls from pre-drawn outcomes; the arm when its buffer ran dry, and then what is left stays pending."""
    for outcome in range(decided):
        available, reward, cost = read_outcome(game, arm)
        if not available:
            game.pending = decided - outcome
            return arm
        whole_pointer(game.pulls_at)[arm] += 1
        game.rounds += 1
        if close_budgets(game, reward, cost) == FINISHED:
            return FINISHED
        add_cost(game, cost)
        game.reward += reward
        if game.frozen == 0:
            won = np.int64(uniform(game.stream_at) < reward)
            learn(game, slot, np.int64(1), won, np.int64(uniform(game.stream_at) < cost))
    return np.int64(SETTLED)
