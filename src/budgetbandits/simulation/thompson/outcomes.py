"""What decided pulls bring: rewards, costs, posterior trials, and where each budget's game ends.

Decided pulls of one arm are settled together.  The ledger holds the money: for finite laws whole steps of the cost
lattice, for buffered outcomes floats with a tolerance.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.binomials import binomial
from budgetbandits.simulation.compiled.draws import geometric, uniform
from budgetbandits.simulation.reference import TOLERANCE

# Places in the whole-number ledger and in the float ledger.
SPENT_STEPS, CHECKPOINT, ROUNDS = 0, 1, 2
REWARD, SPENT, SPENT_ERROR = 0, 1, 2

FINISHED = -1
SETTLED = -2


@njit(cache=True, nogil=True)
def close_budget(place, arms, reward, spent, rounds, pulls, out_pulls, out_reward, out_spend, out_rounds):
    for arm in range(arms):
        out_pulls[place * arms + arm] = pulls[arm]
    out_reward[place] = reward
    out_spend[place] = spent
    out_rounds[place] = rounds


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
def reward_block(stream, pulls, arm, width, values, probabilities):
    """(sum of rewards, successes of their Bernoulli trials) over a block of pulls of one arm."""
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
def cost_block(stream, events, arm, width, steps, trials, probabilities, chance_of_cost):
    """(cost steps, successes of their trials) of that many pulls whose cost is known not to be zero."""
    left = np.int64(events)
    remaining = chance_of_cost
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


@njit(cache=True, nogil=True, error_model="numpy")
def book(slot, arm, count, won, paid, top, frozen, posterior, pulls, ledger, ledger_float):
    """Enter Bernoulli pulls that end no game."""
    ledger[SPENT_STEPS] += paid * top
    ledger[ROUNDS] += count
    ledger_float[REWARD] += won
    pulls[arm] += count
    if not frozen:
        posterior[4 * slot + 0] += won
        posterior[4 * slot + 1] += count - won
        posterior[4 * slot + 2] += paid
        posterior[4 * slot + 3] += count - paid


@njit(cache=True, nogil=True, error_model="numpy")
def settle_one(stream, arm, slot, frozen, posterior, pulls, ledger, ledger_float, ends, cost_top, chances):
    """Settle one pull of a Bernoulli arm that cannot end a game; False when it might, or the arm is another.

    The same as settle_finite without its branches, for the case that near ties spend their time in.
    """
    chance = chances[2 * arm]
    if chance < 0.0 or ledger[SPENT_STEPS] + cost_top[arm] >= ends[ledger[CHECKPOINT]]:
        return False
    won = np.int64(uniform(stream) < chance)
    paid = np.int64(uniform(stream) < chances[2 * arm + 1])
    book(slot, arm, np.int64(1), won, paid, cost_top[arm], frozen, posterior, pulls, ledger, ledger_float)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def settle_finite(
    stream, arm, slot, decided, frozen, caution, posterior, pulls, ledger, ledger_float, ends, whole, step,
    reward_values, reward_chances, cost_steps, cost_trials, cost_chances, cost_chance, cost_top, bernoulli,
    arms, number, reward_width, cost_width,     out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    """Settle decided pulls of an arm with independent finite laws; FINISHED when the last budget's game ended.

    A stretch of pulls with `events` costs above zero cannot end a game while events * largest step < room, so only
    the costs that might are drawn one by one.
    """
    left = np.int64(decided)
    chance = cost_chance[arm]
    top = cost_top[arm]
    if bernoulli[2 * arm] >= 0.0 and left <= (ends[ledger[CHECKPOINT]] - ledger[SPENT_STEPS] - 1) // top:
        # Bernoulli pulls that cannot end a game, as nearly all are: two binomials.
        book(
            slot, arm, left, binomial(stream, left, bernoulli[2 * arm]), binomial(stream, left, chance), top,
            frozen, posterior, pulls, ledger, ledger_float,
        )  # fmt: skip
        return SETTLED
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
            safe = (ends[ledger[CHECKPOINT]] - ledger[SPENT_STEPS] - 1) // top
            if left <= safe or safe >= 64:
                block = left
                if block > safe:
                    # More pulls than surely fit, so few that the number of costs almost surely does.
                    likely = (safe - caution * math.sqrt(float(safe))) / chance
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
            spent, spent_trials = cost_block(
                stream, events, arm, cost_width, cost_steps, cost_trials, cost_chances, chance
            )
            earned, earned_trials = reward_block(stream, block, arm, reward_width, reward_values, reward_chances)
            ledger[SPENT_STEPS] += spent
            ledger[ROUNDS] += block
            ledger_float[REWARD] += earned
            pulls[arm] += block
            left -= block
            if not frozen:
                posterior[4 * slot + 0] += earned_trials
                posterior[4 * slot + 1] += block - earned_trials
                posterior[4 * slot + 2] += spent_trials
                posterior[4 * slot + 3] += block - spent_trials
        if single:
            if fall < 0.0:
                fall = uniform(stream)
            place = place_of(fall * chance, arm, cost_width, cost_chances, 1, cost_steps)
            spent = cost_steps[arm * cost_width + place]
            spent_trials = trial(stream, cost_trials[arm * cost_width + place])
            earned, earned_trials = reward_block(stream, np.int64(1), arm, reward_width, reward_values, reward_chances)
            pulls[arm] += 1
            left -= 1
            ledger[ROUNDS] += 1
            after = ledger[SPENT_STEPS] + spent
            while ledger[CHECKPOINT] < number and ends[ledger[CHECKPOINT]] <= after:
                place = ledger[CHECKPOINT]
                reached = whole[place] > 0 and ends[place] == after
                close_budget(
                    place,
                    arms,
                    ledger_float[REWARD] + earned if reached else ledger_float[REWARD],
                    (after if reached else ledger[SPENT_STEPS]) * step,
                    ledger[ROUNDS], pulls, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
                ledger[CHECKPOINT] += 1
            if ledger[CHECKPOINT] == number:
                return FINISHED
            ledger[SPENT_STEPS] = after
            ledger_float[REWARD] += earned
            if not frozen:
                posterior[4 * slot + 0] += earned_trials
                posterior[4 * slot + 1] += 1 - earned_trials
                posterior[4 * slot + 2] += spent_trials
                posterior[4 * slot + 3] += 1 - spent_trials
    return SETTLED


@njit(cache=True, nogil=True, error_model="numpy")
def settle_buffered(
    stream, arm, slot, decided, frozen, posterior, pulls, ledger, ledger_float, budgets, buffer, used, filled,
    arms, number, chunk,     out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    """Settle pulls from pre-drawn outcomes; (status, pulls still to settle), status = the arm when its buffer ran dry."""
    for done in range(decided):
        place_in_buffer = used[arm]
        if place_in_buffer >= filled[arm]:
            return arm, decided - done
        used[arm] = place_in_buffer + 1
        reward = buffer[2 * (arm * chunk + place_in_buffer)]
        cost = buffer[2 * (arm * chunk + place_in_buffer) + 1]
        pulls[arm] += 1
        ledger[ROUNDS] += 1
        while ledger[CHECKPOINT] < number:
            place = ledger[CHECKPOINT]
            room = budgets[place] - ledger_float[SPENT]
            if cost > room + TOLERANCE:
                close_budget(
                    place, arms, ledger_float[REWARD], ledger_float[SPENT],
                    ledger[ROUNDS], pulls, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
            elif room - cost <= TOLERANCE:
                close_budget(
                    place, arms, ledger_float[REWARD] + reward, ledger_float[SPENT] + cost,
                    ledger[ROUNDS], pulls, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
            else:
                break
            ledger[CHECKPOINT] += 1
        if ledger[CHECKPOINT] == number:
            return FINISHED, np.int64(0)
        # Compensated summation: a plain sum of a billion costs would drift past the tolerance.
        corrected = cost - ledger_float[SPENT_ERROR]
        total = ledger_float[SPENT] + corrected
        ledger_float[SPENT_ERROR] = (total - ledger_float[SPENT]) - corrected
        ledger_float[SPENT] = total
        ledger_float[REWARD] += reward
        if not frozen:
            won = np.int64(uniform(stream) < reward)
            paid = np.int64(uniform(stream) < cost)
            posterior[4 * slot + 0] += won
            posterior[4 * slot + 1] += 1 - won
            posterior[4 * slot + 2] += paid
            posterior[4 * slot + 3] += 1 - paid
    return SETTLED, np.int64(0)
