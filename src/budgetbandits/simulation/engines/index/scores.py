"""What an arm's index is now, would be later, or can fall to."""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.index.state import BEST_RATIO, CONSTANT, MOMENTS, OWN, VARIANCE, pulls_of
from budgetbandits.simulation.engines.runtime.pointers import float_pointer


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def means(game, arm):
    """(pulls, mean reward, mean cost), in the units of the index."""
    pulls = float(pulls_of(game, arm))
    reward = float_pointer(game.rewards_at)[arm] * game.reward_unit / pulls
    return pulls, reward, float_pointer(game.costs_at)[arm] * game.cost_unit / pulls


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def first_extra(game, arm, floor):
    """The first extra argument of the arm's index; ``floor`` is what it has in common with all arms."""
    if game.kind == CONSTANT:
        return game.first
    if game.kind == OWN:
        return float_pointer(game.own_at)[arm]
    if game.kind == VARIANCE:
        pulls, mean_reward, _ = means(game, arm)
        square = float_pointer(game.squares_at)[arm] * (game.reward_unit * game.reward_unit)
        return max(square / pulls - mean_reward * mean_reward, 0.0)
    if game.kind == BEST_RATIO:
        return 1.0 / floor
    return floor


@njit(cache=True, nogil=True, error_model="numpy")
def moments(game, arm):
    """(variance of the arm's rewards, variance of its costs, their covariance)."""
    pulls, mean_reward, mean_cost = means(game, arm)
    rewards = float_pointer(game.squares_at)[arm] * (game.reward_unit * game.reward_unit) / pulls
    costs = float_pointer(game.cost_squares_at)[arm] * (game.cost_unit * game.cost_unit) / pulls
    products = float_pointer(game.products_at)[arm] * (game.reward_unit * game.cost_unit) / pulls
    return (
        max(rewards - mean_reward * mean_reward, 0.0),
        max(costs - mean_cost * mean_cost, 0.0),
        products - mean_reward * mean_cost,
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def evaluate(game, index, arm, rounds, floor):
    """The arm's index as if ``rounds`` rounds had been played and ``floor`` were what all arms have in common."""
    pulls, mean_reward, mean_cost = means(game, arm)
    if game.kind == MOMENTS:
        rewards, costs, both = moments(game, arm)
        return index(mean_reward, mean_cost, pulls, float(rounds), rewards, costs, both, game.fourth)
    first = first_extra(game, arm, floor)
    return index(mean_reward, mean_cost, pulls, float(rounds), first, game.second, game.third, game.fourth)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def score(game, index, arm, rounds, floor):
    """What `evaluate` says, counted: the lazy engine goes by how many evaluations its rounds take."""
    game.evaluations += 1
    return evaluate(game, index, arm, rounds, floor)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def now(game, index, arm):
    """The arm's index in this round."""
    return score(game, index, arm, game.rounds, game.floor)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def lowest_index(game, index, arm, count, shortfall, excess):
    """The lowest index the arm can come to within ``count`` pulls whose rewards fall short of their mean so far by at
    most ``shortfall`` and whose costs exceed theirs by at most ``excess``."""
    game.evaluations += 1
    pulls, mean_reward, mean_cost = means(game, arm)
    later = pulls + float(count)
    first = first_extra(game, arm, game.floor)
    if game.kind == VARIANCE:
        first *= pulls / later  # the sum of squared deviations from the mean never falls
    return index(
        max(mean_reward - shortfall / pulls, float_pointer(game.reward_floor_at)[arm] * game.reward_unit),
        min(mean_cost + excess / pulls, float_pointer(game.cost_top_at)[arm] * game.cost_unit),
        later, float(game.rounds), first, game.second, game.third, game.fourth,
    )  # fmt: skip
