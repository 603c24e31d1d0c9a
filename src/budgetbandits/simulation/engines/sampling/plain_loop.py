"""The plain loop of sampling policies: `reference.play`, compiled, with the same draws in the same order.

Every arm draws its score in every round, so a round takes as many draws as there are arms. Outcomes are drawn by the
Python side, in the batches of the reference simulator: any law will do. A `GAME` is one record, as in the other
engines; its arrays are held by their addresses and kept alive by the `SamplingState`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    NOT_A_NUMBER,
    RESULTS,
    ROUND_LIMIT,
    Record,
    add_cost,
    close_budgets,
    float_pointer,
    place_of_equal,
    read_outcome,
    stop,
    whole_pointer,
)
from budgetbandits.simulation.reference import TOLERANCE

WHOLE_FIELDS = ("arms", "rows", "chunk", "budgets", "max_rounds", "horizon", "rounds", "checkpoint", "leader")
"""Sizes; how many requests there are; the rounds played, how many budgets have ended, the arm that was chosen and not
pulled (-1 if none)."""

FLOAT_FIELDS = ("reward", "spent", "drift", "tolerance", "reward_unit", "cost_unit")
"""Sums so far; what rounding has left out of the money spent; units, which are 1 here."""

ARRAYS = ("statistics", "extras", "scores", "buffer", "used", "filled", "pulls", "budget", *RESULTS)
"""``extras`` are the further arguments of `score` and `learn`."""

GAME = np.dtype(
    [(name, np.int64) for name in WHOLE_FIELDS]
    + [(name, np.float64) for name in FLOAT_FIELDS]
    + [(f"{name}_at", np.int64) for name in ARRAYS]
)


class SamplingState(Record):
    """The record of a game and its arrays, for arms that start with these statistics, a row for each."""

    def __init__(self, first: Array, budgets: Array, chunk: int, extras: Sequence[float]) -> None:
        super().__init__(GAME)
        arms, rows = first.shape
        self._first = first
        self.point_to(statistics=first.copy(), scores=np.zeros(arms), buffer=np.zeros((arms, chunk, 2)))
        self.point_to(**{name: np.zeros(arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.point_to(budget=budgets, extras=np.array(extras, dtype=float))
        self.keep_results(arms, len(budgets))
        self.set(arms=arms, rows=rows, chunk=chunk, budgets=len(budgets), leader=-1, tolerance=TOLERANCE)
        self.set(reward_unit=1.0, cost_unit=1.0)
        self._start = self.fields()

    def clear(self, max_rounds: int, horizon: int) -> None:
        """Make everything ready for a game."""
        self.restart(self._start)
        self.set(max_rounds=max_rounds, horizon=horizon)
        self.arrays["statistics"][:] = self._first
        for name in ("used", "filled", "pulls"):
            self.arrays[name][:] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def play_sampling(games, score, learn, rng):
    """Play until every budget's game has ended or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = choose(game, score, rng) if game.leader < 0 else pull(game, learn, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def statistics_of(game, arm):
    """The address of an arm's statistics."""
    return game.statistics_at + 8 * game.rows * arm


@njit(cache=True, nogil=True, error_model="numpy")
def choose(game, score, rng):
    """Make the arm with the highest score the leader; exact ties are broken uniformly, as `policies.base.best` does."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return stop(game)
    scores = float_pointer(game.scores_at)
    top = -np.inf
    ties = 0
    for arm in range(game.arms):
        value = score(statistics_of(game, arm), rng, game.extras_at)
        scores[arm] = value
        if value != value:
            game.leader = arm
            return NOT_A_NUMBER
        if value > top:
            top, ties, game.leader = value, 1, arm
        elif value == top:
            ties += 1
    if top == -np.inf:  # the reference takes that for a policy that stops
        return stop(game)
    if ties > 1:
        game.leader = place_of_equal(scores, top, rng.integers(0, ties))
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def pull(game, learn, rng):
    """Pull the leader: GOING_ON, FINISHED, or the arm itself if its outcomes have run out and nothing happened."""
    arm = game.leader
    found, reward, cost = read_outcome(game, arm)
    if not found:
        return arm
    learn(statistics_of(game, arm), reward, cost, rng, game.extras_at)
    whole_pointer(game.pulls_at)[arm] += 1
    game.rounds += 1
    game.leader = -1
    status = close_budgets(game, reward, cost)
    if status == GOING_ON:
        game.reward += reward
        add_cost(game, cost)
    return status
