"""What a pull costs and how a game at a budget ends, in engines whose records hold it alike."""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer


@njit(cache=True, nogil=True)
def close_budget(game, reward, spent):
    """The game at the next budget has ended like this."""
    pulls, out_pulls = whole_pointer(game.pulls_at), whole_pointer(game.out_pulls_at)
    for arm in range(game.arms):
        out_pulls[game.checkpoint * game.arms + arm] = pulls[arm]
    float_pointer(game.out_reward_at)[game.checkpoint] = reward
    float_pointer(game.out_spend_at)[game.checkpoint] = spent
    whole_pointer(game.out_rounds_at)[game.checkpoint] = game.rounds
    game.checkpoint += 1


@njit(cache=True, nogil=True, error_model="numpy")
def add_cost(game, cost):
    """A cost is spent; compensated, as in the reference."""
    owed = cost - game.drift
    total = game.spent + owed
    game.drift = (total - game.spent) - owed
    game.spent = total
