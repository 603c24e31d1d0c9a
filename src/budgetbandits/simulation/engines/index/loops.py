"""The loops over rounds: the plain one, which looks at all arms in every round, and the lazy one.

The plain loop is exact by inspection, and its cost grows with the number of arms. It serves rules whose monotonicity
nobody declared and those that draw the arm by its index, and the lazy loop is tested against it. The lazy loop does
not evaluate what cannot matter; docs/explanation/engine.md, "Index policies", says why that is exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.blocks import region, roam
from budgetbandits.simulation.engines.index.bounds import has_left, renew_expired, reopen
from budgetbandits.simulation.engines.index.election import elect, gather
from budgetbandits.simulation.engines.index.pulls import first_pulls, pull
from budgetbandits.simulation.engines.index.state import (
    FLOOR_SEEN,
    OPENING,
    can_pay,
    evaluate,
    highest_bound,
    money_left,
    money_moved,
    now,
    offered,
    prior_moved,
)
from budgetbandits.simulation.engines.index.sweeps import sweep_on, worth_a_sweep
from budgetbandits.simulation.engines.plain.loop import loop_of, request_status
from budgetbandits.simulation.engines.runtime.draws import exponential, uniform
from budgetbandits.simulation.engines.runtime.records import (
    CHOOSING,
    GOING_ON,
    NOT_A_NUMBER,
    PULLING,
    ROUND_LIMIT,
    float_pointer,
    stop,
)


@njit(cache=True, nogil=True, error_model="numpy")
def play_plain(games, index):
    """The plain loop: every arm is looked at in every round. Returns a `status`."""
    game = games[0]
    status = first_pulls(game) if game.stage == OPENING else GOING_ON
    if status == GOING_ON:
        status = play_all(games, index, 0, game.stream_at)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def best_of_all(game, index, stream):
    """Make the arm with the highest index the leader, ties broken uniformly; the games end if none can be afforded.

    Exploring, all indices count as equal. With softmax an arm is drawn in proportion to the exponential of its index:
    that is the highest of the indices with independent Gumbel variates added.
    """
    status = request_status(game)
    if status != GOING_ON:
        return status
    exploring = game.exploration > 0.0 and uniform(stream) * float(game.rounds) < game.exploration
    price, money = float_pointer(game.price_at), money_left(game)
    values = float_pointer(game.value_at)
    # between steps of money an index changes with the arm's own pulls alone
    kept = not game.rounds_matter and game.kind < FLOOR_SEEN
    leader_known = kept and game.leader >= 0
    if money_moved(game) | prior_moved(game):
        leader_known = False
    if leader_known:
        values[game.leader] = evaluate(game, index, game.leader, game.rounds, game.floor)
    chosen = -1
    best = -np.inf
    ties = 0
    for arm in range(game.arms):
        if not offered(game, arm) or not price[arm] <= money:
            continue
        if not leader_known and (kept or not exploring):
            values[arm] = evaluate(game, index, arm, game.rounds, game.floor)
        value = 0.0 if exploring else values[arm]
        if value != value:
            game.leader = arm
            return NOT_A_NUMBER
        if game.softmax and value < np.inf:
            value -= np.log(exponential(stream))
        if value > best:
            chosen, best, ties = arm, value, 1
        elif value == best and value > -np.inf:
            ties += 1
            if uniform(stream) * ties < 1.0:  # the j-th of equals replaces the choice with probability 1/j
                chosen = arm
    if chosen < 0:
        return stop(game)
    game.leader = chosen
    game.stage = PULLING
    return GOING_ON


play_all = loop_of("index", best_of_all, pull)


@njit(cache=True, nogil=True, error_model="numpy")
def play_lazily(games, index):
    """Play until every budget's game has ended or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    if game.stage == OPENING:
        status = first_pulls(game)
        if status == GOING_ON:
            game.floor_low = game.floor_high = game.floor
            money_moved(game)
            status = gather(game, index)
    while status == GOING_ON:
        if game.stage == PULLING:
            status = pull(game, game.leader, 0, 0)
            if status == GOING_ON:
                game.stage = CHOOSING
        elif game.rounds >= game.max_rounds:
            status = ROUND_LIMIT
        elif laborious(game) and worth_a_sweep(game):
            status = play_sweeps(game, index)
        else:
            status = choose(game, index)
    return status


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def choose(game, index):
    """Find who is to be pulled next; a leader that is safe for many rounds is pulled at once."""
    money_moved(game)  # every index may have fallen: bounds hold
    if prior_moved(game):
        status = gather(game, index)
        if status != GOING_ON:
            return status
    if game.leader >= 0 and not can_pay(game, game.leader):
        game.leader = -1
    lead = -np.inf
    if game.leader >= 0:
        lead = now(game, index, game.leader)
        if not lead > -np.inf:
            return NOT_A_NUMBER
    keep_bounds(game, index, lead)
    rival = highest_rival(game)
    if game.leader < 0 or not lead > rival:
        return elect(game, index, lead)
    if game.blocks:
        count = region(game, index, lead, rival)
        if count > 0:
            return roam(game, count)
    game.stage = PULLING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def keep_bounds(game, index, lead):
    """Renew the bounds that hold no longer; ``lead`` is the leader's index."""
    level = lead
    if game.leader < 0 and game.groups > 0:
        level = highest_bound(game)
    if game.pool_size > 0:
        level = np.inf
    if game.kind >= FLOOR_SEEN and has_left(game):
        reopen(game, index, level)
    renew_expired(game, index, level)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def highest_rival(game):
    """A bound on all indices but the leader's, whatever rounding does."""
    if game.pool_size > 0:
        return np.inf
    if game.groups == 0:
        return -np.inf
    rival = highest_bound(game)
    return rival + game.slack * (1.0 + abs(rival))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def laborious(game):
    """Whether the last rounds needed enough evaluations for sweeps to be faster."""
    evaluations = game.evaluations - game.evaluated_before
    if evaluations < game.patience:
        return False
    rounds = game.rounds - game.counted_from
    count_from_here(game)
    game.lazy_price = float(evaluations) / float(max(rounds, 1))
    return rounds < 8 * evaluations


@njit(cache=True, nogil=True, error_model="numpy")
def count_from_here(game):
    """Count evaluations from this round on."""
    game.evaluated_before = game.evaluations
    game.counted_from = game.rounds


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def play_sweeps(game, index):
    """Sweep as long as it pays, and sort the arms again."""
    sweep_on(game, index)
    status = gather(game, index)
    count_from_here(game)
    return status
