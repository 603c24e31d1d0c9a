"""Any index policy, all arms looked at in every round, compiled: exact by inspection, and the cost grows with K.

It serves rules whose monotonicity nobody declared and those that draw the arm by its index, and it is what the lazy
engine is tested against.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.pulling import first_pulls, pull_leader, stop
from budgetbandits.simulation.engines.index.scores import evaluate
from budgetbandits.simulation.engines.index.state import CHOOSING, FLOOR_SEEN, OPENING, PULLING, money_left
from budgetbandits.simulation.engines.runtime.draws import exponential, uniform
from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.engines.runtime.status import GOING_ON, NOT_A_NUMBER, ROUND_LIMIT


@njit(cache=True, nogil=True, error_model="numpy")
def play_plain(games, index):
    """Play until every budget's game has ended or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = first_pulls(game) if game.stage == OPENING else GOING_ON
    while status == GOING_ON:
        status = best_of_all(game, index) if game.stage == CHOOSING else pull_leader(game)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def best_of_all(game, index):
    """Make the arm with the highest index the leader, ties broken uniformly; the games end if none can be afforded.

    Exploring, all indices count as equal. With softmax an arm is drawn in proportion to the exponential of its index:
    that is the highest of the indices with independent Gumbel variates added.
    """
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return stop(game)
    exploring = game.exploration > 0.0 and uniform(game.stream_at) * float(game.rounds) < game.exploration
    pulls, price, money = whole_pointer(game.pulls_at), float_pointer(game.price_at), money_left(game)
    values = float_pointer(game.value_at)
    kept = not game.rounds_matter and game.kind < FLOOR_SEEN  # an index changes with the arm's own pulls alone
    if kept and game.leader >= 0:
        values[game.leader] = evaluate(game, index, game.leader, game.rounds, game.floor)
    known = kept and game.leader >= 0
    chosen = -1
    best = -np.inf
    ties = 0
    for arm in range(game.arms):
        if pulls[arm] == 0 or not price[arm] <= money:
            continue
        if not known and (kept or not exploring):
            values[arm] = evaluate(game, index, arm, game.rounds, game.floor)
        value = 0.0 if exploring else values[arm]
        if value != value:
            game.leader = arm
            return NOT_A_NUMBER
        if game.softmax and value < np.inf:
            value -= np.log(exponential(game.stream_at))
        if value > best:
            chosen, best, ties = arm, value, 1
        elif value == best and value > -np.inf:
            ties += 1
            if uniform(game.stream_at) * ties < 1.0:  # the j-th of equals replaces the choice with probability 1/j
                chosen = arm
    if chosen < 0:
        return stop(game)
    game.leader = chosen
    game.stage = PULLING
    return GOING_ON
