"""The posteriors of `bts-paced` for an arm in each segment: `PacedThompson.laws`, for one arm.

The formulas are those of `pooling` and `statistics`, compiled; the sums over segments are loops here.

With one segment an outcome changes what is believed of its arm, and nothing of the others, unless outcomes fade. With
several, what it says
of its segment's rewards changes what is believed of all.
"""

from __future__ import annotations

from numba import carray, njit

from budgetbandits.policies.paced import pooling, statistics
from budgetbandits.policies.paced.pooling import FARTHEST_SHIFT, FIRST_COUNT, OUTCOMES_FOR_SHIFT, SHIFT_EVIDENCE
from budgetbandits.policies.paced.selection import COSTS, REWARDS
from budgetbandits.policies.paced.statistics import COST, COST_SQUARED, COUNT, REWARD, REWARD_SQUARED
from budgetbandits.simulation.engines.runtime.records import float_pointer

SUMS = statistics.PRICED
"""How many sums of an arm and segment a game keeps."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sums_of(game, segment, arm):
    """The sums of an arm in a segment."""
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
    """The posteriors of the arm that was pulled last, and of those without a cost; of rewards, with segments, all; and
    all where outcomes have just faded."""
    if game.segments > 1:
        compare_segments(game)
        for arm in range(game.arms):
            renew_pooled(game, arm, REWARD, REWARD_SQUARED, REWARDS, game.reward_squares, 1.0)
    if game.leader >= 0 and game.every > 0 and game.rounds % game.every == 0:
        for arm in range(game.arms):
            renew_laws(game, arm, 1.0)  # without a cost it is among the others
    elif game.leader >= 0:
        renew_laws(game, game.leader, 1.0)
    if game.unpriced > 0:
        renew_unpriced(game)


@njit(cache=True, nogil=True, error_model="numpy")
def renew_unpriced(game):
    """Renew arms without a cost, whose first costs are like those of all arms; there are ever fewer of them."""
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
    """Renew one kind of outcome where there is one segment: it starts with the first two outcomes."""
    sums, law = sums_of(game, 0, arm), law_of(game, 0, arm)
    _, first, first_total = pooling.first_outcomes(first, size)
    law[place], law[place + 1] = statistics.beta_parameters(
        sums[COUNT], sums[row], sums[squares], FIRST_COUNT, first_total / FIRST_COUNT, first / FIRST_COUNT
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def shift_of(game, segment, arm):
    """Four numbers: how surely it is known how far the arm's reward is above that in other segments; by how much it is
    taken to be, from its other arms (before that, both together); how far it is; and the mean in the others."""
    return float_pointer(game.shift_at + 32 * (game.arms * segment + arm))


@njit(cache=True, nogil=True, error_model="numpy")
def compare_segments(game):
    """How far each segment's rewards are from the others': `pooling.shift_segments`."""
    _, _, first_total = pooling.first_outcomes(0.0, 1.0)
    for arm in range(game.arms):
        all_count, all_total = over_segments(game, arm, COUNT), over_segments(game, arm, REWARD)
        for segment in range(game.segments):
            sums, shift = sums_of(game, segment, arm), shift_of(game, segment, arm)
            n, mean, _ = pooling.moments_elsewhere(
                sums[COUNT], sums[REWARD], 0.0, all_count, all_total, 0.0, 0.0, first_total
            )
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
    """The same where each segment starts with what the others know: `pooling.pooled`."""
    spread, first, first_total = pooling.first_outcomes(first, size)
    all_count, all_total = over_segments(game, arm, COUNT), over_segments(game, arm, row)
    all_squares = over_segments(game, arm, squares)
    n, total = all_count + FIRST_COUNT, all_total + first_total
    between, counts_squared, seen = between_segments(game, arm, row, total / n)
    alike = pooling.likeness(n, total, all_squares + first, between, counts_squared, seen, game.pooling)
    for segment in range(game.segments):
        sums, law = sums_of(game, segment, arm), law_of(game, segment, arm)
        n, mean, square = pooling.moments_elsewhere(
            sums[COUNT], sums[row], sums[squares], all_count, all_total, all_squares, first, first_total
        )
        variance = max(square - mean * mean, 0.0)
        if row == REWARD:
            mean, variance, square = pooling.shifted_moments(mean, variance, shift_of(game, segment, arm)[1])
        largest, least = pooling.share_variance(mean), pooling.fewest_shares(mean, variance)
        weight = pooling.prior_strength(n, alike, spread, variance, largest, least)
        law[place], law[place + 1] = statistics.beta_parameters(
            sums[COUNT], sums[row], sums[squares], weight, mean, square
        )


@njit(cache=True, nogil=True, error_model="numpy")
def between_segments(game, arm, row, mean):
    """Sums over segments, as `likeness` takes them: of weighted squared distances from the mean, of squared counts, and
    of segments with an outcome."""
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
    return between, counts_squared, seen
