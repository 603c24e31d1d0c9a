"""The rule of sampling policies: every arm draws its score in every round, and the highest is pulled.

The draws are those of `SamplingPolicy.choose`, in the same order. Outcomes are drawn by the Python side, in the batches
of the reference simulator: any law will do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.engines.plain.loop import PlainRecord, loop_of, pull_of, request_status
from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    NOT_A_NUMBER,
    PULLING,
    Floats,
    add_money,
    float_pointer,
    place_of_equal,
    read_outcome,
    stop,
)


class SamplingRecord(PlainRecord):
    """The record of a game and its arrays, for arms that start with these statistics, a row for each."""

    rows: int  # numbers in the statistics of an arm
    statistics: Floats
    extras: Floats  # the further arguments of `score` and `learn`
    scores: Floats

    def __init__(self, first: Array, budgets: int, chunk: int, extras: Sequence[float]) -> None:
        arms, rows = first.shape
        super().__init__(arms, arms, budgets, chunk)
        self._first = first
        self.point_to(statistics=first.copy(), scores=np.zeros(arms), extras=np.array(extras, dtype=float))
        self.set(rows=rows)
        self._start = self.fields()

    def clear(self) -> None:
        super().clear()
        self.statistics[:] = self._first


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def statistics_of(game, arm):
    """The address of an arm's statistics."""
    return game.statistics_at + 8 * game.rows * arm


@njit(cache=True, nogil=True, error_model="numpy")
def highest_score(game, score, rng):
    """Make the arm with the highest score the leader; exact ties are broken uniformly, as `policies.base.best` does."""
    status = request_status(game)
    if status != GOING_ON:
        return status
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
    game.stage = PULLING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def learn_statistics(game, arm, reward, cost, learn, rng):
    """Learn by the policy's own function."""
    learn(statistics_of(game, arm), reward, cost, rng, game.extras_at)
    add_money(game, reward, cost)


play_sampling = loop_of("sampling", highest_score, pull_of("sampling", read_outcome, learn_statistics))
"""The loop of a policy with a score and a learn."""
