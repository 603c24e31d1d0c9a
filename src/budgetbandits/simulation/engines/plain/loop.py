"""The loop over rounds: a choice, an outcome, an update; and the fields of a record that it needs.

A rule gives the loop three functions, which are known when it is compiled: `loop_of` makes a copy of the loop that
calls them. A compiler for other machines can make its copies the same way. Nothing outside the record of a game is
written.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from budgetbandits.simulation.engines.runtime.records import (
    CHOOSING,
    GOING_ON,
    PULLING,
    ROUND_LIMIT,
    GameRecord,
    close_budgets,
    stop,
    whole_pointer,
)
from budgetbandits.simulation.reference import TOLERANCE


class PlainRecord(GameRecord):
    """The fields of a game that the loop needs."""

    stage: int  # CHOOSING or PULLING
    leader: int  # the arm that was chosen last, -1 if none
    part: int  # of the stream, which the request belongs to
    max_rounds: int
    horizon: float  # how many requests there are

    def __init__(self, arms: int, places: int, budgets: int, chunk: int) -> None:
        super().__init__()
        self.point_to(buffer=np.zeros((places, chunk, 2)), budget=np.zeros(budgets))
        self.point_to(**{name: np.zeros(places, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.keep_results(places, budgets)
        self.set(arms=arms, chunk=chunk, leader=-1, tolerance=TOLERANCE, reward_unit=1.0, cost_unit=1.0)
        self._start = self.fields()

    def clear(self) -> None:
        """Make everything ready for a game."""
        self.restart(self._start)
        for name in ("used", "filled", "pulls"):
            self.arrays[name][:] = 0


# --- what a rule gives -----------------------------------------------------------------------------------------------


def choose(game, rank, rng):
    """Make an arm the leader and the stage PULLING; returns a `status`. ``rank`` is a policy's own function that ranks
    arms, if it has one; ``rng`` is the source of random numbers."""
    raise NotImplementedError


def outcome(game, place):
    """(whether there is one, reward, cost) of a pull at this place."""
    raise NotImplementedError


def update(game, place, reward, cost, learn, rng):
    """Learn, and add reward and cost to the sums of the game. ``learn`` is a policy's own function, if it has one."""
    raise NotImplementedError


# --- the loop --------------------------------------------------------------------------------------------------------


def play(games, rank, learn, rng):
    """Play until every budget's game has ended or a place needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        if game.stage == PULLING:
            status = pull(game, game.part * game.arms + game.leader, learn, rng)
            if status < 0:
                game.stage = CHOOSING
        else:
            status = choose(game, rank, rng)
    return status


def pull(game, place, learn, rng):
    """One pull: GOING_ON, FINISHED, or the place itself if its outcomes have run out and nothing happened."""
    drawn, reward, cost = outcome(game, place)
    if not drawn:
        return place
    game.rounds += 1
    whole_pointer(game.pulls_at)[place] += 1
    status = close_budgets(game, reward, cost)
    update(game, place, reward, cost, learn, rng)
    return status


def pull_of(rule: str, outcome: Dispatcher, update: Dispatcher) -> Dispatcher:
    """`pull`, compiled with these functions of a rule of this name."""
    return _compiled_with(pull, rule, outcome=outcome, update=update)


def loop_of(rule: str, choose: Dispatcher, pull: Dispatcher) -> Dispatcher:
    """`play`, compiled with these functions of a rule of this name."""
    return _compiled_with(play, rule, choose=choose, pull=pull)


def _compiled_with(template: Any, rule: str, **functions: Dispatcher) -> Dispatcher:
    """A copy that calls these functions; it has a name of its own, by which Numba's disk cache finds it."""
    copy = FunctionType(template.__code__, template.__globals__ | functions, template.__name__)
    copy.__qualname__ = f"{rule}_{template.__name__}"
    copy.__module__ = template.__module__
    compiled: Dispatcher = njit(cache=True, nogil=True, error_model="numpy")(copy)
    return compiled


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def request_status(game):
    """Whether there is another request: GOING_ON, FINISHED or ROUND_LIMIT."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return stop(game)
    return GOING_ON
