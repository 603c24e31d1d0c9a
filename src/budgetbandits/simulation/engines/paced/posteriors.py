"""The posteriors of `bts-paced` for an arm in each segment: `PacedThompson.laws` and `pooling.pooled`, for one arm.

With one segment an outcome changes what is believed of its arm, and nothing of the others. With several, what it says
of its segment's rewards changes what is believed of all.
"""

from __future__ import annotations

from numba import carray, njit
from numba.extending import register_jitable

from budgetbandits.policies.paced import statistics
from budgetbandits.policies.paced.pooling import (
    FARTHEST_SHIFT,
    FIRST_COUNT,
    FIRST_MEAN,
    MAX_PRIOR_STRENGTH,
    OUTCOMES_FOR_GUESS,
    OUTCOMES_FOR_SHIFT,
    SHIFT_EVIDENCE,
    SMALLEST_WITHIN,
)
from budgetbandits.policies.paced.selection import COSTS, REWARDS
from budgetbandits.policies.paced.statistics import COST, COST_SQUARED, COUNT, REWARD, REWARD_SQUARED
from budgetbandits.simulation.engines.runtime.records import float_pointer

for function in (statistics.beta_parameters, statistics.spend_weighted_cost, statistics.prior_cost_scale):
    register_jitable(function)

SUMS = statistics.PRICED
"""How many sums of an arm and segment a game keeps."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sums_of(game, segment, arm):
    return carray(float_pointer(game.sums_at + 8 * SUMS * (game.arms * segment + arm)), (SUMS,))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def law_of(game, segment, arm):
    """Four numbers: the parameters of the Betas of its mean reward and of its mean cost."""
    return float_pointer(game.law_at + 32 * (game.arms * segment + arm))


@njit(cache=True, nogil=True, error_model="numpy")
def over_segments(game, arm, row):
    """The sum of a row of an arm's sums."""
    total = 0.0
    for segment in range(game.segments):
        total += sums_of(game, segment, arm)[row]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def renew(game):
    """The posteriors of the arm that was pulled last, and of those without a cost; of rewards, with segments, all."""
    if game.segments > 1:
        compare_segments(game)
        for arm in range(game.arms):
            renew_pooled(game, arm, REWARD, REWARD_SQUARED, REWARDS, game.reward_squares, 1.0)
    if game.last >= 0:
        renew_laws(game, game.last, 1.0)  # without a cost it is among the others
    if game.unpriced > 0:
        renew_unpriced(game)


@njit(cache=True, nogil=True, error_model="numpy")
def renew_unpriced(game):
    """Of arms without a cost: the first ones are like those of all arms. There are ever fewer."""
    total, squares = 0.0, 0.0
    for arm in range(game.arms):
        total += over_segments(game, arm, COST)
        squares += over_segments(game, arm, COST_SQUARED)
    common = statistics.spend_weighted_cost(total, squares)
    game.unpriced = 0
    for arm in range(game.arms):
        if over_segments(game, arm, COST) == 0.0:
            renew_laws(game, arm, common)
            game.unpriced += 1


@njit(cache=True, nogil=True, error_model="numpy")
def renew_laws(game, arm, common):
    """The posteriors of an arm's mean reward and mean cost in every segment, from its sums."""
    size = statistics.prior_cost_scale(over_segments(game, arm, COST), over_segments(game, arm, COST_SQUARED), common)
    if game.segments == 1:
        renew_alone(game, arm, REWARD, REWARD_SQUARED, REWARDS, game.reward_squares, 1.0)
        renew_alone(game, arm, COST, COST_SQUARED, COSTS, game.cost_squares, size)
    else:
        renew_pooled(game, arm, COST, COST_SQUARED, COSTS, game.cost_squares, size)


@njit(cache=True, nogil=True, error_model="numpy")
def renew_alone(game, arm, row, squares, place, first, size):
    """Of one kind of outcome, where there is one segment: it starts with the first two outcomes."""
    sums, law = sums_of(game, 0, arm), law_of(game, 0, arm)
    mean, square = FIRST_COUNT * FIRST_MEAN * size / FIRST_COUNT, first * size * size / FIRST_COUNT
    law[place], law[place + 1] = statistics.beta_parameters(
        sums[COUNT], sums[row], sums[squares], FIRST_COUNT, mean, square
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def shift_of(game, segment, arm):
    """Four numbers: how surely it is known how far the arm's reward is above that in other segments; by how much it is
    taken to be, from its other arms (before that, both together); how far it is; and the mean in the others."""
    return float_pointer(game.shift_at + 32 * (game.arms * segment + arm))


@njit(cache=True, nogil=True, error_model="numpy")
def compare_segments(game):
    """How far each segment's rewards are from the others': `pooling.shift_segments`."""
    for arm in range(game.arms):
        all_count, all_total = over_segments(game, arm, COUNT), over_segments(game, arm, REWARD)
        for segment in range(game.segments):
            sums, shift = sums_of(game, segment, arm), shift_of(game, segment, arm)
            n = all_count - sums[COUNT] + FIRST_COUNT
            mean = (all_total - sums[REWARD] + FIRST_COUNT * FIRST_MEAN) / n
            shift[0] = sums[COUNT] * n / (sums[COUNT] + n)
            shift[2] = sums[REWARD] / max(sums[COUNT], 1.0) - mean
            shift[1] = shift[0] * shift[2]
            shift[3] = mean
    right, foretold = 0.0, 0.0
    for segment in range(game.segments):
        weights, apart = 0.0, 0.0
        for arm in range(game.arms):
            weights += shift_of(game, segment, arm)[0]
            apart += shift_of(game, segment, arm)[1]
        of_segment, squares = 0.0, 0.0
        for arm in range(game.arms):
            shift = shift_of(game, segment, arm)
            moved = (apart - shift[1]) / (weights - shift[0] + OUTCOMES_FOR_SHIFT)
            of_segment += shift[0] * moved * shift[2]
            squares += shift[0] * moved * moved
            shift[1] = moved
        right += of_segment
        foretold += squares
    slope = min(max((SHIFT_EVIDENCE + right) / (SHIFT_EVIDENCE + foretold), 0.0), 1.0)
    for segment in range(game.segments):
        for arm in range(game.arms):
            shift = shift_of(game, segment, arm)
            shift[1] = min(max(shift[1] * slope, -FARTHEST_SHIFT * shift[3]), FARTHEST_SHIFT * (1.0 - shift[3]))


@njit(cache=True, nogil=True, error_model="numpy")
def renew_pooled(game, arm, row, squares, place, first, size):
    """The same where each segment starts with what the others know."""
    spread = 4.0 * (first / FIRST_COUNT - FIRST_MEAN**2)
    first, first_total = first * size * size, FIRST_COUNT * FIRST_MEAN * size
    all_count, all_total = over_segments(game, arm, COUNT), over_segments(game, arm, row)
    all_squares = over_segments(game, arm, squares)
    alike = likeness(game, arm, row, all_count + FIRST_COUNT, all_total + first_total, all_squares + first)
    for segment in range(game.segments):
        sums, law = sums_of(game, segment, arm), law_of(game, segment, arm)
        n = all_count - sums[COUNT] + FIRST_COUNT
        mean = (all_total - sums[row] + first_total) / n
        square = (all_squares - sums[squares] + first) / n
        variance = max(square - mean * mean, 0.0)
        if row == REWARD:
            shift = shift_of(game, segment, arm)[1]
            variance *= (mean + shift) * (1.0 - mean - shift) / (mean * (1.0 - mean))
            mean += shift
            square = variance + mean * mean
        sure = MAX_PRIOR_STRENGTH / spread * variance / (mean * (1.0 - mean))
        least = variance / (mean * (1.0 - mean) * min(mean, 1.0 - mean))
        weight = min(n, max(min(alike, sure), least))
        law[place], law[place + 1] = statistics.beta_parameters(
            sums[COUNT], sums[row], sums[squares], weight, mean, square
        )


@njit(cache=True, nogil=True, error_model="numpy")
def likeness(game, arm, row, n, total, squares):
    """The variance of an arm's outcomes within segments by that of its means between them."""
    mean = total / n
    between, counts_squared, seen = 0.0, 0.0, 0.0
    for segment in range(game.segments):
        sums = sums_of(game, segment, arm)
        count = sums[COUNT]
        apart = sums[row] / max(count, 1.0) - mean
        if row == REWARD:
            apart -= shift_of(game, segment, arm)[1]
        between += count * (apart * apart)
        counts_squared += count * count
        seen += 1.0 if count > 0.0 else 0.0
    within = max(squares / n - mean * mean - between / n, SMALLEST_WITHIN)
    by_chance = max(seen - 1.0, 0.0)
    differences = OUTCOMES_FOR_GUESS / game.pooling + max(between / within - by_chance, 0.0)
    return (OUTCOMES_FOR_GUESS + (n - counts_squared / n)) / differences
